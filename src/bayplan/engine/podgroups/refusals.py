"""Refusals: how an attempt at a group failed, for the group and for each member.

The message of a `Refusal` is one sentence about the whole group. The journal and `why` show it, and
the conditions of members of the Coscheduling family have it. Groups of scheduling.k8s.io get what
kube-scheduler writes: a sentence about minCount for the group and the
members that fit, and for a member that does not fit its own reason. Upstream:
schedule_one_podgroup.go, submitPodGroupAlgorithmResult, and gangscheduling, PlacementFeasible.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bayplan.api.objects import PodSpec
from bayplan.engine.failures import CLEAR_NOMINATION, Failure
from bayplan.engine.podgroups.trial import PodGroupTrial, UnplacedMember
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.framework.types import Nomination, QueuedPodInfo
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import DEFAULT_SCHEDULER, PodInfo

#: Begins what is said of looking for pods to evict.
UPSTREAM_PREFIX: Final = "pod group preemption: "

_UNSCHEDULABLE: Final = "pod group is unschedulable"
_SAME: Final = "all pods in a single pod group should have the same"
_PREEMPT_LOWER: Final = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """Where members are to go, and who leaves."""

    #: (member, its node).
    placements: tuple[tuple[PodInfo, str], ...]
    victims: tuple[PodInfo, ...]

    @property
    def text(self) -> str:
        members, victims = len(self.placements), len(self.victims)
        return f"found potential placements for {members} pods, preempting {victims} victims"

    @property
    def upstream_text(self) -> str:
        count = len(self.victims)
        return f"{UPSTREAM_PREFIX}found a placement for podgroup, preempting {count} victims"

    @property
    def is_being_made(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Why nobody is evicted for a group."""

    text: str
    #: With what other PostFilter plugins say of the group.
    upstream_text: str
    #: Whether victims of an earlier attempt are leaving still.
    is_being_made: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an attempt at a group failed."""

    #: Of the group as a whole.
    failure: Failure
    #: What its condition says, if that is not the failure's message.
    condition_message: str = ""
    #: By uid, how it failed for a member; empty: as for the group, for all of them.
    members: Mapping[str, Failure] = field(default_factory=dict[str, Failure])


def reason(pass_: PodGroupTrial, state: GroupState, member_count: int) -> str:
    """Why a group does not fit, in upstream's words. ``member_count``: those that were to be
    tried."""
    if state.assigned_count >= state.min_member:
        text = _UNSCHEDULABLE
    else:
        fit_count = len(pass_.placed)
        scheduled_count = state.assigned_count + fit_count
        remaining_count = member_count - fit_count - len(pass_.unplaced)
        text = (
            f"minCount ({state.min_member}) cannot be satisfied: "
            f"{scheduled_count} scheduled, {remaining_count} remaining"
        )
    if pass_.placement_count is None:
        return text
    placements = f"0/{pass_.placement_count} placements are available"
    return f"{_UNSCHEDULABLE}, {placements}, first placement status: {text}"


def of_upstream(
    failure: Failure,
    pass_: PodGroupTrial,
    state: GroupState,
    members: Sequence[QueuedPodInfo],
    *,
    room: PreemptionPlan | NoPreemption | None,
) -> Refusal:
    """Too few members of a scheduling.k8s.io group fit, or one failed by an error.

    ``failure``: the group's, in our words; it decides how the members are requeued. ``room``: what
    came of looking for pods to evict; None: nobody looked.
    """
    if pass_.error is not None:
        return _by_error(failure, pass_.error, members)
    short = reason(pass_, state, len(members))
    whole = f"{short}, {'' if room is None else room.upstream_text}"
    is_being_made = room is not None and room.is_being_made
    unplaced = {one.queued.pod.uid: one for one in pass_.unplaced}
    placed = {one.cycle.pod.uid for one in pass_.placed}
    failures: dict[str, Failure] = {}
    for queued in members:
        uid = queued.pod.uid
        if uid in unplaced:
            failures[uid] = _own(unplaced[uid])
        elif uid not in placed:
            failures[uid] = _rejection(short, None)
        elif is_being_made:
            failures[uid] = _rejection(whole, None)
        else:
            failures[uid] = _rejection(f"{_UNSCHEDULABLE}, {whole}", CLEAR_NOMINATION)
    return Refusal(failure, whole, failures)


def by_error(failure: Failure, members: Iterable[QueuedPodInfo]) -> Refusal:
    """An error of the whole attempt is every member's."""
    cleared = Failure(failure.status, failure.message, None, CLEAR_NOMINATION)
    return Refusal(failure, "", {queued.pod.uid: cleared for queued in members})


def _by_error(failure: Failure, first: UnplacedMember, members: Iterable[QueuedPodInfo]) -> Refusal:
    text = f"failed to schedule other pod from a pod group: {first.message}"
    status = Status(Code.ERROR, (text,))
    failures = {queued.pod.uid: Failure(status, text, None, CLEAR_NOMINATION) for queued in members}
    failures[first.queued.pod.uid] = Failure(first.status, first.message, None, CLEAR_NOMINATION)
    return Refusal(failure, text, failures)


def _own(one: UnplacedMember) -> Failure:
    """A member's own reason. Where there is no node at all, it expects none."""
    nomination = CLEAR_NOMINATION if one.diagnosis is None else None
    return Failure(one.status, one.message, one.diagnosis, nomination)


def _rejection(message: str, nomination: Nomination | None) -> Failure:
    return Failure(unschedulable(message), message, None, nomination)


# ---- members that do not belong together ---------------------------------------------------------


def mismatch(state: GroupState, members: Iterable[QueuedPodInfo]) -> str:
    """Why no attempt is made at a scheduling.k8s.io group: its members, or those that hold nodes,
    differ in what they must share; "" where they do not. Upstream: validatePodGroup."""
    group = state.group
    waiting = [queued.pod.spec for queued in members]
    if group is None or not group.is_upstream or not waiting:
        return ""
    first, priority = waiting[0], group.priority or 0
    checks: tuple[Callable[[PodSpec], str], ...] = (
        lambda spec: _other_scheduler(spec, first),
        lambda spec: _other_priority(spec, priority),
        lambda spec: _other_policy(spec, first),
    )
    specs = (*waiting, *(pod.spec for pod in state.assigned()))
    texts = (check(spec) for spec in specs for check in checks)
    return next((text for text in texts if text), "")


def _other_scheduler(spec: PodSpec, first: PodSpec) -> str:
    name, expected = (each.scheduler_name or DEFAULT_SCHEDULER for each in (spec, first))
    if name == expected:
        return ""
    return f'{_SAME} .spec.schedulerName set, got: "{name}" and "{expected}"'


def _other_priority(spec: PodSpec, expected: int) -> str:
    priority = spec.priority or 0
    if priority == expected:
        return ""
    return f"{_SAME} priority as the pod group's priority, got {priority} and {expected}"


def _other_policy(spec: PodSpec, first: PodSpec) -> str:
    policy, expected = (each.preemption_policy or _PREEMPT_LOWER for each in (spec, first))
    return "" if policy == expected else f"{_SAME} preemption policy, got {policy} and {expected}"
