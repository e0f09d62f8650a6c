"""One pass over a tree of groups: its groups are tried one after another in a trial.

A group of groups is tried in each domain that its topology allows, within the domain of the group
above. Its groups are tried in their order, as long as the minimum of them may still fit. The
placements of a group that does not fit are undone at once, so the next group finds the nodes free.
Of the domains in which the minimum fits, the plugins of PlacementScore choose one. Upstream:
schedule_one_podgroup.go (v1.37), podGroupSchedulingRecursiveAlgorithm.
"""

from collections.abc import Mapping, Sequence
from typing import final

from msgspec import Struct, field

from bayplan.api.pod_groups import GroupKey
from bayplan.engine.podgroups.domains import EVERYWHERE, best_pass, by_scores, placements
from bayplan.engine.podgroups.refusals import (
    in_no_placement,
    texts_of,
    too_few_scheduled,
)
from bayplan.engine.podgroups.trial import PlacedMember, PodGroupTrial, TrialSetup, UnplacedMember
from bayplan.framework.placements import Placement
from bayplan.framework.status import Status, is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Trial
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState


@final
class GroupVerdict(Struct, eq=False):
    """The verdict of a group. Groups whose parent failed share its verdict, and what is added to
    one of them is added to all, because upstream shares its Status in the same way."""

    fits: bool = False
    is_error: bool = False
    #: The text of the error, which precedes the reasons.
    error: str = ""
    reasons: list[str] = field(default_factory=list[str])

    @property
    def message(self) -> str:
        return ", ".join([self.error, *self.reasons] if self.error else self.reasons)

    @property
    def short_message(self) -> str:
        """The message as part of another one: without the reasons, if there is an error."""
        return self.error or ", ".join(self.reasons)


def failed_by(text: str) -> GroupVerdict:
    return GroupVerdict(is_error=True, error=text)


class GroupResult(Struct):
    """The result for one group of the tree."""

    verdict: GroupVerdict
    #: Whether a pod below found a node in this pass.
    is_any_placed: bool = False
    #: The members of a PodGroup that found nodes, and those that did not.
    placed: Sequence[PlacedMember] = ()
    unplaced: Sequence[UnplacedMember] = ()


TreeResults = dict[GroupKey, GroupResult]


@final
class TreePass:
    """One pass over a tree in a trial, with its results."""

    def __init__(
        self,
        setup: TrialSetup,
        trial: Trial,
        tree: GroupTree,
        members: Mapping[GroupKey, Sequence[QueuedPodInfo]],
    ) -> None:
        """``members``: by the key of the PodGroup, those that wait for a node."""
        self._setup = setup
        self._trial = trial
        self._tree = tree
        self._members = members
        self._profile_name = next(iter(members.values()))[0].pod.scheduler_name
        #: The passes whose placements are in the trial.
        self._passes: list[PodGroupTrial] = []
        self._texts = texts_of(setup.gates.behaviour)
        self.results: TreeResults = {}
        #: Plugins that rejected members.
        self.blamed: set[str] = set()

    @property
    def verdict(self) -> GroupVerdict:
        """The result for the root."""
        return self.results[self._tree.key].verdict

    @property
    def placed(self) -> list[PlacedMember]:
        """The members whose placements are in the trial, in their order."""
        return [member for each in self._passes for member in each.placed]

    def run(self) -> "TreePass":
        """Try the tree. If it fits, at least one pod found a node."""
        try:
            root = self._composite(self._tree, EVERYWHERE, self.results)
        except Exception:
            # The trial undoes its placements, but not the reservations of plugins.
            for each in reversed(self._passes):
                for placed in reversed(each.placed):
                    each.unreserve(placed)
            raise
        if root.verdict.fits and not root.is_any_placed:
            self.undo()
            root.verdict = self._none()
        return self

    def _none(self) -> GroupVerdict:
        """The verdict of a group whose pods found no node, although its minimum is met."""
        return GroupVerdict(error=self._texts.none_fits)

    def _nowhere(self, count: int, why_not_first: str) -> GroupVerdict:
        """The verdict of a group that fits in none of ``count`` domains."""
        reason = in_no_placement(count, why_not_first)
        return GroupVerdict(error=self._texts.error, reasons=[reason])

    def undo(self) -> None:
        """Undo all placements, the last one first."""
        self._undo_since(0)

    def _undo_since(self, mark: int) -> None:
        while len(self._passes) > mark:
            self._passes.pop().undo()

    # ---- a group of groups ----------------------------------------------------------------

    def _composite(self, tree: GroupTree, inside: Placement, results: TreeResults) -> GroupResult:
        domains = placements(self._setup, self._profile_name, tree, inside)
        if isinstance(domains, Status):
            result = self._unplaceable(domains)
        else:
            result = self._in_best_domain(tree, domains, results)
        results[tree.key] = result
        return result

    def _unplaceable(self, status: Status) -> GroupResult:
        """The result for a group without a placement to try or to choose."""
        self.blamed.add(status.plugin)
        if is_rejected(status):
            return GroupResult(GroupVerdict(reasons=list(status.reasons)))
        return GroupResult(failed_by(status.message))

    def _in_best_domain(
        self, tree: GroupTree, domains: Sequence[Placement], results: TreeResults
    ) -> GroupResult:
        mark, first = len(self._passes), TreeResults()
        sufficing: dict[Placement, list[PlacedMember]] = {}
        for domain in domains:
            tried = TreeResults()
            result = self._children(tree, domain, tried)
            if result.verdict.is_error:
                return result
            first = first or tried
            if result.verdict.fits:
                sufficing[domain] = [
                    member for each in self._passes[mark:] for member in each.placed
                ]
                if len(domains) == 1:
                    results |= tried
                    return result
            self._undo_since(mark)
        if not sufficing:
            results |= first
            short = first[tree.key].verdict.short_message
            return GroupResult(self._nowhere(len(domains), short))
        chosen = self._chosen(tree, sufficing)
        if isinstance(chosen, Status):
            return self._unplaceable(chosen)
        return self._children(tree, chosen, results)

    def _chosen(
        self, tree: GroupTree, sufficing: Mapping[Placement, Sequence[PlacedMember]]
    ) -> Placement | Status:
        if len(sufficing) == 1:
            return next(iter(sufficing))
        pods = {domain: [one.pod for one in placed] for domain, placed in sufficing.items()}
        return by_scores(self._setup, next(iter(self._members.values())), tree, pods)

    def _children(self, tree: GroupTree, inside: Placement, results: TreeResults) -> GroupResult:
        """Try the groups of a group within one domain. If too few of them fit, no placement
        stays."""
        mark = len(self._passes)
        result = results[tree.key] = self._as_many_as_fit(tree, inside, results)
        if not result.verdict.fits:
            self._undo_since(mark)
            result.is_any_placed = False
        return result

    def _as_many_as_fit(
        self, tree: GroupTree, inside: Placement, results: TreeResults
    ) -> GroupResult:
        needed = tree.group.min_group_count
        fit_count, untried_count, is_any_placed = 0, len(tree.children), False
        for child in tree.children:
            if fit_count + untried_count < needed:
                break
            if isinstance(child, GroupTree):
                result = self._composite(child, inside, results)
            else:
                result = results[child.key] = self._leaf(child, inside)
            if result.verdict.is_error:
                below = result.verdict.short_message
                text = f"composite pod group evaluation failed due to child error: {below}"
                return GroupResult(failed_by(text))
            is_any_placed |= result.is_any_placed
            untried_count -= 1
            fit_count += result.verdict.fits
        if fit_count >= needed:
            return GroupResult(GroupVerdict(fits=True), is_any_placed)
        return GroupResult(
            GroupVerdict(reasons=[too_few_scheduled(needed, fit_count, untried_count)])
        )

    # ---- a group of pods ------------------------------------------------------------------

    def _leaf(self, state: GroupState, inside: Placement) -> GroupResult:
        members = self._members.get(state.key, ())
        needed_count = state.min_member - state.assigned_count
        if members and len(members) >= needed_count:
            return self._pods(state, members, max(0, needed_count), inside)
        domains = placements(self._setup, self._profile_name, state, inside)
        if isinstance(domains, Status):
            return self._unplaceable(domains)
        if needed_count <= 0:
            return GroupResult(GroupVerdict(fits=True))
        # Too few members wait, so none of them is tried.
        return GroupResult(self._nowhere(len(domains), self._texts.none_fits))

    def _pods(
        self,
        state: GroupState,
        members: Sequence[QueuedPodInfo],
        needed_count: int,
        inside: Placement,
    ) -> GroupResult:
        setup, trial = self._setup, self._trial
        pass_ = best_pass(setup, trial, members, state, needed_count=needed_count, inside=inside)
        self.blamed |= pass_.blamed() | pass_.elsewhere
        if pass_.status is not None:
            return self._unplaceable(pass_.status)
        placed = list(pass_.placed)
        if pass_.fits(needed_count):
            self._passes.append(pass_)
            return GroupResult(GroupVerdict(fits=True), bool(placed), placed, pass_.unplaced)
        pass_.undo()
        verdict = self._why(state, members, pass_)
        return GroupResult(verdict, placed=placed, unplaced=pass_.unplaced)

    def _why(
        self, state: GroupState, members: Sequence[QueuedPodInfo], pass_: PodGroupTrial
    ) -> GroupVerdict:
        error = pass_.error
        if error is not None:
            return failed_by(f"failed to schedule other pod from a pod group: {error.message}")
        fit_count = len(pass_.placed)
        untried_count = len(members) - fit_count - len(pass_.unplaced)
        scheduled_count = state.assigned_count + fit_count
        short = too_few_scheduled(state.min_member, scheduled_count, untried_count)
        return self._nowhere(pass_.placement_count or 1, short)
