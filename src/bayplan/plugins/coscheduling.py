"""Coscheduling: the members of a pod group run together, or none of them does.

With ``placement: group`` the engine places a group in one pass, and the plugin sorts the queue.
With ``placement: pod`` members are placed one by one: each reserves its node and waits at Permit
until enough members have a node. Two groups may then each hold nodes that the other one needs,
until their waits time out. This placement is for comparisons, and for charts that ask for it.

The plugin is the one of kubernetes-sigs/scheduler-plugins (pkg/coscheduling), with its extension
points in the order in which they run. `Recent` remembers groups that were changed a moment ago.
minResources is compared with the free amounts of the whole cluster; the check does not show whether
a single node has room.

Hints: a new or placed sibling may complete the group, a change of the group may lower its minimum,
and freed amounts may let one more member wait. A node that a member gives back without a binding
wakes no other group: two groups that are both too small would pass the node to each other for ever.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, final

import numpy as np
from msgspec import field

from bayplan.api.objects import Node, Pod
from bayplan.api.pod_groups import GroupKey, PodGroup, PodGroupKinds
from bayplan.api.pod_requests import CPU, PODS, amounts
from bayplan.api.quantity import QuantityError
from bayplan.clock import go_duration
from bayplan.framework import plugin
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    resource_of_kind,
)
from bayplan.framework.handle import WaitingPod
from bayplan.framework.status import Code, NodeToStatus, Status, unresolvable, unschedulable
from bayplan.framework.types import Nomination, PreFilterResult, QueuedPodInfo
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.ports import BindPort
from bayplan.state.columns import Int64s
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState, MemberStatus, PodGroups
from bayplan.state.pods import PodInfo, pod_info

# ---- arguments ------------------------------------------------------------------------------


DEFAULT_WAIT_SECONDS = 60

#: Why a field has no effect where members are placed in one pass.
_IN_ONE_PASS: Final = {
    "permitWaitingTimeSeconds": (
        "with placement: group no member waits at Permit; a group's own scheduleTimeoutSeconds "
        "says when it gets the condition ScheduleTimedOut"
    ),
    "podGroupBackoffSeconds": (
        "with placement: group no group is denied: one that failed has the queue's backoff"
    ),
    "deniedPGExpirationTimeSeconds": (
        "with placement: group no group is denied: one that failed has the queue's backoff"
    ),
    "podGroupRejectPercentage": "with placement: group all members are placed, or none",
}
#: Why a field never has one.
_NEVER: Final = dict.fromkeys(
    ("kubeMaster", "kubeConfigPath"),
    "clientConnection and --kubeconfig say how the API server is reached",
)

_SECONDS_MAX = 2**31 - 1


class CoschedulingArgs(plugin.PluginArgs, frozen=True):
    """``placement`` is Bayplan's own; the other fields have an effect with ``placement: pod``
    only."""

    placement: Literal["group", "pod"] = "group"
    #: How long a member waits if its group sets no time; 0: the default time.
    permit_waiting_time_seconds: int = DEFAULT_WAIT_SECONDS
    #: How long a group that failed is denied; 0: not at all.
    pod_group_backoff_seconds: int = 0
    #: Where no more than this part of the minimum is missing, those that wait go on waiting.
    pod_group_reject_percentage: int = 10
    #: podGroupBackoffSeconds by its older name; the longer one counts.
    denied_pg_expiration_time_seconds: int | None = field(
        default=None, name="deniedPGExpirationTimeSeconds"
    )
    #: Of the older set; access to the API server is the scheduler's to configure.
    kube_master: str | None = None
    kube_config_path: str | None = None

    @property
    def wait_seconds(self) -> int:
        return self.permit_waiting_time_seconds or DEFAULT_WAIT_SECONDS

    @property
    def denied_seconds(self) -> int:
        return max(self.pod_group_backoff_seconds, self.denied_pg_expiration_time_seconds or 0)

    def remarks(self, written: Collection[str]) -> Iterator[tuple[str, str]]:
        without_effect = {**(_IN_ONE_PASS if self.placement == "group" else {}), **_NEVER}
        return ((name, why) for name, why in without_effect.items() if name in written)

    def problems(self) -> Iterator[tuple[str, str]]:
        seconds = {
            "permitWaitingTimeSeconds": self.permit_waiting_time_seconds,
            "podGroupBackoffSeconds": self.pod_group_backoff_seconds,
            "deniedPGExpirationTimeSeconds": self.denied_pg_expiration_time_seconds or 0,
        }
        for path, value in seconds.items():
            if not 0 <= value <= _SECONDS_MAX:
                yield path, f"{value}; wanted 0 to {_SECONDS_MAX}"
        if not 0 <= self.pod_group_reject_percentage <= 100:
            value = self.pod_group_reject_percentage
            yield "podGroupRejectPercentage", f"{value}; wanted 0 to 100"


# ---- hints ----------------------------------------------------------------------------------


_QUEUE, _SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP


def member_events(groups: PodGroups) -> Sequence[ClusterEventWithHint]:
    """What members wait for, with hints that look at their groups."""
    came = ClusterEvent(EventResource.POD, ActionType.ADD)
    left = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
    added_or_grown = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
    more_nodes = ClusterEvent(EventResource.NODE, added_or_grown)
    return [
        ClusterEventWithHint(came, _after_pod_came),
        ClusterEventWithHint(left, partial(_after_pod_left, groups)),
        ClusterEventWithHint(more_nodes, partial(_after_node, groups)),
        *_group_events(groups.kinds),
    ]


def _group_events(kinds: PodGroupKinds) -> list[ClusterEventWithHint]:
    changed = ActionType.ADD | UPDATE
    return [
        ClusterEventWithHint(
            ClusterEvent(resource, changed), partial(_after_group, resource.partition("/")[0])
        )
        for resource in dict.fromkeys(map(resource_of_kind, kinds))
    ]


def _after_pod_came(pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
    """Another member was created, or placed on a node."""
    is_sibling = pod.group_key is not None and pod.group_key == new.group_key
    return _QUEUE if is_sibling else _SKIP


def _after_pod_left(groups: PodGroups, pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """Room for a member of a group that is complete."""
    state = groups.of(pod)
    if state is None or not state.is_complete:
        return _SKIP
    left = groups.of(old)
    gives_back = left is not None and old.uid in left.members[MemberStatus.PENDING]
    return _SKIP if gives_back else _QUEUE


def _after_node(groups: PodGroups, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    state = groups.of(pod)
    return _QUEUE if state is not None and state.is_complete else _SKIP


def _after_group(api_group: str, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """The object of the pod's own group was added or changed."""
    metadata = new.metadata
    key = GroupKey(api_group, metadata.namespace or DEFAULT_NAMESPACE, metadata.name)
    return _QUEUE if pod.group_key == key else _SKIP


# ---- recently denied groups -----------------------------------------------------------------


@final
class Recent:
    """Remembers each group for the same time. Noting it again meanwhile does not extend that."""

    def __init__(self, seconds: float) -> None:
        """0: nothing is remembered."""
        self.seconds = seconds
        #: In the order in which they are forgotten.
        self._until_seconds: dict[GroupKey, float] = {}

    def note(self, group: GroupKey, now_seconds: float) -> None:
        self._forget_until(now_seconds)
        if self.seconds > 0:
            self._until_seconds.setdefault(group, now_seconds + self.seconds)

    def has(self, group: GroupKey, now_seconds: float) -> bool:
        until_seconds = self._until_seconds.get(group)
        return until_seconds is not None and now_seconds < until_seconds

    def until_seconds(self, group: GroupKey) -> float:
        """When it is forgotten; raises KeyError for one that is not remembered."""
        return self._until_seconds[group]

    def drop(self, group: GroupKey) -> None:
        self._until_seconds.pop(group, None)

    def __len__(self) -> int:
        return len(self._until_seconds)

    def _forget_until(self, now_seconds: float) -> None:
        """Groups that are gone leave nothing behind."""
        while self._until_seconds:
            group, until_seconds = next(iter(self._until_seconds.items()))
            if now_seconds < until_seconds:
                return
            del self._until_seconds[group]


# ---- minResources ---------------------------------------------------------------------------


def missing(group: PodGroup, members: Sequence[Pod | PodInfo], nodes: NodeView) -> dict[str, int]:
    """Resource → the amount that all nodes together lack; empty: nothing is missing.

    Amounts used by ``members``, which have a node, count as free. Raises QuantityError.
    """
    if not group.min_resources:
        return {}
    used = _used_by(members, nodes)
    shortage: dict[str, int] = {}
    for resource, amount in {**amounts(group.min_resources), PODS: group.min_member}.items():
        lack = amount - _free(resource, used, nodes)
        if lack > 0:
            shortage[resource] = lack
    return shortage


def shortage_message(gap: Mapping[str, int]) -> str:
    """The gap in words, in order of the resources' names."""
    parts = [f"{name} {gap[name]}{'m' if name == CPU else ''}" for name in sorted(gap)]
    return f"resource gap: {', '.join(parts)}"


def _used_by(
    members: Sequence[Pod | PodInfo], nodes: NodeView
) -> list[tuple[int, Mapping[str, int]]]:
    """(position of the node, requests of the member), for each member that is on a node."""
    infos = [each if isinstance(each, PodInfo) else pod_info(each) for each in members]
    placed = [(nodes.position(each.node_name), each.requests) for each in infos]
    return [(at, {**requests, PODS: 1}) for at, requests in placed if at is not None]


def _free(resource: str, used: Sequence[tuple[int, Mapping[str, int]]], nodes: NodeView) -> int:
    """An overcommitted node has nothing free; its deficit is not taken from other nodes."""
    taken = nodes.pods.counts() if resource == PODS else nodes.requested(resource)
    free: Int64s = nodes.allocatable(resource) - taken
    for at, requests in used:
        free[at] += requests.get(resource, 0)
    return int(np.maximum(free, 0).sum())


DENIED: Final = "pod with pgName: {} last failed in {}, deny."
TOO_FEW: Final = (
    "pre-filter pod {} cannot find enough sibling pods, "
    "current pods number: {}, minMember of group: {}"
)
NO_GROUP: Final = "PodGroup not found"
GROUP_REJECTED: Final = (
    "PodGroup {} gets rejected due to Pod {} is unschedulable even after PostFilter"
)
REJECTED_IN_POST_FILTER: Final = "optimistic rejection in PostFilter"
REJECTED_IN_UNRESERVE: Final = "rejection in Unreserve"

#: A group that failed leaves its members their delays for so long: the longest one by default.
_DELAYED_SECONDS: Final = 10.0

_WAIT: Final = Status(Code.WAIT)
#: In the CycleState of a member that was made to wait.
_WAITED: Final = "Coscheduling.waited"


@final
class Coscheduling(
    plugin.QueueSortPlugin[CoschedulingArgs],
    plugin.PreFilterPlugin,
    plugin.PostFilterPlugin,
    plugin.ReservePlugin,
    plugin.PermitPlugin,
    plugin.PostBindPlugin,
    plugin.GroupPlacement,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Sorts groups; with ``placement: pod`` also holds members at Permit until the group is
    complete."""

    name = "Coscheduling"
    scope = "cluster"
    ignores_resizes = True

    def setup(self) -> None:
        args: CoschedulingArgs = self.args or CoschedulingArgs()
        self._by_pod = args.placement == "pod"
        self._wait_seconds = args.wait_seconds
        self._reject_percentage = args.pod_group_reject_percentage
        self._denied = Recent(args.denied_seconds)
        self._permitted = Recent(args.wait_seconds)
        self._failed = Recent(_DELAYED_SECONDS)

    @property
    def places_pod_by_pod(self) -> bool:
        return self._by_pod

    # ---- extension points -----------------------------------------------------------------

    def key(self, queued: QueuedPodInfo) -> tuple[int, str, str, float, int]:
        """Sorts by priority, then age of the group, then its name, so that members follow one
        another.

        Pods without a group are sorted by their own age, and within one second by arrival. The ages
        are the API's time stamps, because a group may be older than this scheduler.
        """
        pod = queued.pod
        state = self.handle.pod_groups.of(pod)
        group = None if state is None else state.group
        metadata = pod.metadata if group is None else group.metadata
        first_seconds = queued.initial_attempt_seconds
        return (
            -queued.priority,
            metadata.creation_timestamp or "",
            "" if group is None else str(group.key),
            queued.timestamp_seconds if first_seconds is None else first_seconds,
            queued.sequence,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Evicting pods resolves no rejection of this method."""
        members = self._members(pod)
        group = None if members is None else members.group
        if members is None or group is None:
            return None
        now, key = self.handle.now_seconds, group.key
        if self._denied.has(key, now):
            self.handle.activate((pod,), self._denied.until_seconds(key))
            return unresolvable(DENIED.format(key, go_duration(self._denied.seconds)))
        if not members.is_complete:
            return unresolvable(TOO_FEW.format(pod.name, members.here_count, group.min_member))
        if self._permitted.has(key, now):
            return None
        shortage = _shortage(group, members, nodes)
        if shortage is not None:
            self._deny(key, members)
            return shortage
        self._permitted.note(key, now)
        return None

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """A member does not fit: unless only few are missing, those that wait give up, too."""
        members = self._members(pod)
        group = None if members is None else members.group
        if members is None or group is None or members.is_met:
            return None, unschedulable()
        missing_count = group.min_member - members.assigned_count
        if missing_count * 100 <= self._reject_percentage * group.min_member:
            return None, unschedulable()
        for each in self._waiting_siblings(pod):
            each.reject(self.instance_name, REJECTED_IN_POST_FILTER)
        self._note_failure(group, members)
        return None, unschedulable(GROUP_REJECTED.format(group.key, pod.name))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The place is the pod's already; nothing else is claimed."""
        return None

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """Members wait until enough of them hold a node; the one that completes them frees all."""
        members = self._members(pod)
        if members is None:
            return None, 0.0
        group = members.group
        if group is None:
            return unschedulable(NO_GROUP), 0.0
        sibling_count = members.assigned_count - (pod.uid in members.assumed)
        if sibling_count + 1 < group.min_member:
            if not sibling_count and not self._failed.has(group.key, self.handle.now_seconds):
                _activate_siblings(state, pod, members)
            state[_WAITED] = True
            return _WAIT, self._timeout_seconds(group)
        for each in self._waiting_siblings(pod):
            each.allow(self.instance_name)
        return None, 0.0

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """A member that gives its node back ends the wait of the other members."""
        members = self._members(pod)
        group = None if members is None else members.group
        if members is None or group is None:
            return
        sibling_count = members.assigned_count - (pod.uid in members.assumed)
        if sibling_count >= group.min_member:
            return
        waiting = self._waiting_siblings(pod)
        for each in waiting:
            each.reject(self.instance_name, REJECTED_IN_UNRESERVE)
        if waiting or _WAITED in state:
            self._note_failure(group, members)

    async def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> None:
        """The controller that writes the group's status counts the pods; this method adds nothing
        up."""

    # ---- sign and events ------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """A member's answers follow from its group besides."""
        return () if self._members(pod) is None else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return member_events(self.handle.pod_groups)

    # ---- groups ---------------------------------------------------------------------------

    def _members(self, pod: PodInfo) -> GroupState | None:
        """The pod's group, if this plugin keeps its members together."""
        return self.handle.pod_groups.of(pod) if self._by_pod else None

    def _timeout_seconds(self, group: PodGroup) -> float:
        """No time, or one that makes no sense, is that of the args."""
        seconds = group.schedule_timeout_seconds or 0
        return float(seconds if seconds > 0 else self._wait_seconds)

    def _note_failure(self, group: PodGroup, members: GroupState) -> None:
        """One that misses members has not been tried yet."""
        self._permitted.drop(group.key)
        if members.is_complete:
            self._failed.note(group.key, self.handle.now_seconds)
            self._deny(group.key, members)

    def _deny(self, key: GroupKey, members: GroupState) -> None:
        """The members are tried again when the denial ends, because no event reports its end."""
        now = self.handle.now_seconds
        self._denied.note(key, now)
        if self._denied.has(key, now):
            unbound = _infos(members.members[MemberStatus.PENDING].values())
            self.handle.activate(unbound, self._denied.until_seconds(key))

    def _waiting_siblings(self, pod: PodInfo) -> list[WaitingPod]:
        return [
            each
            for each in self.handle.waiting_pods()
            if each.pod.group_key == pod.group_key and each.pod.uid != pod.uid
        ]


def _shortage(group: PodGroup, members: GroupState, nodes: NodeView) -> Status | None:
    try:
        gap = missing(group, members.assigned(), nodes)
    except QuantityError as problem:
        return unresolvable(f"spec.minResources of PodGroup {group.key}: {problem}")
    return unresolvable(shortage_message(gap)) if gap else None


def _activate_siblings(state: CycleState, pod: PodInfo, members: GroupState) -> None:
    """The first member waits: from now on another attempt at the other members makes sense."""
    for each in _infos(members.pending()):
        if each.uid != pod.uid:
            state.pods_to_activate[each.key] = each


def _infos(members: Iterable[Pod]) -> Iterator[PodInfo]:
    for each in members:
        with suppress(QuantityError):  # one that makes no sense is not queued
            yield pod_info(each)
