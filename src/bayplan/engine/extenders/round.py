"""The round of extender calls of one cycle: questions, answers, and what follows from them.

A cycle starts again when an answer comes. Each step takes the answers that exist, in the order of
the questions. Upstream: schedule_one.go, findNodesThatPassExtenders, prioritizeNodes.

The candidates of a preemption go through the extenders one after another. Each extender sees what
the one before it left. An extender may remove nodes, change the victims of a node, and name nodes
of its own. If a candidate changed during the call, it is dropped, because the answer is about other
pods. Upstream: extender.go, ProcessPreemption; framework/preemption/preemption.go, callExtenders.
"""

from collections.abc import Sequence
from typing import Final, final

import numpy as np
from msgspec import Struct, field

from bayplan.engine.extenders.results import (
    AnsweredQuestion,
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
class CandidatesAfterReview(Struct):
    """The candidates that remain after the answers so far."""

    left: dict[str, Victims]
    #: Names of the candidates that changed while the extender was called.
    changed: set[str] = field(default_factory=set[str])
    #: "extender: reason" for each answer that was ignored, as a whole or for one node.
    passed_over: list[str] = field(default_factory=list[str])

    def question(self, extender: Extender) -> Question:
        return Question((extender,), tuple(self.left), ExtenderVerb.PREEMPT, self.left)

    def take(self, answered: AnsweredQuestion, nodes: NodeView) -> Status | None:
        """Apply an answer. ``nodes``: all nodes. Returns the Error that ends the attempt."""
        question, (answer,) = answered.question, answered.answers
        extender = question.extender
        if answer.error:
            return None if extender.ignorable else Status(Code.ERROR, (answer.error,))
        changed = {name for name in question.victims if not self._is_unchanged(name, question)}
        victims_by_node = _pods(extender, answer, changed, nodes)
        if isinstance(victims_by_node, str):
            return self._wrong(extender, victims_by_node)
        # A candidate may have no victims in 1.38. It may stay without victims for the next
        # extender.
        may_be_empty = {name for name, asked in question.victims.items() if not asked.pods}
        empty = {name for name, named in victims_by_node.items() if not named.pods}
        for name in sorted(empty - may_be_empty):
            text = f'expected at least one victim pod on node "{name}"'
            status = self._wrong(extender, text)
            if status is not None:
                return status
            del victims_by_node[name]
        self.changed |= changed
        self.left = victims_by_node
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
    """The victims that an answer names, without those on changed nodes. If the answer names a node
    or pod that does not exist, returns a text that says so."""
    victims_by_node: dict[str, Victims] = {}
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
            claim_text = f"extender: {extender.name} claims to preempt {where}"
            return f"{claim_text}, but the pod is not found on that node"
        pods = tuple(there[uid] for uid in named.uids)
        victims_by_node[name] = Victims(pods, named.pdb_violation_count)
    return victims_by_node


# ---- one round ------------------------------------------------------------------------------


#: How often a review starts again because all candidates changed during the call.
_REVIEWS_MAX: Final = 10


@final
class ExtenderRound(Struct):
    """The extender calls of one attempt."""

    _filters: tuple[AnsweredQuestion, ...] = ()
    _scores: AnsweredQuestion | None = None
    _reviews: tuple[AnsweredQuestion, ...] = ()
    _review_count: int = 0
    #: Nodes that filters rejected.
    statuses: dict[str, Status] = field(default_factory=dict[str, Status])
    #: Whether extenders answered about nodes. If so, other nodes take no part in this attempt.
    has_answers: bool = False
    #: Whether a node became feasible during a call that was not about it. Such a node is left out
    #: and no plugin rejects it any more, so the events that follow have to wake the pod.
    has_left_out_nodes: bool = False
    #: Whether the node that the pod is nominated to was tried and does not fit.
    is_nominated_node_out: bool = False

    def take(self, answered: AnsweredQuestion) -> None:
        """Store the answers to a question."""
        if answered.question.verb is ExtenderVerb.PRIORITIZE:
            self._scores, self.has_answers = answered, True
        elif answered.question.verb is ExtenderVerb.PREEMPT:
            self._reviews += (answered,)
        else:
            self._filters += (answered,)
            self.has_answers = True

    def begin_anew(self) -> None:
        """The cycle starts again from its first step; the answers stay."""
        self.statuses.clear()
        self.has_left_out_nodes = False

    def give_up_nominated_node(self) -> None:
        """Drop the answers about the nominated node, which does not fit."""
        self.is_nominated_node_out = True
        self._filters, self.has_answers = (), self._scores is not None
        self.statuses.clear()
        self.has_left_out_nodes = False

    # ---- the steps ------------------------------------------------------------------------

    def filter(
        self, extenders: Extenders, pod: PodInfo, outcome: FilterOutcome
    ) -> Question | Status | None:
        """Call the extenders that filter one after another, each for the nodes that the one before
        left. Returns the next question, the status that ends the attempt, or None: all have
        answered."""
        for answered in self._filters:
            self._leave_out_nodes(outcome, answered.question)
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
        """Call all extenders that score at the same time, for the feasible nodes. A single feasible
        node needs no scores. Returns what `filter` returns."""
        if self._scores is not None:
            self._leave_out_nodes(outcome, self._scores.question)
            return None if is_any(outcome.feasible) else unschedulable()
        scoring = extenders.interested(pod, ExtenderVerb.PRIORITIZE)
        if not scoring or np.count_nonzero(outcome.feasible) == 1:
            return None
        return _question(outcome, scoring, ExtenderVerb.PRIORITIZE)

    def _leave_out_nodes(self, outcome: FilterOutcome, question: Question) -> None:
        """Leave out the nodes that the question was not about."""
        left_out = keep_only(outcome, question.node_names)
        self.has_left_out_nodes = self.has_left_out_nodes or bool(left_out)

    def add_scores(self, table: ScoreTable) -> None:
        """Add the scores of the extenders to those of the plugins."""
        if self._scores is not None:
            add_scores(table, self._scores)

    def review(
        self, extenders: Extenders, pod: PodInfo, nodes: NodeView, candidates: Candidates
    ) -> CandidatesAfterReview | Question | Status:
        """Call the extenders that preempt one after another, each for the candidates that the one
        before left. Returns the next question, the status that ends PostFilter, or the remaining
        candidates. ``nodes``: all nodes."""
        remaining = CandidatesAfterReview(dict(candidates))
        for answered in self._reviews:
            status = remaining.take(answered, nodes)
            if status is not None:
                return status
        if not remaining.left:
            if not remaining.changed or self._review_count == _REVIEWS_MAX:
                return remaining
            # The answers are about candidates that have changed since.
            self._review_count += 1
            self._reviews, remaining = (), CandidatesAfterReview(dict(candidates))
        unasked = extenders.interested(pod, ExtenderVerb.PREEMPT)[len(self._reviews) :]
        return remaining.question(unasked[0]) if unasked else remaining


@final
class ExtendersReview:
    """The CandidateReview (framework/preemption.py) of one cycle, in which the extenders review the
    candidates."""

    def __init__(
        self,
        extender_round: ExtenderRound,
        extenders: Extenders,
        pod: PodInfo,
        nodes: NodeView,
        *,
        before: CandidateReview | None = None,
    ) -> None:
        """``before``: the review that comes before that of the extenders."""
        self._extender_round = extender_round
        self._before = before
        self._extenders = extenders
        self._pod = pod
        self._nodes = nodes
        #: The question that must be answered before PostFilter can end.
        self.question: Question | None = None
        #: The answers that were ignored; see `CandidatesAfterReview`.
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
