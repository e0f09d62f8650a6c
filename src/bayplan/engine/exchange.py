"""One cycle's exchange with extenders: what was asked, what was answered, what follows from it.

A cycle is walked anew when an answer has come, and each step that asked takes the answers that are
there already, in the order of the questions. Upstream: schedule_one.go, findNodesThatPassExtenders,
prioritizeNodes.
"""

from collections.abc import Sequence
from typing import final

import numpy as np

from bayplan.engine.extending import (
    Answered,
    Extender,
    Extenders,
    Question,
    add_scores,
    applied,
    kept_only,
)
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.score_table import ScoreTable
from bayplan.framework.status import Status, unschedulable
from bayplan.ports import ExtenderVerb
from bayplan.state.columns import is_any
from bayplan.state.pods import PodInfo


@final
class Exchange:
    """What extenders were asked about one attempt."""

    __slots__ = ("_filters", "_scores", "is_nominated_node_out", "statuses")

    def __init__(self) -> None:
        self._filters: tuple[Answered, ...] = ()
        self._scores: Answered | None = None
        #: Nodes that filters turned away.
        self.statuses: dict[str, Status] = {}
        #: Whether the node that the pod is nominated to was looked at, in vain.
        self.is_nominated_node_out = False

    @property
    def has_answers(self) -> bool:
        """Whether extenders were asked about nodes: others are none of this attempt's."""
        return bool(self._filters) or self._scores is not None

    def take(self, answered: Answered) -> None:
        """A question was answered."""
        if answered.question.verb is ExtenderVerb.PRIORITIZE:
            self._scores = answered
        else:
            self._filters += (answered,)

    def begin_anew(self) -> None:
        """The cycle is walked once more; what was answered stays."""
        self.statuses.clear()

    def give_up_nominated_node(self) -> None:
        """What was answered about it counts no more."""
        self.is_nominated_node_out = True
        self._filters = ()
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
            kept_only(outcome, self._scores.question.node_names)
            return None if is_any(outcome.feasible) else unschedulable()
        asked = extenders.interested(pod, ExtenderVerb.PRIORITIZE)
        if not asked or np.count_nonzero(outcome.feasible) == 1:
            return None
        return _question(outcome, asked, ExtenderVerb.PRIORITIZE)

    def add_scores(self, table: ScoreTable) -> None:
        """Add what was answered to what the plugins gave."""
        if self._scores is not None:
            add_scores(table, self._scores)


def _question(
    outcome: FilterOutcome, extenders: Sequence[Extender], verb: ExtenderVerb
) -> Question:
    names = outcome.nodes.take(outcome.feasible).names()
    return Question(tuple(extenders), tuple(names), verb)
