"""The search for fixes: candidates are made from the causes, and each is tried.

A candidate is first tried quickly, with one attempt at the pod. If the pod fits, the candidate is
written as commands. Then the commands are tried with admission and controllers (`consequences`),
and only that trial decides. If no single change suffices, changes that help are combined. Each step
of a combined fix removes a cause that hides the next one. Steps of a combination that are not
needed are dropped. Fixes are in the order of their harm (`Harm`).
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

import msgspec
from msgspec import structs

from bayplan.answers.names import listed_names
from bayplan.api.objects import POD, Pod, PodSpec, decode
from bayplan.explain.diagnosis import NodeDiagnosis, diagnose
from bayplan.explain.explanation import Fix
from bayplan.explain.fixes.consequences import Consequences, Outcome
from bayplan.explain.fixes.edits import (
    Edit,
    EditNotPossibleError,
    Harm,
    ObjectEdit,
    PodEdit,
    edited_spec,
    plain,
)
from bayplan.explain.fixes.group_edits import group_edits
from bayplan.explain.fixes.new_node import new_node_edits
from bayplan.explain.fixes.object_edits import object_edits
from bayplan.explain.fixes.owners import Owners
from bayplan.explain.fixes.resource_edits import lower_requests
from bayplan.explain.fixes.rule_edits import device_edits, priority_edits, rule_edits
from bayplan.explain.fixes.workload_edits import room_edits
from bayplan.explain.fixes.writing import fix_of
from bayplan.explain.levels import ComparedLevel, levels_of
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.independent_pods import IndependentPods
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: The most attempts of a search, so that its time is bounded.
TRIALS_MAX = 400
#: The most candidates whose commands are tried.
WRITTEN_MAX = 60
#: The most steps of one fix, and the most combinations that are extended.
_STEPS_MAX = 4
_EXTENDED_MAX = 8
#: The most fixes that are returned, and the most of one harm.
_FIXES_MAX = 8
_OF_ONE_HARM_MAX = 3


@final
@dataclass(slots=True)
class Solution:
    """Edits whose commands give the pod, or others of its workload, a node."""

    edits: tuple[Edit, ...]
    fix: Fix

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(edit.text for edit in self.edits)

    @property
    def harm(self) -> Harm:
        return max(edit.harm for edit in self.edits)

    @property
    def is_whole(self) -> bool:
        """Whether all pods of the workload that wait get a node."""
        return self.fix.helped >= self.fix.waiting


@final
@dataclass(slots=True)
class Search:
    """One search for one pod."""

    model: ClusterModel
    owners: Owners
    pod: PodInfo
    #: "namespace/name" of the pods that wait and that a change of the pod's template changes, the
    #: pod among them.
    peers: Sequence[str]
    #: The levels of the pod's group in the unchanged cluster; None: they are not computed yet.
    levels: Sequence[ComparedLevel] | None = None
    #: The most attempts, and the most candidates whose commands are tried.
    trials_max: int = TRIALS_MAX
    written_max: int = WRITTEN_MAX
    trials: int = 0
    written: int = 0
    solutions: list[Solution] = field(default_factory=list[Solution])
    #: By the identity of a spec. The spec is stored, too, so that the identity stays valid.
    _templates: dict[int, tuple[PodSpec, bytes]] = field(
        default_factory=dict[int, tuple[PodSpec, bytes]]
    )
    #: Attempts with new nodes, by the node that is copied.
    _with_copies: dict[Hashable, Attempt] = field(default_factory=dict[Hashable, Attempt])

    def run(self, diagnosis: NodeDiagnosis) -> list[Solution]:
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
            waiting_count = len(self.peers) + self.owners.missing(self.owners.of(self.pod))
            edits = new_node_edits(self.model, diagnosis, waiting_count)
            self._try_all((), edits, are_one_family=True)
        self.solutions.sort(key=lambda each: (each.harm, not each.is_whole, -each.fix.helped))
        return self._selected()

    def _selected(self) -> list[Solution]:
        """The first solutions of each harm, without solutions that contain another one."""
        selected: list[Solution] = []
        counts: Counter[Harm] = Counter()
        for each in self.solutions:
            contained = any(s.texts <= each.texts for s in selected)
            if counts[each.harm] < _OF_ONE_HARM_MAX and not contained:
                counts[each.harm] += 1
                selected.append(each)
        return selected[:_FIXES_MAX]

    def _extend(
        self, frontier: Iterable[tuple[Edit, ...]], first: NodeDiagnosis, *, drops_devices: bool
    ) -> list[tuple[Edit, ...]]:
        """Try one more edit with each combination. Returns the combinations that help."""
        helpful: list[tuple[Edit, ...]] = []
        for edits in frontier:
            if self.trials >= self.trials_max:
                break
            with self.model.trial():
                try:
                    self._apply(edits)
                except EditNotPossibleError:
                    continue
                diagnosis = diagnose(self.model, self.pod.key) if edits else first
                candidates = list(self._candidates(diagnosis, self._levels(edits, diagnosis)))
                if drops_devices:
                    candidates = [*device_edits(diagnosis), *candidates]
            helpful += self._try_all(edits, candidates, message=diagnosis.attempt.reason)
        return helpful[:_EXTENDED_MAX]

    def _levels(self, edits: tuple[Edit, ...], diagnosis: NodeDiagnosis) -> Sequence[ComparedLevel]:
        """The levels of the pod's group after these edits."""
        if not edits and self.levels is not None:
            return self.levels
        state = self.model.scheduler.pod_groups.of(diagnosis.attempt.pod)
        return () if state is None else levels_of(self.model, state)

    def _candidates(
        self, diagnosis: NodeDiagnosis, levels: Sequence[ComparedLevel]
    ) -> Iterator[Edit]:
        yield from lower_requests(diagnosis)
        yield from rule_edits(self.model, self.owners, diagnosis)
        yield from priority_edits(self.model, diagnosis)
        yield from object_edits(self.model, self.owners, diagnosis)
        yield from group_edits(self.model, self.owners, diagnosis, levels)
        yield from room_edits(self.model, self.owners, diagnosis)

    def _try_all(
        self,
        edits: tuple[Edit, ...],
        candidates: Iterable[Edit],
        *,
        message: str = "",
        are_one_family: bool = False,
    ) -> list[tuple[Edit, ...]]:
        """Returns the combinations that change the sentence and do not suffice.

        For each family, the first edit that helps the whole workload is enough. Until there is one,
        an edit that helps more pods replaces one that helps fewer.
        """
        helpful: list[tuple[Edit, ...]] = []
        families: dict[str, Solution] = {}
        for candidate in candidates:
            best = families.get(candidate.family) if candidate.family else None
            if self.trials >= self.trials_max or self.written >= self.written_max:
                break
            if best is not None and best.is_whole:
                if are_one_family:
                    break
                continue
            if not edits and self._is_crowded_out(candidate):
                continue
            combined = (*edits, candidate)
            solution, reason = self._solution(combined)
            if solution is not None and (best is None or solution.fix.helped > best.fix.helped):
                solution = self._without_needless_steps(solution)
                if best is not None:
                    self.solutions.remove(best)
                families[candidate.family] = solution
                self.solutions.append(solution)
            elif solution is None and reason not in ("", message):
                helpful.append(combined)
        return helpful

    def _is_crowded_out(self, candidate: Edit) -> bool:
        """Whether enough other changes of the same harm would come before a change of what
        controllers do, although none of them helps more pods."""
        if not isinstance(candidate, ObjectEdit) or not candidate.needs_controllers:
            return False
        whole = {
            each.texts for each in self.solutions if each.is_whole and each.harm == candidate.harm
        }
        return len(whole) >= _OF_ONE_HARM_MAX

    # ---- one candidate ----------------------------------------------------------------------

    def _solution(self, edits: tuple[Edit, ...]) -> tuple[Solution | None, str]:
        """Returns (the solution or None; why the pod still does not fit, if that is known)."""
        if not any(isinstance(edit, ObjectEdit) and edit.needs_controllers for edit in edits):
            attempt = self.attempt_with(edits)
            if attempt is None:
                return None, ""
            if not attempt.fits and not attempt.nominated_node:
                return None, attempt.reason
        try:
            fix = fix_of(self.model, self.owners, self.pod, self.peers, edits=edits)
            outcome = self.outcome_of(fix, edits)
        except EditNotPossibleError:
            return None, ""
        if not outcome.helped:
            return None, ""
        notes: tuple[str, ...] = ()
        if outcome.victims:
            notes = (f"preemption evicts {printable(listed_names(outcome.victims))}",)
        tried = structs.replace(
            fix,
            node=outcome.node,
            waiting=outcome.waiting,
            helped=outcome.helped,
            is_bounded=outcome.is_bounded,
            notes=(*fix.notes, *notes),
        )
        return Solution(edits, tried), ""

    def outcome_of(self, fix: Fix, edits: Sequence[Edit]) -> Outcome:
        """The outcome of the commands of a fix. Raises EditNotPossibleError."""
        self.written += 1
        copied = (edit.copied_node for edit in edits if isinstance(edit, ObjectEdit))
        workload = self.owners.of(self.pod)
        with self.model.trial():
            consequences = Consequences(
                self.model,
                self.owners,
                workload=workload,
                copied_node=next(filter(None, copied), ""),
            )
            return consequences.of(fix.changes, self.pod.key, self.peers)

    def attempt_with(self, edits: tuple[Edit, ...]) -> Attempt | None:
        """A quick attempt at the pod with these edits; None: they cannot be applied.

        Several equal new nodes have the same outcome for a single pod as one of them.
        """
        self.trials += 1
        key = self._of_copies(edits)
        attempt = None if key is None else self._with_copies.get(key)
        if attempt is None:
            attempt = self._attempt_with(edits)
            if attempt is not None and key is not None and not attempt.nominated_node:
                self._with_copies[key] = attempt
        return attempt

    def _of_copies(self, edits: tuple[Edit, ...]) -> Hashable | None:
        """The attempt for edits that add different numbers of equal nodes; None: the number may
        matter to the attempt."""
        if len(edits) != 1 or self.pod.group_key is not None:
            return None
        edit = edits[0]
        if not isinstance(edit, ObjectEdit) or not edit.copied_node:
            return None
        is_known = self.model.once(IndependentPods).has_known_plugins
        return (edit.copied_node, edit.harm) if is_known else None

    def _attempt_with(self, edits: tuple[Edit, ...]) -> Attempt | None:
        with self.model.trial():
            try:
                self._apply(edits)
            except EditNotPossibleError:
                return None
            return self.model.attempt(self.pod.key)

    def _apply(self, edits: tuple[Edit, ...]) -> None:
        """Apply edits to the objects and to the pods that wait. Raises EditNotPossibleError."""
        for edit in edits:
            if isinstance(edit, ObjectEdit):
                consequences = Consequences(
                    self.model, self.owners, workload=None, copied_node=edit.copied_node
                )
                consequences.make(edit.changes)
        pod_edits = [edit for edit in edits if isinstance(edit, PodEdit)]
        tried: set[bytes] = set()
        for name in self.peers if pod_edits else ():
            pod = self.model.pod(name)
            if pod is None:
                continue
            template, counts = self._template(pod), self._counts(name, pod)
            if template in tried and not counts:
                continue
            tried.add(template)
            content = plain(pod)
            changed = {**content, "spec": edited_spec(content["spec"], pod_edits)}
            if counts:
                self.model.replace(POD, decode(POD, changed))

    def _counts(self, name: str, pod: Pod) -> bool:
        """Whether a waiting pod matters to an attempt at the pod. The pod itself, the members of
        its group, and pods that are nominated to a node matter."""
        is_own = name == self.pod.key or self.pod.group_key is not None
        return is_own or bool(pod.status.nominated_node_name)

    def _template(self, pod: Pod) -> bytes:
        """What edits read of a pod. It is equal for pods of one template, although their volumes
        for tokens have names of their own."""
        made = self._templates.get(id(pod.spec))
        if made is None:
            encoded = msgspec.json.encode(structs.replace(pod.spec, volumes=None))
            made = self._templates[id(pod.spec)] = (pod.spec, encoded)
        return made[1]

    def _without_needless_steps(self, solution: Solution) -> Solution:
        for edit in solution.edits[:-1]:
            fewer = tuple(each for each in solution.edits if each is not edit)
            shorter, _ = self._solution(fewer)
            if shorter is not None and shorter.fix.helped >= solution.fix.helped:
                solution = shorter
        return solution
