"""What one attempt says about one node: its rejection, each plugin's result, its scores and rank.

The journal has only the best nodes of an attempt. Everything else follows from the cycle, at its
end: of the attempt itself, or of its repetition.
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from bayplan.engine.cycle import Cycle
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, NodeScore


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a node, and its rank among all nodes that were scored."""

    #: The line of the node and, if it is another node, of the chosen one.
    lines: tuple[NodeScore, ...]
    #: The number of nodes with a higher total, and of other nodes with the same total.
    better_count: int
    equal_count: int


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The result of one attempt for one node."""

    #: The attempt's record in the journal.
    record: AttemptRecord
    node: str
    #: Why the node was not evaluated; "": it was evaluated.
    skip_reason: str = ""
    #: The first rejection, which decides; None: no plugin rejected the node.
    rejection: Status | None = None
    #: Filter instance → its result for this node alone; None: no objection.
    alone: tuple[tuple[str, Status | None], ...] = ()
    scores: Scores | None = None


# ---- verdict -------------------------------------------------------------------------------


def verdict_of(cycle: Cycle, record: AttemptRecord, node: str) -> NodeVerdict:
    """The result for one node. Called at the end of the cycle, while its snapshot is lent."""
    position = cycle.snapshot.nodes.position(node)
    table = cycle.score_table()
    skip_reason = (
        _skip_reason(cycle, node) if position is not None else "the node did not exist then"
    )
    if skip_reason or position is None:
        return NodeVerdict(record, node, skip_reason)
    return NodeVerdict(
        record,
        node,
        rejection=rejection_of(cycle, node),
        alone=_alone(cycle, position),
        scores=None if table is None else _scores(table, node, record.node),
    )


def _skip_reason(cycle: Cycle, node: str) -> str:
    """Why a node that existed was not evaluated; "": it was evaluated."""
    outcome = cycle.filter_outcome()
    if outcome is None:
        message = cycle.status.message if cycle.status is not None else ""
        return f"the attempt ended before any node was evaluated: {message}"
    position = outcome.nodes.position(node)
    if position is None:
        if cycle.candidates is not None and cycle.candidates.position(node) is not None:
            assert cycle.choice is not None
            return f"the pod was nominated to {cycle.choice.node_name}, which took it"
        return f"left out by {', '.join(sorted(cycle.narrowing))}"
    is_left = bool(outcome.feasible[position]) or rejection_of(cycle, node) is not None
    if is_left or outcome.error is not None:
        return ""
    return "enough nodes were found before (percentageOfNodesToScore)"


def rejection_of(cycle: Cycle, node: str) -> Status | None:
    """Why a node was rejected; None: it was not, or the attempt ended before any node was."""
    outcome = cycle.filter_outcome()
    if outcome is None:
        return None
    position = outcome.nodes.position(node)
    status = outcome.status_of(position) if position is not None else None
    return status or cycle.extender_round.statuses.get(node)


def _alone(cycle: Cycle, position: int) -> tuple[tuple[str, Status | None], ...]:
    """Each Filter plugin's result for this node, as if it were the only node."""
    with ExitStack() as stack:
        if cycle.choice is not None:
            _take_off(cycle, cycle.choice.node_name, stack)
        view = cycle.snapshot.nodes.take([position])
        answers = cycle.framework.filter_answers(cycle.state, cycle.pod, view)
        return tuple((name, outcome.error or outcome.status_of(0)) for name, outcome in answers)


def _take_off(cycle: Cycle, node: str, stack: ExitStack) -> None:
    """Remove the pod from the node on which it was assumed: it would be in its own way."""
    for pod in cycle.snapshot.node(node).pods:
        if pod.uid == cycle.pod.uid:
            stack.enter_context(cycle.snapshot.trial()).remove(pod)
            return


def _scores(table: ScoreTable, node: str, chosen: str) -> Scores | None:
    position = table.nodes.position(node)
    if position is None:
        return None
    positions = [position, table.nodes.position(chosen)] if chosen not in ("", node) else [position]
    own = table.totals[position]
    return Scores(
        lines=tuple(table.line_at(line) for line in positions if line is not None),
        better_count=int(np.count_nonzero(table.totals > own)),
        equal_count=int(np.count_nonzero(table.totals == own)) - 1,
    )
