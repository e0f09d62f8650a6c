"""The extension points of Coscheduling, in the order they run."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, final

from bayplan.api.objects import Pod
from bayplan.api.pod_groups import GroupKey, PodGroup
from bayplan.api.quantity import QuantityError
from bayplan.clock import go_duration
from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.interface import (
    CycleState,
    EnqueueExtensions,
    GroupPlacement,
    Nomination,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueuedPodInfo,
    QueueSortPlugin,
    ReservePlugin,
    SignPlugin,
    WaitingPod,
)
from bayplan.framework.status import Code, NodeToStatus, Status, unresolvable, unschedulable
from bayplan.plugins.coscheduling.args import CoschedulingArgs
from bayplan.plugins.coscheduling.hints import member_events
from bayplan.plugins.coscheduling.recent import Recent
from bayplan.plugins.coscheduling.shortage import missing, told
from bayplan.ports import BindPort
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState, Standing
from bayplan.state.pods import PodInfo, pod_info

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
    QueueSortPlugin,
    PreFilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PostBindPlugin,
    GroupPlacement,
    EnqueueExtensions,
    SignPlugin,
):
    """Sorts groups; with ``placement: pod`` it also keeps their members together, one by one."""

    name = "Coscheduling"
    args_type = CoschedulingArgs
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
        """Priority, then the age of the group, then its name: members follow one another.

        Pods without a group go by their own age, and among those of one second by who came first.
        The API's time stamps are compared, for a group may be older than this scheduler.
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
        """No rejection here is one that evicting pods could resolve."""
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
        others_count = members.assigned_count - (pod.uid in members.assumed)
        if others_count + 1 < group.min_member:
            if not others_count and not self._failed.has(group.key, self.handle.now_seconds):
                _activate_siblings(state, pod, members)
            state[_WAITED] = True
            return _WAIT, self._timeout_seconds(group)
        for each in self._waiting_siblings(pod):
            each.allow(self.instance_name)
        return None, 0.0

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """A member that gives its place back takes those that wait with it."""
        members = self._members(pod)
        group = None if members is None else members.group
        if members is None or group is None:
            return
        others_count = members.assigned_count - (pod.uid in members.assumed)
        if others_count >= group.min_member:
            return
        waiting = self._waiting_siblings(pod)
        for each in waiting:
            each.reject(self.instance_name, REJECTED_IN_UNRESERVE)
        if waiting or _WAITED in state:
            self._note_failure(group, members)

    async def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> None:
        """The group's status is counted from its pods, by whoever writes it: nothing is added up
        here."""

    # ---- sign and events ------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """A member's answers follow from its group besides."""
        return () if self._members(pod) is None else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return member_events(self.handle.pod_groups)

    # ---- groups ---------------------------------------------------------------------------

    def _members(self, pod: PodInfo) -> GroupState | None:
        """The pod's group, where it is this plugin's to keep together."""
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
        """Its members are tried again when that ends: no event tells them."""
        now = self.handle.now_seconds
        self._denied.note(key, now)
        if self._denied.has(key, now):
            unbound = _infos(members.members[Standing.PENDING].values())
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
    return unresolvable(told(gap)) if gap else None


def _activate_siblings(state: CycleState, pod: PodInfo, members: GroupState) -> None:
    """The first one waits: now each other member has a reason to be tried."""
    for each in _infos(members.pending()):
        if each.uid != pod.uid:
            state.pods_to_activate[each.key] = each


def _infos(members: Iterable[Pod]) -> Iterator[PodInfo]:
    for each in members:
        with suppress(QuantityError):  # one that makes no sense is not queued
            yield pod_info(each)
