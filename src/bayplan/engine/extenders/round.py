"""The round of extender calls of one cycle: questions, answers, and what follows from them.

A cycle starts again when an answer comes. Each step takes the answers that exist, in the order of
the questions. Upstream: schedule_one.go, findNodesThatPassExtenders, prioritizeNodes.

A preemption's candidates go through the extenders one after another; each sees what the one before
left. An extender may remove nodes, change the victims of a node, and name nodes of its own. If a
candidate changed during the call, it is dropped, because the answer is about other pods. Upstream:
extender.go, ProcessPreemption; framework/preemption/preemption.go, callExtenders.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from bayplan.engine.extenders.results import (
    Answered,
    Extender,
    Extenders,
    Question,
    add_scores,
    applied,
    keep_only,
)
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.preemption import CandidateReview, Candidates, Victims
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.state.columns import is_any
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

# ---- candidates of a preemption -------------------------------------------------------------


@final
@dataclass(slots=True)
class CandidatesAfterReview:
    """Candidates, as far as answers have come."""

    left: dict[str, Victims]
    #: Names of candidates that are not now what was asked about.
    changed: set[str] = field(default_factory=set[str])
    #: Whose answer was passed over as a whole or for a node, and why.
    passed_over: list[str] = field(default_factory=list[str])

    def question(self, extender: Extender) -> Question:
        return Question((extender,), tuple(self.left), ExtenderVerb.PREEMPT, self.left)

    def take(self, answered: Answered, nodes: NodeView) -> Status | None:
        """Leave what an answer leaves; ``nodes``: all there are. Returns the Error that ends it."""
        question, (answer,) = answered.question, answered.answers
        extender = question.extender
        if answer.error:
            return None if extender.ignorable else Status(Code.ERROR, (answer.error,))
        changed = {name for name in question.victims if not self._is_unchanged(name, question)}
        found = _pods(extender, answer, changed, nodes)
        if isinstance(found, str):
            return self._wrong(extender, found)
        for name in [name for name, victims in found.items() if not victims.pods]:
            text = f'expected at least one victim pod on node "{name}"'
            status = self._wrong(extender, text)
            if status is not None:
                return status
            del found[name]
        self.changed |= changed
        self.left = found
        return None

    def _is_unchanged(self, name: str, question: Question) -> bool:
        now = self.left.get(name)
        return now is not None and _uids(now) == _uids(question.victims[name])

    def _wrong(self, extender: Extender, text: str) -> Status | None:
        if not extender.ignorable:
            return Status(Code.ERROR, (text,))
        self.passed_over.append(f"{extender.name}: {text}")
        return None


def _uids(victims: Victims) -> list[str]:
    return [pod.uid for pod in victims.pods]


def _pods(
    extender: Extender, answer: ExtenderAnswer, changed: set[str], nodes: NodeView
) -> dict[str, Victims] | str:
    """Whom an answer names, but for nodes that have changed. A text: there is no such node or
    pod."""
    found: dict[str, Victims] = {}
    for name, named in answer.victims.items():
        if name in changed:
            continue
        position = nodes.position(name)
        if position is None:
            claim = f'extender "{extender.name}" claims to preempt pods on node "{name}"'
            return f"{claim}, but there is no such node"
        there = {pod.uid: pod for pod in nodes.info(position).pods}
        unknown = [uid for uid in named.uids if uid not in there]
        if unknown:
            where = f"pod (UID: {unknown[0]}) on node: {name}"
            said = f"extender: {extender.name} claims to preempt {where}"
            return f"{said}, but the pod is not found on that node"
        pods = tuple(there[uid] for uid in named.uids)
        found[name] = Victims(pods, named.pdb_violation_count)
    return found


# ---- one round ------------------------------------------------------------------------------


#: So often candidates may have changed while they were asked about, all of them.
_REVIEWS_MAX: Final = 10


@final
@dataclass(slots=True)
class ExtenderRound:
    """The extender calls of one attempt."""

    _filters: tuple[Answered, ...] = ()
    _scores: Answered | None = None
    _reviews: tuple[Answered, ...] = ()
    _review_count: int = 0
    #: Nodes that filters rejected.
    statuses: dict[str, Status] = field(default_factory=dict[str, Status])
    #: Whether extenders answered about nodes: other nodes take no part in this attempt.
    has_answers: bool = False
    #: Whether the node that the pod is nominated to was tried and does not fit.
    is_nominated_node_out: bool = False

    def take(self, answered: Answered) -> None:
        """A question was answered."""
        if answered.question.verb is ExtenderVerb.PRIORITIZE:
            self._scores, self.has_answers = answered, True
        elif answered.question.verb is ExtenderVerb.PREEMPT:
            self._reviews += (answered,)
        else:
            self._filters += (answered,)
            self.has_answers = True

    def begin_anew(self) -> None:
        """The cycle is walked once more; what was answered stays."""
        self.statuses.clear()

    def give_up_nominated_node(self) -> None:
        """What was answered about it counts no more."""
        self.is_nominated_node_out = True
        self._filters, self.has_answers = (), self._scores is not None
        self.statuses.clear()

    # ---- the steps ------------------------------------------------------------------------

    def filter(
        self, extenders: Extenders, pod: PodInfo, outcome: FilterOutcome
    ) -> Question | Status | None:
        """One after another, each about the nodes that those before left: what to ask next, or how
        the attempt ends."""
        for answered in self._filters:
            status = applied(answered, outcome, self.statuses)
            if status is not None:
                return status
        if not is_any(outcome.feasible):
            return unschedulable()
        unasked = extenders.interested(pod, ExtenderVerb.FILTER)[len(self._filters) :]
        return _question(outcome, unasked[:1], ExtenderVerb.FILTER) if unasked else None

    def prioritize(
        self, extenders: Extenders, pod: PodInfo, outcome: FilterOutcome
    ) -> Question | Status | None:
        """All at once, about the nodes that are left; a node that is the only one needs no
        scores."""
        if self._scores is not None:
            keep_only(outcome, self._scores.question.node_names)
            return None if is_any(outcome.feasible) else unschedulable()
        asked = extenders.interested(pod, ExtenderVerb.PRIORITIZE)
        if not asked or np.count_nonzero(outcome.feasible) == 1:
            return None
        return _question(outcome, asked, ExtenderVerb.PRIORITIZE)

    def add_scores(self, table: ScoreTable) -> None:
        """Add what was answered to what the plugins gave."""
        if self._scores is not None:
            add_scores(table, self._scores)

    def review(
        self, extenders: Extenders, pod: PodInfo, nodes: NodeView, candidates: Candidates
    ) -> CandidatesAfterReview | Question | Status:
        """One after another, each about the candidates that those before left: what to ask next,
        how PostFilter ends, or what is left in the end. ``nodes``: all there are."""
        found = CandidatesAfterReview(dict(candidates))
        for answered in self._reviews:
            status = found.take(answered, nodes)
            if status is not None:
                return status
        if not found.left:
            if not found.changed or self._review_count == _REVIEWS_MAX:
                return found
            # What was answered is about a cluster that is no more.
            self._review_count += 1
            self._reviews, found = (), CandidatesAfterReview(dict(candidates))
        unasked = extenders.interested(pod, ExtenderVerb.PREEMPT)[len(self._reviews) :]
        return found.question(unasked[0]) if unasked else found


@final
class ExtendersReview:
    """framework.preemption.CandidateReview of one cycle: what its exchange has to say."""

    def __init__(
        self,
        extender_round: ExtenderRound,
        extenders: Extenders,
        pod: PodInfo,
        nodes: NodeView,
        *,
        before: CandidateReview | None = None,
    ) -> None:
        """``before``: whoever has a say before extenders have."""
        self._extender_round = extender_round
        self._before = before
        self._extenders = extenders
        self._pod = pod
        self._nodes = nodes
        #: What is to be asked before PostFilter can end.
        self.question: Question | None = None
        #: Whose answers were passed over, and why.
        self.passed_over: Sequence[str] = ()

    def __call__(self, candidates: Candidates) -> Candidates | Status:
        left = candidates if self._before is None else self._before(candidates)
        if isinstance(left, Status):
            return left
        reviewed = self._extender_round.review(self._extenders, self._pod, self._nodes, left)
        if isinstance(reviewed, Question):
            self.question = reviewed
            return Status(Code.WAIT)
        if isinstance(reviewed, Status):
            return reviewed
        self.passed_over = reviewed.passed_over
        return reviewed.left


def _question(
    outcome: FilterOutcome, extenders: Sequence[Extender], verb: ExtenderVerb
) -> Question:
    names = outcome.nodes.take(outcome.feasible).names()
    return Question(tuple(extenders), tuple(names), verb)
