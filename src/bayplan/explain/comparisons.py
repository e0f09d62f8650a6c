"""How the node of a bound pod compares with the others, as if the pod were pending now."""

from typing import cast

import numpy as np
from msgspec import structs

from bayplan.api.objects import POD, Pod
from bayplan.engine.attempt_record import best_scores, node_score
from bayplan.engine.cycle import Cycle
from bayplan.engine.reuse_steps import score_table_of
from bayplan.explain.explanation import Comparison, NodeComparison
from bayplan.journal import NodeScore
from bayplan.model.cluster_model import ClusterModel

_BEST_MAX = 5


def comparison_of(model: ClusterModel, pod: Pod) -> Comparison:
    """Takes the pod off its node, in a trial, and tries it once."""
    namespace, name = pod.metadata.namespace or "", pod.metadata.name
    node = pod.spec.node_name or ""
    results: list[Comparison] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == f"{namespace}/{name}" and not results:
            results.append(_compared(cycle, node))

    spec = structs.replace(pod.spec, node_name=None, scheduling_gates=None)
    status = structs.replace(pod.status, nominated_node_name=None, conditions=None, phase="Pending")
    with model.trial():
        model.remove(POD, namespace, name)
        model.add(POD, cast(Pod, structs.replace(pod, spec=spec, status=status)))
        attempt = model.attempt(f"{namespace}/{name}", look)
    if not results:
        return Comparison(
            node=node, feasible=0, better=0, equal=0, nodes=(), rejection=attempt.message
        )
    return results[0]


def _compared(cycle: Cycle, node: str) -> Comparison:
    feasible_count = cycle.feasible_count
    statuses = cycle.node_to_status() if cycle.feasibility is not None else None
    table = score_table_of(cycle)
    position = None if table is None else table.nodes.position(node)
    if table is None or position is None:
        is_only = cycle.choice is not None and cycle.choice.node_name == node
        rejection = ""
        if not is_only:
            message = "" if statuses is None else statuses.get(node).message
            rejection = message or (cycle.status.message if cycle.status is not None else "")
        best = () if table is None else tuple(map(_line, best_scores(table, _BEST_MAX)))
        own = NodeComparison(node=node, reason=rejection)
        return Comparison(
            node=node,
            feasible=feasible_count,
            better=feasible_count - is_only,
            equal=0,
            nodes=(own, *best),
            rejection=rejection,
        )
    total = table.totals[position]
    own_line = _line(node_score(table, position))
    best = (_line(each) for each in best_scores(table, _BEST_MAX) if each.node != node)
    return Comparison(
        node=node,
        feasible=feasible_count,
        better=int(np.count_nonzero(table.totals > total)),
        equal=int(np.count_nonzero(table.totals == total)) - 1,
        nodes=(own_line, *best),
    )


def _line(score: NodeScore) -> NodeComparison:
    return NodeComparison(
        node=score.node,
        total=score.total,
        scores={each.plugin: each.weighted for each in score.plugins},
    )
