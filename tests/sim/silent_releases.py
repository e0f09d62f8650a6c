"""Free capacity without an event that wakes the pods that fit, as in kube-scheduler."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from typing import final

from bayplan.journal import AttemptRecord, Record
from tests.sim.at_rest import pending
from tests.sim.brute_force import (
    NODE,
    POD,
    Content,
    Picture,
    has_ended,
    is_terminating,
    key_of,
    labels_of,
    pods_drawn_to,
    pods_excluded_by,
    pods_spread_over,
    takes_node,
    topology_keys,
    uid_of,
)
from tests.sim.brute_force_storage import claim_keys

_POD_AFFINITY = "InterPodAffinity"
_NODE_AFFINITY = "NodeAffinity"
_VOLUME_LIMITS = "NodeVolumeLimits"
#: Other plugins that the labels of a node concern; they register UpdateNodeLabel.
_WOKEN_BY_LABELS = frozenset(
    {"DynamicResources", "PodTopologySpread", "VolumeBinding", "VolumeZone"}
)


@final
class SilentReleases:
    """A journal sink: the pods that may stay pending although they fit a node, with the reasons.

    - A nominated pod is placed on another node. kube-scheduler removes the nomination and sends no
      event (schedule_one.go, assume).
    - A node leaves its zone, so the anti-affinity of its pods leaves the zone. The hint for a node
      reads the terms of the waiting pod only (interpodaffinity/plugin.go,
      isSchedulableAfterNodeChange). The same holds if the node is deleted, which is no event for
      this plugin.
    - A node is added or gets other labels, and no anti-affinity of a placed pod excludes the
      waiting pod from it. The same hint returns QueueSkip unless a topology key of the waiting
      pod's own terms is concerned. No other hint is called unless a plugin that rejected the pod
      registers the event. The hint of NodeAffinity returns QueueSkip unless the node begins to
      match (nodeaffinity/node_affinity.go, isSchedulableAfterNodeChange).
    - A node is added after its CSINode. NodeVolumeLimits registers an event for the CSINode alone
      (nodevolumelimits/csi.go, EventsToRegister).
    - A pod gets a node and shares a claim with the waiting pod. The volume no longer counts against
      the limit of the node. NodeVolumeLimits registers the deletion of pods, and no other event for
      them (nodevolumelimits/csi.go, EventsToRegister).
    - The last pod that the affinity of a waiting pod selects is deleted, and this affinity selects
      the waiting pod itself. The hint for a deleted pod reads anti-affinity only
      (isSchedulableAfterAssignedPodChange); a deleted node is no event for this plugin.
    - A pod begins to terminate. PodTopologySpread no longer counts it (common.go,
      countPodsMatchSelector), and its hint sees no change of labels.
    """

    def __init__(self) -> None:
        #: Uid → nominated node.
        self._nominated: dict[str, str] = {}
        self._tried_since: set[str] = set()
        self._tried_before: set[str] = set()
        #: Uid → the plugins that rejected the pod at its last attempt.
        self._rejecting: dict[str, frozenset[str]] = {}
        self._silent_nodes: dict[str, set[str]] = defaultdict(set)

    @property
    def excused_uids(self) -> Set[str]:
        """Pods whose last attempt was before the last release."""
        return self._tried_before - self._tried_since

    @property
    def excused_nodes(self) -> Mapping[str, Set[str]]:
        """Uid of a pod → nodes whose arrival after its last attempt does not wake it."""
        return self._silent_nodes

    def delivered(
        self,
        kind: str,
        before: Content | None,
        after: Content | None,
        picture: Callable[[], Picture],
    ) -> None:
        """A change is delivered. ``picture``: returns the picture before the change."""
        if kind == NODE and after is not None:
            if before is None:
                self.node_added(picture(), after)
            elif labels_of(before) != labels_of(after):
                self.node_relabelled(picture(), before, after)
        elif kind == NODE and before is not None:
            self.node_deleted(picture(), before)
        elif kind == POD and before is not None:
            if after is None or has_ended(after):
                self.pod_removed(picture(), before)
            elif is_terminating(after) and not is_terminating(before):
                self.pod_terminates(picture(), before)
        if kind == POD and after is not None and _is_bound(after) and not _is_bound(before):
            self.pod_bound(picture(), after)

    def pod_removed(self, before: Picture, pod: Content) -> None:
        """A pod is deleted or has ended, or its node is deleted."""
        if uid_of(pod) in before.placed:
            self._excuse(pods_drawn_to(before, pod, pending(before)))

    def node_deleted(self, before: Picture, node: Content) -> None:
        """A node is deleted. ``before``: the picture before this."""
        for pod in before.occupants(key_of(node)[1]):
            self.pod_removed(before, pod)
        self._excuse(pods_excluded_by(before, key_of(node)[1], pending(before)))

    def pod_bound(self, before: Picture, pod: Content) -> None:
        """A pod gets a node. ``before``: the picture before this."""
        claims, node_name = set(claim_keys(pod)), pod["spec"]["nodeName"]
        for other in pending(before):
            plugins = self._rejecting.get(uid_of(other), ())
            if _VOLUME_LIMITS in plugins and not claims.isdisjoint(claim_keys(other)):
                self._silent_nodes[uid_of(other)].add(node_name)

    def pod_terminates(self, before: Picture, pod: Content) -> None:
        """The deletion of a pod begins."""
        self._excuse(pods_spread_over(pod, pending(before)))

    def node_added(self, before: Picture, node: Content) -> None:
        """A new node is delivered. ``before``: the picture before this."""
        for pod in pending(before):
            plugins = self._rejecting.get(uid_of(pod))
            if not plugins or plugins - {_POD_AFFINITY, _VOLUME_LIMITS}:
                continue
            if _POD_AFFINITY not in plugins or not _is_woken_by_terms(pod, None, node):
                self._silent_nodes[uid_of(pod)].add(key_of(node)[1])

    def node_relabelled(self, before: Picture, old: Content, node: Content) -> None:
        """A node with other labels is delivered. ``before``: the picture before this."""
        for pod in pending(before):
            plugins = self._rejecting.get(uid_of(pod), frozenset())
            begins_to_match = takes_node(pod, node) and not takes_node(pod, old)
            is_woken = (
                _is_woken_by_terms(pod, old, node)
                or plugins & _WOKEN_BY_LABELS
                or (_NODE_AFFINITY in plugins and begins_to_match)
            )
            if _POD_AFFINITY in plugins and not is_woken:
                self._silent_nodes[uid_of(pod)].add(key_of(node)[1])
        self._excuse(pods_excluded_by(before, key_of(node)[1], pending(before)))

    def _excuse(self, pods: Iterable[Content]) -> None:
        """Excuse these pods until their next attempt."""
        uids = {uid_of(pod) for pod in pods}
        self._tried_before |= uids
        self._tried_since -= uids

    def write(self, record: Record) -> None:
        if not isinstance(record, AttemptRecord):
            return
        self._tried_since.add(record.uid)
        self._silent_nodes.pop(record.uid, None)
        rejections = record.rejections if record.result == "unschedulable" else ()
        self._rejecting[record.uid] = frozenset(each.plugin for each in rejections)
        if record.nominated_node:
            self._nominated[record.uid] = record.nominated_node
        elif record.result in ("scheduled", "waiting"):
            nominated_node = self._nominated.pop(record.uid, record.node)
            if nominated_node != record.node:
                self._tried_before |= self._tried_since
                self._tried_since = set()


def _is_bound(pod: Content | None) -> bool:
    return pod is not None and bool(pod["spec"].get("nodeName"))


def _is_woken_by_terms(pod: Content, old: Content | None, node: Content) -> bool:
    """Whether the hint of InterPodAffinity for a node wakes a pod. ``old``: the previous version of
    the node, None if it is new (interpodaffinity/plugin.go, isSchedulableAfterNodeChange)."""
    labels, affinity = labels_of(node), topology_keys(pod, "podAffinity")
    anti_affinity = topology_keys(pod, "podAntiAffinity")
    if old is None:
        return bool(anti_affinity) or any(key in labels for key in affinity)
    before = labels_of(old)
    changed = {key for key in {*before, *labels} if before.get(key) != labels.get(key)}
    return any(key in changed and key in labels for key in affinity) or any(
        key in changed and key in before for key in anti_affinity
    )
