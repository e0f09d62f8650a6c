"""Checks after a quiet period: no pending pod fits a node, and cache and API are equal.

Everything is computed by brute force from the JSON of API objects; only the cache and the queue of
the scheduler are read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import cast

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import (
    CSI_NODE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    Node,
    Pod,
)
from bayplan.api.pod_groups import COSCHEDULING_GROUP, COSCHEDULING_LABEL
from bayplan.engine import cache_check
from bayplan.engine.scheduler import Scheduler
from tests.sim.brute_force import (
    NODE,
    POD,
    Content,
    Key,
    Picture,
    has_ended,
    is_terminating,
    key_of,
    labels_of,
    uid_of,
)
from tests.sim.brute_force_preemption import priority_of
from tests.sim.brute_force_storage import nodes_that_take, why_not

POD_GROUP = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"
KINDS = (
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
)


def picture_of(cluster: EmbeddedCluster) -> Picture:
    """The current objects of the API server."""
    objects: dict[str, Mapping[Key, Content]] = {
        kind: {(s.key.namespace, s.key.name): s.content for s in cluster.objects(kind)}
        for kind in KINDS
    }
    return Picture.of(objects, {})


def is_ours(pod: Content) -> bool:
    return pod["spec"].get("schedulerName") in (None, "default-scheduler")


def group_of(pod: Content) -> str:
    return labels_of(pod).get(COSCHEDULING_LABEL) or ""


# ---- pending pods ---------------------------------------------------------------------------


def pending(picture: Picture) -> Iterator[Content]:
    """Pods that a scheduler has to place."""
    for pod in picture.kind(POD).values():
        is_settled = pod["spec"].get("nodeName") or has_ended(pod) or is_terminating(pod)
        if not is_settled and is_ours(pod) and not pod["spec"].get("schedulingGates"):
            yield pod


def missed_placements(
    picture: Picture,
    excused: Collection[str] = (),
    excused_nodes: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[str]:
    """Pending pods that fit a node, and groups with enough members that fit.

    `excused`: pods by uid. `excused_nodes`: uid of a pod → nodes that do not count for it.
    """
    texts: list[str] = []
    groups: dict[Key, list[Content]] = defaultdict(list)
    for pod in pending(picture):
        if uid_of(pod) in excused:
            continue
        if group_of(pod):
            groups[key_of(pod)[0], group_of(pod)].append(pod)
            continue
        with_nominated = _with_nominated(picture, pod)
        not_counted = excused_nodes.get(uid_of(pod), ())
        for name in nodes_that_take(picture, pod):
            if name not in not_counted and not why_not(with_nominated, pod, name):
                texts.append(f"{'/'.join(key_of(pod))} fits {name} and waits")
                break
    return texts + [text for key, pods in groups.items() if (text := _fits(picture, key, pods))]


def _with_nominated(picture: Picture, pod: Content) -> Picture:
    """With nominated pods that have at least the pod's priority. Members of the pod's own group
    are tried together with it."""
    group = group_of(pod) and (key_of(pod)[0], group_of(pod))
    for other in pending(picture):
        node_name = (other.get("status") or {}).get("nominatedNodeName")
        is_own = other is pod or (group and group == (key_of(other)[0], group_of(other)))
        if node_name and not is_own and priority_of(other) >= priority_of(pod):
            picture = picture.with_pod(other, node_name)
    return picture


def _fits(picture: Picture, key: Key, pods: list[Content]) -> str:
    """Members have equal specs, so their order does not change how many fit."""
    group = picture.kind(POD_GROUP).get(key)
    if group is None:
        return ""
    minimum = group["spec"]["minMember"]
    assigned_count = sum(
        group_of(each.pod) == key[1] and key_of(each.pod)[0] == key[0]
        for each in picture.placed.values()
    )
    placed_count = 0
    picture = _with_nominated(picture, pods[0])
    for pod in pods if assigned_count + len(pods) >= minimum else ():
        names = nodes_that_take(picture, pod)
        if not names:
            break
        picture = picture.with_pod(pod, names[0])
        placed_count += 1
    if placed_count and assigned_count + placed_count >= minimum:
        return f"group {'/'.join(key)} waits: {placed_count} more members fit, of {minimum}"
    return ""


def could_preempt(picture: Picture) -> list[str]:
    """Pods that fit a node without its pods of lower priority. Pods of groups are left out on both
    sides, and pods whose affinity might need a victim."""
    texts: list[str] = []
    for pod in pending(picture):
        if group_of(pod) or "podAffinity" in (pod["spec"].get("affinity") or {}):
            continue
        for name in picture.node_names():
            victims = [
                uid_of(each)
                for each in picture.occupants(name)
                if priority_of(each) < priority_of(pod) and not group_of(each)
            ]
            if victims and not why_not(_with_nominated(picture.without(victims), pod), pod, name):
                texts.append(f"{'/'.join(key_of(pod))} would fit {name} without lower priorities")
                break
    return texts


# ---- the scheduler's cache ------------------------------------------------------------------


def differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    """Differences between the scheduler's objects and the API's, including versions."""
    nodes = cast(list[Node], [stored.object for stored in cluster.objects(NODE)])
    pods = cast(list[Pod], [stored.object for stored in cluster.objects(POD)])
    return [
        *cache_check.differences(scheduler, nodes, pods),
        *_outdated(scheduler, nodes, pods),
        *_assumed(scheduler),
    ]


def _outdated(scheduler: Scheduler, nodes: list[Node], pods: list[Pod]) -> Iterator[str]:
    for node in nodes:
        ours = scheduler.cache.node(node.metadata.name)
        if ours is not None and ours.metadata.resource_version != node.metadata.resource_version:
            yield f"the cache has an older version of node {node.metadata.name}"
    waiting = scheduler.queue.pending_pods().values()
    by_uid = {pod.uid: pod for pod in scheduler.cache.pods()}
    by_uid |= {pod.uid: pod for each in waiting for pod in each}
    for pod in pods:
        ours = by_uid.get(pod.metadata.uid or "")
        version = pod.metadata.resource_version
        if ours is not None and ours.metadata.resource_version != version:
            yield f"the scheduler has an older version of pod {ours.key}"


def _assumed(scheduler: Scheduler) -> Iterator[str]:
    for pod in scheduler.cache.pods():
        if scheduler.cache.is_assumed(pod.uid):
            yield f"pod {pod.key} is assumed on {pod.node_name} and not confirmed"
    for waiting in scheduler.waiting_pods():
        yield f"pod {waiting.pod.key} waits at Permit"
