"""Pod groups and their members, from the API and from what the scheduler has assumed.

`member_status` is the only function that decides what a pod is to its group. A member counts if it
is bound or waits for a node. A pod does not count if it has ended, is being deleted, has a
scheduling gate or belongs to another scheduler; a pod of another namespace is no member. Counts are
sizes of sets, and each change of a member sorts the member into its set again, so counts cannot
drift.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, final

from msgspec import Struct, field

from bayplan.api.objects import DEFAULT_SCHEDULER, Pod
from bayplan.api.pod_groups import (
    BUILT_IN_KINDS,
    SCHEDULE_TIMED_OUT,
    GroupKey,
    PodGroup,
    PodGroupKinds,
)
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.state.pods import PodInfo


class MemberStatus(StrEnum):
    """The status of a pod in the group that it names."""

    #: Waits for a node.
    PENDING = "pending"
    #: On a node, and not reported as running yet.
    BOUND = "bound"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: Not a member yet: it has a scheduling gate.
    GATED = "gated"
    #: Not a member: being deleted, or of another scheduler.
    OUTSIDE = "outside"


_PENDING, _BOUND, _RUNNING = MemberStatus.PENDING, MemberStatus.BOUND, MemberStatus.RUNNING
_HERE: Final = (_PENDING, _BOUND, _RUNNING)
_ALIVE: Final = (*_HERE, MemberStatus.GATED, MemberStatus.OUTSIDE)
_ON_NODE: Final = (_BOUND, _RUNNING)
#: With those that may have a node and do not count as members.
_PLACED: Final = (*_ON_NODE, MemberStatus.OUTSIDE)
_ENDED: Final[dict[str | None, MemberStatus]] = {
    "Succeeded": MemberStatus.SUCCEEDED,
    "Failed": MemberStatus.FAILED,
}


def member_status(pod: Pod, is_ours: Callable[[str], bool]) -> MemberStatus:
    """The status of a pod in its group. ``is_ours``: whether a profile has this scheduler name."""
    spec, status = pod.spec, pod.status
    if not is_ours(spec.scheduler_name or DEFAULT_SCHEDULER):
        return MemberStatus.OUTSIDE
    if status.phase in _ENDED:
        return _ENDED[status.phase]
    if pod.metadata.deletion_timestamp is not None:
        return MemberStatus.OUTSIDE
    if spec.node_name:
        return MemberStatus.RUNNING if status.phase == "Running" else MemberStatus.BOUND
    return MemberStatus.GATED if spec.scheduling_gates else MemberStatus.PENDING


def group_key_of(pod: Pod, kinds: PodGroupKinds) -> GroupKey | None:
    """The group a pod names."""
    group = pod.spec.scheduling_group
    name = None if group is None else group.pod_group_name
    return kinds.membership(pod.metadata.namespace or DEFAULT_NAMESPACE, pod.metadata.labels, name)


def node_of(pod: Pod | PodInfo) -> str:
    """The name of the node of a member; "": none."""
    return pod.node_name if isinstance(pod, PodInfo) else pod.spec.node_name or ""


def _no_members() -> dict[MemberStatus, dict[str, Pod]]:
    return {status: {} for status in MemberStatus}


@final
class GroupState(Struct, eq=False):
    """One group: its object, if it exists, and its pods."""

    key: GroupKey
    group: PodGroup | None = None
    #: Status → pods by uid, in the order in which they got the status.
    members: dict[MemberStatus, dict[str, Pod]] = field(default_factory=_no_members)
    #: Members that are assumed on a node, by uid.
    assumed: dict[str, PodInfo] = field(default_factory=dict[str, PodInfo])
    #: Members that ended before this scheduler started, from the object's status.
    succeeded_before: int = 0
    failed_before: int = 0
    #: Why the members wait, as a sentence; "" if they do not wait.
    message: str = ""
    #: The message of the last failed attempt for the object's condition, or "".
    condition_message: str = ""
    #: The reason of the condition if that attempt ended with an error, or "".
    failure_reason: str = ""
    #: Whether the members have waited longer than scheduleTimeoutSeconds and still wait.
    has_timed_out: bool = False

    @property
    def min_member(self) -> int:
        return self.group.min_member if self.group is not None else 1

    @property
    def is_upstream(self) -> bool:
        """Whether the object is of a kind of Kubernetes itself."""
        return self.group is not None and self.group.is_upstream

    @property
    def here_count(self) -> int:
        """Members that count: bound, assumed, or waiting for a node."""
        members = self.members
        return len(members[_PENDING]) + len(members[_BOUND]) + len(members[_RUNNING])

    @property
    def assigned_count(self) -> int:
        """Members with a node: bound or assumed."""
        members = self.members
        return len(members[_BOUND]) + len(members[_RUNNING]) + len(self.assumed)

    @property
    def bound_count(self) -> int:
        """Members that are on a node according to the API."""
        return len(self.members[_BOUND]) + len(self.members[_RUNNING])

    @property
    def waiting_count(self) -> int:
        """Members that hold no node."""
        return len(self.members[_PENDING]) - len(self.assumed)

    @property
    def running_count(self) -> int:
        return len(self.members[MemberStatus.RUNNING])

    @property
    def succeeded_count(self) -> int:
        return self.succeeded_before + len(self.members[MemberStatus.SUCCEEDED])

    @property
    def failed_count(self) -> int:
        return self.failed_before + len(self.members[MemberStatus.FAILED])

    @property
    def is_complete(self) -> bool:
        """Whether the group object exists, and the group has enough members for an attempt."""
        return self.group is not None and self.here_count >= self.group.min_member

    @property
    def has_gated(self) -> bool:
        """Whether a pod of the group has a scheduling gate."""
        return bool(self.members[MemberStatus.GATED])

    @property
    def is_met(self) -> bool:
        """Whether enough members have a node. Further members are then placed individually."""
        return self.group is not None and self.assigned_count >= self.group.min_member

    def has(self, uid: str) -> bool:
        """Whether the pod counts as a member."""
        return any(uid in self.members[status] for status in _HERE)

    def assigned(self) -> list[Pod | PodInfo]:
        """Members that hold a node."""
        on_node = [pod for status in _ON_NODE for pod in self.members[status].values()]
        return [*on_node, *self.assumed.values()]

    def node_names(self) -> set[str]:
        """Nodes of the group's pods, including pods that do not count as members."""
        on_node = (pod.spec.node_name for one in _PLACED for pod in self.members[one].values())
        return {name for name in on_node if name} | {p.node_name for p in self.assumed.values()}

    def places_other_than(self, priority: int) -> bool:
        """Whether a pod with a node has another priority."""
        on_node = (pod.spec for one in _PLACED for pod in self.members[one].values())
        return any((spec.priority or 0) != priority for spec in on_node if spec.node_name) or any(
            pod.priority != priority for pod in self.assumed.values()
        )

    def pending(self) -> list[Pod]:
        """Members that hold no node."""
        waiting = self.members[MemberStatus.PENDING].items()
        return [pod for uid, pod in waiting if uid not in self.assumed]

    @property
    def is_empty(self) -> bool:
        """Whether the group can be dropped: no object and no pod, except pods that have ended."""
        return self.group is None and not any(self.members[one] for one in _ALIVE)

    def sort_in(self, uid: str, pod: Pod, status: MemberStatus) -> None:
        members = self.members[status]
        if uid in members:
            members[uid] = pod
            return
        self.take_out(uid)
        members[uid] = pod

    def take_out(self, uid: str) -> None:
        for members in self.members.values():
            if members:
                members.pop(uid, None)


@final
class PodGroups:
    """All groups that have an object or are named by a pod."""

    def __init__(
        self, is_ours: Callable[[str], bool], kinds: PodGroupKinds = BUILT_IN_KINDS
    ) -> None:
        """``kinds``: by which labels pods name their groups."""
        self._is_ours = is_ours
        self.kinds = kinds
        self.by_key: dict[GroupKey, GroupState] = {}
        #: The groups that have their domains alone.
        self.exclusive: dict[GroupKey, GroupState] = {}
        self._key_of: dict[str, GroupKey] = {}
        self._on_first_group: list[Callable[[], None]] = []

    def on_first_group(self, call: Callable[[], None]) -> None:
        """Call ``call`` once: when the first group appears."""
        self._on_first_group.append(call)

    # ---- looking --------------------------------------------------------------------------

    def get(self, key: GroupKey) -> GroupState | None:
        return self.by_key.get(key)

    def of(self, pod: PodInfo) -> GroupState | None:
        """The group that a pod names, or None. The pod need not count as a member."""
        key = pod.group_key
        return None if key is None else self.by_key.get(key) or GroupState(key)

    def all(self) -> Iterable[GroupState]:
        """In the order in which the scheduler first saw them."""
        return self.by_key.values()

    @property
    def is_empty(self) -> bool:
        """Whether there is no group."""
        return not self.by_key

    # ---- what the API tells ---------------------------------------------------------------

    def put(self, group: PodGroup) -> GroupState:
        """Add or replace a group's object."""
        state = self._open(group.key)
        if state.group is None:
            # Pods that ended earlier may be gone: the counts in the status replace them.
            state.succeeded_before = group.status.succeeded or 0
            state.failed_before = group.status.failed or 0
            state.has_timed_out = group.has_condition(SCHEDULE_TIMED_OUT)
        state.group = group
        self.exclusive.pop(group.key, None)
        if group.exclusive_topology:
            self.exclusive[group.key] = state
        return state

    def remove(self, key: GroupKey) -> GroupState | None:
        """Remove a group's object. The group's pods may stay."""
        state = self.by_key.get(key)
        self.exclusive.pop(key, None)
        if state is not None:
            state.group = None
            state.succeeded_before = state.failed_before = 0
            self._close(state)
        return state

    def put_pod(self, pod: Pod) -> tuple[GroupState, ...]:
        """Add or update a pod. Returns the groups that changed."""
        uid, key = pod.metadata.uid or "", group_key_of(pod, self.kinds)
        left = self._left(uid, key)
        if key is None:
            return left
        state, status = self._open(key), member_status(pod, self._is_ours)
        state.sort_in(uid, pod, status)
        if status is not MemberStatus.PENDING:
            state.assumed.pop(uid, None)
        if status in _ALIVE:
            self._key_of[uid] = key
        else:
            # The pod has ended; later events do not change its status.
            self._key_of.pop(uid, None)
            self._close(state)
        return (*left, state)

    def remove_pod(self, uid: str) -> tuple[GroupState, ...]:
        """Remove a pod. Returns the groups that changed."""
        return self._left(uid, None)

    def _left(self, uid: str, key: GroupKey | None) -> tuple[GroupState, ...]:
        """Take a pod out of its earlier group, unless that is ``key``. Returns that group."""
        old = self._key_of.get(uid)
        if old is None or old == key:
            return ()
        del self._key_of[uid]
        state = self.by_key[old]
        state.take_out(uid)
        state.assumed.pop(uid, None)
        self._close(state)
        return (state,)

    # ---- what we decide -------------------------------------------------------------------

    def assume(self, placed: PodInfo) -> None:
        """Count a pod as placed."""
        state = self._member_state(placed)
        if state is not None and placed.uid in state.members[MemberStatus.PENDING]:
            state.assumed[placed.uid] = placed

    def forget(self, placed: PodInfo) -> None:
        """Undo `assume`."""
        state = self._member_state(placed)
        if state is not None:
            state.assumed.pop(placed.uid, None)

    def _member_state(self, pod: PodInfo) -> GroupState | None:
        key = pod.group_key
        return None if key is None else self.by_key.get(key)

    # ---- inside ---------------------------------------------------------------------------

    def _open(self, key: GroupKey) -> GroupState:
        state = self.by_key.get(key)
        if state is None:
            state = self.by_key[key] = GroupState(key)
            while self._on_first_group:
                self._on_first_group.pop(0)()
        return state

    def _close(self, state: GroupState) -> None:
        if state.is_empty:
            self.by_key.pop(state.key, None)
