"""Pods without a controller that a controller of the input adopts, because its selector matches.

A Deployment adopts no pods: its ReplicaSets do, and their selectors have the template hash.
Upstream: pkg/controller/controller_ref_manager.go (ClaimPods), stateful_set.go (filterFn).
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from bayplan.api.objects import (
    DAEMON_SET,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    LabelSelector,
)
from bayplan.api.selectors import Selector, SelectorError, label_selector
from bayplan.lazy_loader import built
from bayplan.objects.keys import Content, ObjectKey, key_of, kind_of
from bayplan.objects.workloads import controller_reference, ordinal_of
from bayplan.sim.input.controller_pods import is_active, reference
from bayplan.sim.input.object_checks import ObjectIndex

_ADOPTING = (REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, DAEMON_SET, JOB)


def adopt_pods(index: ObjectIndex) -> Iterator[str]:
    """Make controllers the owners of the pods that they adopt. Yields a note for each pod."""
    controllers = [each for kind in _ADOPTING for each in index.of_kind(kind)]
    orphans: defaultdict[str, dict[ObjectKey, Content]] = defaultdict(dict)
    for pod in index.of_kind(POD) if controllers else ():
        if controller_reference(pod) is None and is_active(pod):
            key = key_of(pod)
            orphans[key.namespace][key] = pod
    for controller in controllers:
        there = orphans.get(key_of(controller).namespace)
        selector = _selector(controller) if there else None
        if not there or selector is None or controller["metadata"].get("deletionTimestamp"):
            continue
        for key, pod in list(there.items()):
            if _may_be_of(controller, pod) and selector.matches(
                pod["metadata"].get("labels") or {}
            ):
                del there[key]
                owners = (*(pod["metadata"].get("ownerReferences") or ()), reference(controller))
                meta = {**pod["metadata"], "ownerReferences": list(owners)}
                index.put(key, {**pod, "metadata": meta})
                yield f"{key} is adopted by {key_of(controller)}, whose selector matches it"


def _selector(controller: Content) -> Selector | None:
    """None: it selects nothing, or all pods, which the API server refuses; or it is invalid, so
    that the controller does nothing."""
    selector = controller["spec"].get("selector")
    if kind_of(controller) == REPLICATION_CONTROLLER:
        template = controller["spec"]["template"].get("metadata") or {}
        selector = {"matchLabels": selector or template.get("labels") or {}}
    if not selector or not any(selector.values()):
        return None
    try:
        return label_selector(msgspec.convert(selector, built(LabelSelector)))
    except (msgspec.ValidationError, SelectorError):
        return None


def _may_be_of(controller: Content, pod: Content) -> bool:
    """Whether a pod may be of a controller, by its name: those of a StatefulSet have ordinals."""
    name = key_of(controller).name
    return kind_of(controller) != STATEFUL_SET or ordinal_of(name, key_of(pod).name) >= 0
