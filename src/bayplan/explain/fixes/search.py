"""The search for fixes: candidates are made from the causes, and each is tried in the engine.

A pod's own changes are tried first, then other objects, other workloads, and a new node last. If no
single change suffices, changes that help are combined: each step of a combined fix removes a cause
that hides the next one. Of a combination, steps that are not needed are dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

from bayplan.explain.diagnosis import Diagnosis, diagnose
from bayplan.explain.fixes.edits import Edit, EditNotPossibleError, apply_edits
from bayplan.explain.fixes.new_node import new_node_edits
from bayplan.explain.fixes.object_edits import object_edits
from bayplan.explain.fixes.resource_edits import lower_requests
from bayplan.explain.fixes.rule_edits import device_edits, priority_edits, rule_edits
from bayplan.explain.fixes.workload_edits import room_edits
from bayplan.model.cluster_model import Attempt, ClusterModel

#: Attempts that a search makes at most, so that its time is bounded.
TRIALS_MAX = 400
#: Steps of one fix, and combinations that are extended.
_STEPS_MAX = 4
_EXTENDED_MAX = 8
#: Fixes that are returned, and of one subject.
_FIXES_MAX = 8
_OF_ONE_SUBJECT_MAX = 3

_ORDER = ("pod", "object", "workload", "node")


@final
@dataclass(slots=True)
class Solution:
    """Edits with which the pod gets a node."""

    edits: tuple[Edit, ...]
    attempt: Attempt

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(edit.text for edit in self.edits)

    @property
    def changes_what(self) -> str:
        """The subject that weighs most."""
        return max((edit.changes_what for edit in self.edits), key=_ORDER.index)


@final
@dataclass(slots=True)
class Search:
    """One search for one pod."""

    model: ClusterModel
    #: "namespace/name"
    pod: str
    #: The pods that a change of the pod's template changes.
    peers: Sequence[str]
    trials: int = 0
    solutions: list[Solution] = field(default_factory=list[Solution])

    def run(self, diagnosis: Diagnosis) -> list[Solution]:
        """Solutions, the mildest first."""
        for drops_devices in (False, True):
            frontier: list[tuple[Edit, ...]] = [()]
            for _ in range(_STEPS_MAX):
                frontier = self._extend(frontier, diagnosis, drops_devices=drops_devices)
                if self.solutions or not frontier:
                    break
            if self.solutions or not diagnosis.attempt.pod.spec.resource_claims:
                break
        if diagnosis.node_count:
            self._try_all((), new_node_edits(self.model, diagnosis), enough=1)
        self.solutions.sort(key=lambda each: _ORDER.index(each.changes_what))
        return self._selected()

    def _selected(self) -> list[Solution]:
        """The first of each subject, without those that contain another."""
        selected: list[Solution] = []
        for each in self.solutions:
            same = [s for s in selected if s.changes_what == each.changes_what]
            contained = any(s.texts < each.texts for s in selected)
            if len(same) < _OF_ONE_SUBJECT_MAX and not contained:
                selected.append(each)
        return selected[:_FIXES_MAX]

    def _extend(
        self, frontier: Iterable[tuple[Edit, ...]], first: Diagnosis, *, drops_devices: bool
    ) -> list[tuple[Edit, ...]]:
        """Try one more edit with each combination. Returns the combinations that help."""
        helpful: list[tuple[Edit, ...]] = []
        for edits in frontier:
            if self.trials >= TRIALS_MAX:
                break
            with self.model.trial():
                try:
                    apply_edits(self.model, self.peers, edits)
                except EditNotPossibleError:
                    continue
                diagnosis = diagnose(self.model, self.pod) if edits else first
                candidates = list(self._candidates(diagnosis))
                if drops_devices:
                    candidates = [*device_edits(diagnosis), *candidates]
            helpful += self._try_all(edits, candidates, message=diagnosis.attempt.reason)
        return helpful[:_EXTENDED_MAX]

    def _candidates(self, diagnosis: Diagnosis) -> Iterator[Edit]:
        yield from lower_requests(diagnosis, to_nothing=False)
        yield from rule_edits(self.model, diagnosis)
        yield from priority_edits(self.model, diagnosis)
        yield from lower_requests(diagnosis, to_nothing=True)
        yield from object_edits(self.model, diagnosis)
        yield from room_edits(self.model, diagnosis, self.pod)

    def _try_all(
        self,
        edits: tuple[Edit, ...],
        candidates: Iterable[Edit],
        *,
        message: str = "",
        enough: int = _FIXES_MAX,
    ) -> list[tuple[Edit, ...]]:
        """Returns the combinations that change the sentence and do not suffice."""
        helpful: list[tuple[Edit, ...]] = []
        families: set[str] = set()
        for candidate in candidates:
            family = _family(candidate)
            if self.trials >= TRIALS_MAX or enough <= 0:
                break
            if family in families:
                continue
            combined = (*edits, candidate)
            attempt = self.attempt_with(combined)
            if attempt is None:
                continue
            if attempt.fits or attempt.nominated_node:
                families.add(family)
                enough -= 1
                self.solutions.append(self._without_needless_steps(Solution(combined, attempt)))
            elif attempt.reason != message:
                helpful.append(combined)
        return helpful

    def attempt_with(self, edits: tuple[Edit, ...]) -> Attempt | None:
        """An attempt with these edits; None: they cannot be applied."""
        self.trials += 1
        with self.model.trial():
            try:
                apply_edits(self.model, self.peers, edits)
                return self.model.attempt(self.pod)
            except (EditNotPossibleError, KeyError):
                return None

    def _without_needless_steps(self, solution: Solution) -> Solution:
        for edit in solution.edits[:-1]:
            fewer = tuple(each for each in solution.edits if each is not edit)
            attempt = self.attempt_with(fewer)
            if attempt is not None and (attempt.fits or attempt.nominated_node):
                solution = Solution(fewer, attempt)
        return solution


def _family(edit: Edit) -> str:
    """Edits of one family differ in how far they go: the first that suffices is enough."""
    text = edit.text
    is_amount = text.startswith(("raise maxSkew", "lower the request"))
    return text.partition(" from ")[0] if is_amount else text
