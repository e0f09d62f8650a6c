"""Refusals: how an attempt at a group failed, for the group and for each member.

The message of a `Refusal` is one sentence about the whole group. The journal and `why` show it, and
the conditions of members of the Coscheduling family have it. Groups of scheduling.k8s.io get what
kube-scheduler writes: a sentence about minCount for the group and the members that fit, and its own
reason for each member that does not fit. Upstream: schedule_one_podgroup.go,
submitPodGroupAlgorithmResult, and gangscheduling, PlacementFeasible.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from bayplan.api.objects import DEFAULT_SCHEDULER, PREEMPT_LOWER_PRIORITY, Pod, PodSpec
from bayplan.config.behaviour import Behaviour
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, failure_by_error
from bayplan.engine.podgroups.trial import PassResult, UnplacedMember
from bayplan.framework.status import Code, Status, is_rejected, unschedulable
from bayplan.framework.types import Nomination, QueuedPodInfo
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

#: The beginning of messages about preemption for a group.
UPSTREAM_PREFIX: Final = "pod group preemption: "

_UNSCHEDULABLE: Final = "pod group is unschedulable"


class PreemptionPlan(Struct, frozen=True):
    """The nodes for the members, and the victims to evict."""

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


class NoPreemption(Struct, frozen=True):
    """Why no pod is evicted for a group."""

    text: str
    #: The reason, with the reasons of the other plugins of PodGroupPostFilter.
    upstream_text: str
    #: Whether victims of an earlier attempt are still terminating.
    is_being_made: bool = False
    #: Whether no other plugin can help the group either.
    is_unresolvable: bool = False

    @property
    def is_final(self) -> bool:
        """Whether no further plugin is called."""
        return self.is_being_made or self.is_unresolvable


class Refusal(Struct, frozen=True):
    """How an attempt at a group failed."""

    #: The failure of the group as a whole.
    failure: Failure
    #: The message of the group's condition, if it differs from the failure's message.
    condition_message: str = ""
    #: By uid: the failure of a member; empty: all members have the failure of the group.
    members: Mapping[str, Failure] = field(default_factory=dict[str, Failure])


class GroupTexts(Struct, frozen=True):
    """What a version of kube-scheduler says about groups that do not fit."""

    #: The beginning of messages about a whole group.
    prefix: str = f"{_UNSCHEDULABLE}, "
    #: The message if the minimum is met without the members to try, and none of them fits.
    none_fits: str = _UNSCHEDULABLE
    #: Whether a search for victims without a message leaves a comma.
    keeps_empty: bool = True
    #: The reason of the condition of a group whose members differ in what all must share.
    mismatch_reason: str = "SchedulerError"
    #: The beginning of the message about such a difference, the group's name in it, and whether it
    #: names the pods.
    same: str = "all pods in a single pod group should have the same"
    group: str = "pod group"
    names_pods: bool = False

    @property
    def error(self) -> str:
        """The text of the error of a group that does not fit; "": it has none."""
        return self.prefix.removesuffix(", ")


def texts_of(behaviour: Behaviour) -> GroupTexts:
    if not behaviour.group_messages_are_plain:
        return GroupTexts()
    return GroupTexts(
        prefix="",
        none_fits="no pods were schedulable",
        keeps_empty=False,
        mismatch_reason="PodGroupError",
        same="all pods in a pod group hierarchy should have the same",
        group="root pod group",
        names_pods=True,
    )


def reason(pass_: PassResult, state: GroupState, member_count: int, texts: GroupTexts) -> str:
    """Why a group does not fit, as upstream says it. ``member_count``: the members to try."""
    if pass_.status is not None:
        return pass_.status.message
    if state.assigned_count >= state.min_member:
        text = texts.none_fits
    else:
        fit_count = len(pass_.placed)
        scheduled_count = state.assigned_count + fit_count
        remaining_count = member_count - fit_count - len(pass_.unplaced)
        text = too_few_scheduled(state.min_member, scheduled_count, remaining_count)
    if pass_.placement_count is None:
        return text
    return f"{texts.prefix}{in_no_placement(pass_.placement_count, text)}"


def too_few_scheduled(minimum: int, scheduled_count: int, remaining_count: int) -> str:
    """The message about too few pods, or about too few groups in a tree of groups. Upstream:
    gangscheduling, PlacementFeasible."""
    counts = f"{scheduled_count} scheduled, {remaining_count} remaining"
    return f"minCount ({minimum}) cannot be satisfied: {counts}"


def in_no_placement(count: int, first: str) -> str:
    """The message about a group that fits in none of ``count`` placements. ``first``: why no node
    of the first placement fits."""
    return f"0/{count} placements are available, first placement status: {first}"


def of_upstream(
    failure: Failure,
    pass_: PassResult,
    state: GroupState,
    members: Sequence[QueuedPodInfo],
    *,
    preemption: PreemptionPlan | NoPreemption | None,
    texts: GroupTexts,
) -> Refusal:
    """The refusal of a scheduling.k8s.io group: too few members fit, or one failed with an error.

    ``failure``: the failure of the group as Bayplan describes it, which decides how the members are
    requeued. ``preemption``: the result of the search for victims; None: there was no search.
    """
    if pass_.error is not None:
        return _by_error(failure, pass_.error, members)
    short = reason(pass_, state, len(members), texts)
    about_victims = "" if preemption is None else preemption.upstream_text
    whole = f"{short}, {about_victims}" if about_victims or texts.keeps_empty else short
    is_being_made = preemption is not None and preemption.is_being_made
    unplaced = {one.queued.pod.uid: one for one in pass_.unplaced}
    placed = {one.uid for one in pass_.placed}
    failures: dict[str, Failure] = {}
    for queued in members:
        uid = queued.pod.uid
        if uid in unplaced:
            failures[uid] = failure_of_member(unplaced[uid])
        elif uid not in placed:
            failures[uid] = rejection(short, None)
        elif is_being_made:
            failures[uid] = rejection(whole, None)
        else:
            failures[uid] = rejection(f"{texts.prefix}{whole}", CLEAR_NOMINATION)
    return Refusal(failure, whole, failures)


def without_placement(
    failure: Failure,
    status: Status,
    members: Iterable[QueuedPodInfo],
    preemption: PreemptionPlan | NoPreemption | None,
) -> Refusal:
    """The refusal of a scheduling.k8s.io group without a placement to try or to choose, which is
    the refusal of every member."""
    text = status.message
    if not is_rejected(status):
        return Refusal(failure, text, dict.fromkeys(_uids(members), failure_by_error(status, text)))
    about_victims = "" if preemption is None else preemption.upstream_text
    whole = ", ".join(filter(None, (text, about_victims)))
    return Refusal(failure, whole, dict.fromkeys(_uids(members), rejection(text, None)))


def _uids(members: Iterable[QueuedPodInfo]) -> list[str]:
    return [queued.pod.uid for queued in members]


def by_error(failure: Failure, members: Iterable[QueuedPodInfo]) -> Refusal:
    """The refusal for an error of the whole attempt, which is the error of every member."""
    own = failure_by_error(failure.status, failure.message)
    return Refusal(failure, "", {queued.pod.uid: own for queued in members})


def _by_error(failure: Failure, first: UnplacedMember, members: Iterable[QueuedPodInfo]) -> Refusal:
    text = f"failed to schedule other pod from a pod group: {first.message}"
    status = Status(Code.ERROR, (text,))
    failures = {queued.pod.uid: failure_by_error(status, text) for queued in members}
    failures[first.queued.pod.uid] = failure_by_error(first.status, first.message)
    return Refusal(failure, text, failures)


def failure_of_member(one: UnplacedMember) -> Failure:
    """The failure of one member. Without any node in the cluster, its nomination is cleared."""
    nomination = CLEAR_NOMINATION if one.diagnosis is None else None
    return Failure(one.status, one.message, one.diagnosis, nomination)


def rejection(message: str, nomination: Nomination | None = None) -> Failure:
    return Failure(unschedulable(message), message, None, nomination)


# ---- members that do not belong together ---------------------------------------------------------


def mismatch(
    state: GroupState,
    members: Iterable[QueuedPodInfo],
    texts: GroupTexts,
    *,
    groups_have_policies: bool,
) -> str:
    """Why no attempt is made at a scheduling.k8s.io group: a waiting or placed member differs in a
    field that all members must share; "" if none does. Upstream: validatePodGroup.

    ``groups_have_policies``: whether the preemption policy of the group counts, or that of the
    first member (gate PodGroupPreemptionPolicy).
    """
    group = state.group
    if group is None or not group.is_upstream:
        return ""
    policy = (group.preemption_policy or PREEMPT_LOWER_PRIORITY) if groups_have_policies else None
    root = _Root(f"podgroup/{state.key}", group.priority or 0, policy)
    return _first_difference(root, members, state.assigned(), texts)


def mismatch_in_tree(
    tree: GroupTree,
    members: Iterable[QueuedPodInfo],
    texts: GroupTexts,
    *,
    groups_have_policies: bool,
) -> str:
    """As `mismatch`, for a tree of groups. Its root counts as the group."""
    spec = tree.group.spec
    policy = (spec.preemption_policy or PREEMPT_LOWER_PRIORITY) if groups_have_policies else None
    root = _Root(f"compositepodgroup/{tree.key}", spec.priority or 0, policy)
    return _first_difference(root, members, tree.assigned(), texts)


def _first_difference(
    root: "_Root",
    members: Iterable[QueuedPodInfo],
    assigned: Iterable[Pod | PodInfo],
    texts: GroupTexts,
) -> str:
    waiting = [_Member(queued.pod.name, queued.pod.spec) for queued in members]
    placed = (_Member(pod.metadata.name, pod.spec) for pod in assigned)
    differences = (_difference(each, waiting[0], root, texts) for each in (*waiting, *placed))
    return next((text for text in differences if text), "") if waiting else ""


class _Member(NamedTuple):
    name: str
    spec: PodSpec


class _Root(NamedTuple):
    """The group as kube-scheduler names it, its priority, and its preemption policy. None: the
    policy of the first member counts."""

    name: str
    priority: int
    preemption_policy: str | None


def _difference(member: _Member, first: _Member, root: _Root, texts: GroupTexts) -> str:
    """The first field in which a member differs from the first member or the group, in words; "":
    none."""
    scheduler, expected_scheduler = (
        each.spec.scheduler_name or DEFAULT_SCHEDULER for each in (member, first)
    )
    policy, expected_policy = (
        each.spec.preemption_policy or PREEMPT_LOWER_PRIORITY for each in (member, first)
    )
    priority = member.spec.priority or 0

    def got(actual: object, expected: object, *, of: str) -> str:
        if not texts.names_pods:
            return f"got {actual} and {expected}"
        return f'got {actual} ("{member.name}") and {expected} ("{of}")'

    if scheduler != expected_scheduler:
        names = got(f'"{scheduler}"', f'"{expected_scheduler}"', of=first.name)
        return f"{texts.same} .spec.schedulerName set, {names.replace('got', 'got:', 1)}"
    if priority != root.priority:
        group = f"{texts.group}'s priority"
        return f"{texts.same} priority as the {group}, {got(priority, root.priority, of=root.name)}"
    if root.preemption_policy is not None:
        expected_policy = root.preemption_policy
        if policy != expected_policy:
            whose = f"the {texts.group}'s preemption policy"
            names = got(policy, expected_policy, of=root.name)
            return f"{texts.same} preemption policy as {whose}, {names}"
    elif policy != expected_policy:
        return f"{texts.same} preemption policy, {got(policy, expected_policy, of=first.name)}"
    return ""


def topology_problem(state: GroupState) -> str:
    """What is wrong with an annotation of the group about its topology; "": nothing."""
    problem = "" if state.group is None else state.group.topology_problem
    return f"group {state.key}: {problem}" if problem else ""
