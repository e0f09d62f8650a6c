"""judge: is the node that a scheduler chose one that Bayplan would choose?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np

from bayplan.api.objects import NODE
from bayplan.engine.attempt_record import node_score
from bayplan.engine.cycle import Cycle
from bayplan.engine.reuse_steps import score_table_of
from bayplan.framework.scoring import ScoreTable
from bayplan.model.cluster_model import Attempt, ClusterModel

#: ``best``: no node has a higher total. ``lower``: the node is feasible, and another one has a
#: higher total. ``rejected``: the node is not feasible. ``untried``: no attempt reached the nodes.
Result = Literal["best", "lower", "rejected", "untried"]

_NO_NODE = "the node is not in the shadow's cluster"


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What Bayplan's attempt says about one node."""

    result: Result
    #: The node that the other scheduler chose.
    node: str
    #: The node that Bayplan chooses; "" for none.
    own_node: str = ""
    #: How many nodes have the highest total.
    best_count: int = 0
    feasible_count: int = 0
    #: By how much the total of Bayplan's node is higher.
    points: int = 0
    #: Plugin → weighted score of Bayplan's node minus that of the chosen node, where they differ.
    plugin_points: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The plugin that rejects the node; "" for what no plugin decides.
    plugin: str = ""
    #: Why the node is rejected, or why the pod was not tried.
    message: str = ""

    @property
    def agrees(self) -> bool:
        return self.result == "best"


def judge(model: ClusterModel, pod: str, node: str) -> Verdict:
    """One attempt at a pending pod, compared with a choice. The model stays as it is.

    ``pod``: "namespace/name". Raises KeyError for a pod that does not wait for the scheduler.
    """
    verdicts: list[Verdict] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == pod:
            verdicts.append(_verdict(cycle, node, has_node=model.get(NODE, "", node) is not None))

    attempt = model.attempt(pod, look)
    if attempt.result in ("gated", "error") or not verdicts:
        return Verdict("untried", node, attempt.node, message=_untried(attempt))
    # A group may be tried in several domains; the last attempt at the pod counts.
    return verdicts[-1]


def _untried(attempt: Attempt) -> str:
    return attempt.message or f"the attempt ended without a node: {attempt.result}"


def _verdict(cycle: Cycle, node: str, *, has_node: bool) -> Verdict:
    choice, feasible_count = cycle.choice, cycle.feasible_count
    own_node = "" if choice is None else choice.node_name
    if choice is not None and own_node == node:
        return Verdict("best", node, node, choice.tied_count, feasible_count)
    table = score_table_of(cycle)
    position = None if table is None else table.nodes.position(node)
    if table is None or position is None:
        plugin, message = _rejection(cycle, node) if has_node else ("", _NO_NODE)
        return Verdict(
            "rejected",
            node,
            own_node,
            0 if choice is None else choice.tied_count,
            feasible_count,
            plugin=plugin,
            message=message,
        )
    best = table.best()
    best_count = int(np.count_nonzero(best))
    if best[position]:
        return Verdict("best", node, own_node, best_count, feasible_count)
    own_position = table.nodes.position(own_node)
    if own_position is None:
        own_position = int(best.argmax())
    return Verdict(
        "lower",
        node,
        own_node,
        best_count,
        feasible_count,
        points=int(table.totals[own_position] - table.totals[position]),
        plugin_points=_differences(table, own_position, position),
    )


def _rejection(cycle: Cycle, node: str) -> tuple[str, str]:
    """The plugin that rejects a node, and its message."""
    status = cycle.node_to_status().get(node)
    if status.plugin or status.message:
        return status.plugin or ", ".join(sorted(cycle.narrowing)), status.message
    if cycle.status is not None:
        return cycle.status.plugin, cycle.status.message
    return "", "the attempt did not look at the node"


def _differences(table: ScoreTable, own: int, chosen: int) -> dict[str, int]:
    scores = {each.plugin: each.weighted for each in node_score(table, own).plugins}
    for each in node_score(table, chosen).plugins:
        scores[each.plugin] = scores.get(each.plugin, 0) - each.weighted
    return {plugin: points for plugin, points in scores.items() if points}
