"""What one attempt says about one node: its rejection, each plugin's result, its scores and rank.

The journal has only the best nodes of an attempt. Everything else follows from a cycle at its end.
That is the cycle of the attempt itself, or of its repetition.
"""

from contextlib import ExitStack

import numpy as np
from msgspec.structs import replace

from bayplan.answers.document import Value
from bayplan.engine.cycle import Cycle
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, NodeScore


class PluginResult(Value, frozen=True, kw_only=True):
    """What one Filter plugin says of a node."""

    plugin: str
    #: "": no objection.
    code: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.message} ({self.code})" if self.code else "no objection"


class NodeVerdict(Value, frozen=True, kw_only=True):
    """The result of one attempt for one node."""

    node: str
    attempt: int
    #: The outcome for the node, in a line.
    ruling: str
    #: Why the node was not evaluated; "": it was evaluated.
    skip_reason: str = ""
    #: The first rejection, which decides; null: no plugin rejected the node.
    rejection: PluginResult | None = None
    #: Each Filter plugin's result for this node alone.
    alone: tuple[PluginResult, ...] = ()
    #: The scores of the node and, if it is another node, of the chosen one.
    scores: tuple[NodeScore, ...] = ()
    #: The number of nodes with a higher total, and of other nodes with the same total.
    better: int = 0
    equal: int = 0
    #: Whether the repeated attempt has the same record as the attempt.
    is_exact: bool = True


# ---- verdict -------------------------------------------------------------------------------


def verdict_of(cycle: Cycle, record: AttemptRecord, node: str) -> NodeVerdict:
    """The result for one node. Called at the end of the cycle, while its snapshot is lent."""
    position = cycle.snapshot.nodes.position(node)
    table = cycle.score_table()
    skip_reason = (
        _skip_reason(cycle, node) if position is not None else "the node did not exist then"
    )
    if skip_reason or position is None:
        return NodeVerdict(
            node=node,
            attempt=record.attempt,
            ruling=ruling(record, node, skip_reason, None),
            skip_reason=skip_reason,
        )
    status = rejection_of(cycle, node)
    rejection = None if status is None else plugin_result(status.plugin, status)
    verdict = NodeVerdict(
        node=node,
        attempt=record.attempt,
        ruling=ruling(record, node, "", rejection),
        rejection=rejection,
        alone=_alone(cycle, position),
    )
    return verdict if table is None else _with_scores(verdict, table, record.node)


def plugin_result(plugin: str, status: Status | None) -> PluginResult:
    """``status``: None: no objection."""
    if status is None:
        return PluginResult(plugin=plugin)
    return PluginResult(plugin=plugin, code=str(status.code), message=status.message)


def ruling(
    record: AttemptRecord, node: str, skip_reason: str, rejection: PluginResult | None
) -> str:
    """The outcome for the node, in a line."""
    if skip_reason:
        return f"not evaluated: {skip_reason}"
    if rejection is not None:
        return f"rejected by {rejection.plugin}: {rejection}"
    if record.node == node:
        return "chosen" if record.result in ("scheduled", "waiting") else "chosen at first"
    if record.result == "error" and not record.node:
        return "no plugin had rejected it when the attempt failed"
    return "feasible, not chosen"


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


def _alone(cycle: Cycle, position: int) -> tuple[PluginResult, ...]:
    """Each Filter plugin's result for this node, as if it were the only node."""
    with ExitStack() as stack:
        if cycle.choice is not None:
            _take_off(cycle, cycle.choice.node_name, stack)
        view = cycle.snapshot.nodes.take([position])
        answers = cycle.framework.filter_answers(cycle.state, cycle.pod, view)
        return tuple(
            plugin_result(name, outcome.error or outcome.status_of(0)) for name, outcome in answers
        )


def _take_off(cycle: Cycle, node: str, stack: ExitStack) -> None:
    """Remove the pod from the node on which it was assumed, because it would be in its own way."""
    for pod in cycle.snapshot.node(node).pods:
        if pod.uid == cycle.pod.uid:
            stack.enter_context(cycle.snapshot.trial()).remove(pod)
            return


def _with_scores(verdict: NodeVerdict, table: ScoreTable, chosen: str) -> NodeVerdict:
    """``chosen``: the node that was chosen; "": none."""
    node = verdict.node
    position = table.nodes.position(node)
    if position is None:
        return verdict
    positions = [position, table.nodes.position(chosen)] if chosen not in ("", node) else [position]
    own = table.totals[position]
    return replace(
        verdict,
        scores=tuple(table.line_at(line) for line in positions if line is not None),
        better=int(np.count_nonzero(table.totals > own)),
        equal=int(np.count_nonzero(table.totals == own)) - 1,
    )
