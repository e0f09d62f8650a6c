"""Which changes make a pod that InterPodAffinity rejected worth another attempt.

As upstream's queueing hints have it, with one exception. Upstream asks a term's namespace selector
about a namespace without labels, whatever labels it has, and so misses pods that do matter. Here a
change counts when it counts either way: never more rarely than upstream, nor when it really helps.
Upstream: isSchedulableAfterAssignedPodChange and isSchedulableAfterNodeChange.
"""

from collections.abc import Callable, Iterable, Mapping

from bayplan.api.affinity import AffinityTerm
from bayplan.api.objects import Node
from bayplan.framework.events import QueueingHint
from bayplan.plugins.inter_pod_affinity.terms import own_terms
from bayplan.state.pods import PodInfo

Labels = Mapping[str, str]
#: Namespace → its labels.
LabelsOf = Callable[[str], Labels]

_NO_LABELS: Labels = {}


def after_assigned_pod(
    pod: PodInfo, old: PodInfo | None, new: PodInfo | None, labels_of: LabelsOf
) -> QueueingHint:
    """Another pod came to a node (``old`` None), changed there, or left (``new`` None)."""
    if any(other is not None and not _has_place(other) for other in (old, new)):
        return QueueingHint.QUEUE_SKIP
    if own_terms(pod).is_unclear or (new is None and old is not None and own_terms(old).is_unclear):
        return QueueingHint.QUEUE
    if _helps(pod, old, new, lambda namespace: _NO_LABELS) or _helps(pod, old, new, labels_of):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE_SKIP


def after_node(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """A node came (``old`` None), or its labels changed: does it join a domain that matters?"""
    if own_terms(pod).is_unclear:
        return QueueingHint.QUEUE
    before, after = _labels(old), _labels(new)
    for term in pod.shape.affinity.required:
        key = term.topology_key
        if key in after and (old is None or before.get(key) != after[key]):
            return QueueingHint.QUEUE
    for term in pod.shape.anti_affinity.required:
        key = term.topology_key
        # A node without the label may always take the pod.
        if old is None or (key in before and before[key] != after.get(key)):
            return QueueingHint.QUEUE
    return QueueingHint.QUEUE_SKIP


def _labels(node: Node | None) -> Labels:
    return (node.metadata.labels or _NO_LABELS) if node is not None else _NO_LABELS


def _has_place(pod: PodInfo) -> bool:
    return bool(pod.node_name or pod.nominated_node_name)


def _helps(pod: PodInfo, old: PodInfo | None, new: PodInfo | None, labels_of: LabelsOf) -> bool:
    wanted, unwanted = pod.shape.affinity.required, pod.shape.anti_affinity.required
    if new is not None:
        comes_near = _all_mean(wanted, new, labels_of)
        if old is None:
            return comes_near
        if comes_near and not _all_mean(wanted, old, labels_of):
            return True
        return _any_means(unwanted, old, labels_of) and not _any_means(unwanted, new, labels_of)
    assert old is not None
    refusing = old.shape.anti_affinity.required
    return _any_means(unwanted, old, labels_of) or _any_means(refusing, pod, labels_of)


def _all_mean(terms: tuple[AffinityTerm, ...], pod: PodInfo, labels_of: LabelsOf) -> bool:
    """Whether there are terms and each of them means the pod."""
    return bool(terms) and all(_means(term, pod, labels_of) for term in terms)


def _any_means(terms: Iterable[AffinityTerm], pod: PodInfo, labels_of: LabelsOf) -> bool:
    return any(_means(term, pod, labels_of) for term in terms)


def _means(term: AffinityTerm, pod: PodInfo, labels_of: LabelsOf) -> bool:
    return term.matches(pod.namespace, pod.labels, labels_of(pod.namespace))
