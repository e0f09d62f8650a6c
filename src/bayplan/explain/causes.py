"""Causes: rejected nodes grouped by plugin and reason, each with what stands behind it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim
from bayplan.api.objects import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Node,
)
from bayplan.api.pod_requests import PODS
from bayplan.api.selectors import NodeTerm, SelectorError, label_selector, map_selector, node_term
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.explain.amounts import short_text
from bayplan.explain.diagnosis import Diagnosis, in_natural_order, pods_by_node
from bayplan.explain.explanation import Cause, NodeDistance
from bayplan.explain.fixes.edits import plain
from bayplan.explain.fixes.resource_edits import lacking_on
from bayplan.explain.fixes.rule_edits import (
    nodes_of,
    selector_text,
    taint_text,
    term_text,
    untolerated,
)
from bayplan.framework.status import Code
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit, insufficient
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.state.pods import PodInfo

_EXAMPLES_MAX = 5
_DETAILS_MAX = 8
_DOMAINS_MAX = 12
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_VOLUME_PLUGINS = frozenset(
    ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
)
_DEVICE_PLUGIN = "DynamicResources"


@final
@dataclass(slots=True)
class _Group:
    """The nodes of one cause."""

    nodes: list[str] = field(default_factory=list[str])
    is_preemptible: bool = False


def causes_of(model: ClusterModel, diagnosis: Diagnosis) -> tuple[Cause, ...]:
    """The causes that keep the most nodes out come first."""
    attempt = diagnosis.attempt
    if attempt.result == "gated":
        reason = attempt.gating_message or attempt.message
        details = _details(model, diagnosis, attempt.gating_plugin, ())
        return (Cause(plugin=attempt.gating_plugin, reason=reason, details=details),)
    if diagnosis.whole is not None:
        status = diagnosis.whole
        details = _details(model, diagnosis, status.plugin, ())
        return (Cause(plugin=status.plugin, reason=status.message, details=details),)
    groups: dict[tuple[str, str], _Group] = defaultdict(_Group)
    for node, status in diagnosis.rejected.items():
        for reason in status.reasons or ("",):
            group = groups[status.plugin, reason]
            group.nodes.append(node)
            group.is_preemptible |= status.code is Code.UNSCHEDULABLE
    causes = [
        Cause(
            plugin=plugin,
            reason=reason,
            nodes=len(group.nodes),
            nearest=_nearest(diagnosis, plugin, reason, group.nodes),
            examples=tuple(in_natural_order(group.nodes)[:_EXAMPLES_MAX]),
            details=_details(model, diagnosis, plugin, group.nodes),
            is_preemptible=group.is_preemptible,
        )
        for (plugin, reason), group in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-cause.nodes, cause.plugin, cause.reason)))


def saturated_and_excluded(diagnosis: Diagnosis) -> tuple[int, int]:
    """Nodes that are full, and nodes that the pod may not use whatever is free."""
    codes = Counter(status.code for status in diagnosis.rejected.values())
    return codes[Code.UNSCHEDULABLE], codes[Code.UNSCHEDULABLE_AND_UNRESOLVABLE]


# ---- distances ----------------------------------------------------------------------------------


def _nearest(
    diagnosis: Diagnosis, plugin: str, reason: str, nodes: Sequence[str]
) -> NodeDistance | None:
    """The node that lacks the least of the resource."""
    if plugin != NodeResourcesFit.name:
        return None
    requests = (*diagnosis.pod.requests, PODS)
    resource = next((r for r in requests if reason == insufficient(r)), None)
    if reason == TOO_MANY_PODS:
        resource = PODS
    if resource is None:
        return None
    lacking = {node: lacking_on(diagnosis, node).get(resource, 0) for node in nodes}
    # Of nodes that lack equally much, one that lacks nothing else is nearer.
    nearest = min(lacking, key=lambda n: (lacking[n], len(lacking_on(diagnosis, n)), len(n), n))
    amount = lacking[nearest]
    if resource == PODS:
        return NodeDistance(node=nearest, distance="has room for no more pod")
    return NodeDistance(node=nearest, distance=f"lacks {short_text(resource, amount)}")


# ---- details ------------------------------------------------------------------------------------


def _details(
    model: ClusterModel, diagnosis: Diagnosis, plugin: str, nodes: Sequence[str]
) -> tuple[str, ...]:
    pod = diagnosis.pod
    name = plugin.partition("/")[0]
    lines: Iterator[str] = iter(())
    if name == TaintToleration.name:
        lines = _taints(model, pod, nodes)
    elif name == NodeAffinity.name:
        lines = _node_rules(model, pod)
    elif name == PodTopologySpread.name:
        lines = _spreading(model, pod)
    elif name == InterPodAffinity.name:
        lines = _affinity(model, pod)
    elif name == NodePorts.name:
        lines = _ports(model, pod, nodes)
    elif name in _VOLUME_PLUGINS:
        lines = volume_details(model, pod)
    elif name == _DEVICE_PLUGIN:
        lines = device_details(model, pod)
    listed = list(lines)
    if len(listed) > _DETAILS_MAX:
        listed[_DETAILS_MAX - 1 :] = [f"and {len(listed) - _DETAILS_MAX + 1} more"]
    return tuple(listed)


def _taints(model: ClusterModel, pod: PodInfo, nodes: Sequence[str]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for node in nodes_of(model, in_natural_order(nodes)):
        for taint in untolerated(pod, node):
            text = taint_text(taint)
            counts[text] += 1
            examples.setdefault(text, node.metadata.name)
    for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{text} on {_counted(count, 'node')}, for example {examples[text]}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _node_rules(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    nodes = [node for node in model.objects(NODE) if isinstance(node, Node)]
    labels = pod.spec.node_selector or {}
    for key, value in sorted(labels.items()):
        selector = map_selector({key: value})
        count = sum(selector.matches(node.metadata.labels or {}) for node in nodes)
        present = sorted(
            {(n.metadata.labels or {})[key] for n in nodes if key in (n.metadata.labels or {})}
        )
        hint = f"; {key} is {_some(present)} elsewhere" if present and not count else ""
        yield f"node selector {key}={value} matches {count:,} of {len(nodes):,} nodes{hint}"
    for term, text in _required_terms(pod):
        count = sum(term.matches(n.metadata.labels or {}, n.metadata.name) for n in nodes)
        yield f"node affinity {text} matches {count:,} of {len(nodes):,} nodes"


def _some(values: Sequence[str]) -> str:
    shown = ", ".join(values[:_EXAMPLES_MAX])
    return shown if len(values) <= _EXAMPLES_MAX else f"{shown}, …"


def _required_terms(pod: PodInfo) -> Iterator[tuple[NodeTerm, str]]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    for term in (required.node_selector_terms or ()) if required is not None else ():
        yield node_term(term), term_text(plain(term))


def _domains(
    model: ClusterModel, key: str, selector: Any, namespaces: frozenset[str]
) -> dict[str, int]:
    """Domain → how many placed pods match."""
    counts: dict[str, int] = {}
    domain_of: dict[str, str] = {}
    for node in model.objects(NODE):
        domain = (node.metadata.labels or {}).get(key)
        if domain is not None:
            counts.setdefault(domain, 0)
            domain_of[node.metadata.name] = domain
    for name, pods in pods_by_node(model).items():
        domain = domain_of.get(name)
        if domain is not None:
            counts[domain] += sum(
                pod.namespace in namespaces
                and not pod.is_terminating
                and selector.matches(pod.labels)
                for pod in pods
            )
    return counts


def _listed_domains(counts: Mapping[str, int]) -> str:
    order = sorted(counts.items(), key=lambda item: (item[1], len(item[0]), item[0]))
    shown = ", ".join(f"{domain}: {count}" for domain, count in order[:_DOMAINS_MAX])
    return shown + (f", … ({len(counts)} domains)" if len(counts) > _DOMAINS_MAX else "")


def _spreading(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints or ():
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        try:
            selector = label_selector(constraint.label_selector)
        except SelectorError:
            continue
        counts = _domains(model, constraint.topology_key, selector, frozenset((pod.namespace,)))
        text = selector_text(plain(constraint.label_selector))
        yield (
            f"maxSkew {constraint.max_skew} over {constraint.topology_key}: pods with {text} per "
            f"domain: {_listed_domains(counts) or 'no node has the label'}"
        )


def _affinity(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    affinity = pod.spec.affinity
    rules = (
        ("affinity", affinity.pod_affinity if affinity is not None else None),
        ("anti-affinity", affinity.pod_anti_affinity if affinity is not None else None),
    )
    for what, rule in rules:
        for term in (rule.required or ()) if rule is not None else ():
            namespaces = frozenset(term.namespaces or (pod.namespace,))
            try:
                selector = label_selector(term.label_selector)
            except SelectorError:
                continue
            counts = _domains(model, term.topology_key, selector, namespaces)
            occupied = {domain: count for domain, count in counts.items() if count}
            text = selector_text(plain(term.label_selector))
            where = _listed_domains(occupied) or "no such pod is placed"
            yield (
                f"required {what} to {text} over {term.topology_key}: {len(occupied)} of "
                f"{len(counts)} domains have such pods: {where}"
            )


def _ports(model: ClusterModel, pod: PodInfo, nodes: Sequence[str]) -> Iterator[str]:
    wanted = {port for _, _, port in _host_ports(pod)}
    placed = pods_by_node(model)
    for node in in_natural_order(nodes):
        for other in placed.get(node, ()):
            taken = sorted(wanted & {port for _, _, port in _host_ports(other)})
            if taken:
                yield f"{other.key} uses port {', '.join(map(str, taken))} on {node}"


def _host_ports(pod: PodInfo) -> Iterator[tuple[str, str, int]]:
    for container in pod.spec.containers or ():
        for port in container.ports or ():
            number = port.host_port or (port.container_port if pod.spec.host_network else 0)
            if number:
                yield port.host_ip or "", port.protocol or "", number


# ---- volumes and devices ------------------------------------------------------------------------


def volume_details(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """One line for each claim of the pod."""
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if not isinstance(claim, PersistentVolumeClaim):
            yield f"PersistentVolumeClaim {claim_key} does not exist"
            continue
        yield f"PersistentVolumeClaim {claim_key}: {_claim_text(model, claim)}"


def _claim_text(model: ClusterModel, claim: PersistentVolumeClaim) -> str:
    if claim.spec.volume_name:
        volume = model.get(PERSISTENT_VOLUME, "", claim.spec.volume_name)
        if not isinstance(volume, PersistentVolume):
            return f"its PersistentVolume {claim.spec.volume_name} does not exist"
        return f"bound to {claim.spec.volume_name}{_reach(volume)}"
    class_name = claim.spec.storage_class_name
    if not class_name:
        return "not bound, without a storage class"
    if model.get(STORAGE_CLASS, "", class_name) is None:
        return f"not bound; StorageClass {class_name} does not exist"
    return f"not bound; its StorageClass is {class_name}"


def _reach(volume: PersistentVolume) -> str:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    terms = (required.node_selector_terms or ()) if required is not None else ()
    text = " or ".join(term_text(plain(term)) for term in terms)
    return f", which is reachable from nodes with {text}" if text else ""


def device_details(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """One line for each claim of the pod, and one for the devices that the cluster offers."""
    statuses = {each.name: each for each in pod.status.resource_claim_statuses or ()}
    for each in pod.spec.resource_claims or ():
        name = each.resource_claim_name
        if name is None and each.name in statuses:
            name = statuses[each.name].resource_claim_name
        if name is None:
            yield f"the ResourceClaim for {each.name} was not created yet"
            continue
        claim = model.get(RESOURCE_CLAIM, pod.namespace, name)
        if not isinstance(claim, ResourceClaim):
            yield f"ResourceClaim {pod.namespace}/{name} does not exist"
            continue
        yield from _device_claim(model, claim)


def _device_claim(model: ClusterModel, claim: ResourceClaim) -> Iterator[str]:
    where = f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name}"
    if claim.status.allocation is not None:
        yield f"{where} has its devices already"
        return
    for request in plain(claim.spec).get("devices", {}).get("requests") or ():
        exact = request.get("exactly") or request
        class_name = exact.get("deviceClassName", "")
        count = exact.get("count") or 1
        is_missing = class_name and model.get(DEVICE_CLASS, "", class_name) is None
        note = ", which does not exist" if is_missing else ""
        yield f"{where} requests {count} of DeviceClass {class_name}{note}"
    slices = [plain(each) for each in model.objects(RESOURCE_SLICE)]
    devices = sum(len((each.get("spec") or {}).get("devices") or ()) for each in slices)
    yield f"the cluster offers {devices} devices in {len(slices)} ResourceSlices"
