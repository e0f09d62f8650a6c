"""Filter of a single node: by one-row forms, where plugins have their own.

A DaemonSet's pod, a nomination and a what-if ask about one node; as an array of one, the answer
takes several times as long.
"""

import numpy as np

from bayplan.framework.answers import failure_of
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Rejection
from bayplan.state.columns import Rows, all_true
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: The position of a single node.
_IT: Rows = np.zeros(1, np.intp)


def filter_one(calls: Calls, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterOutcome:
    """``nodes``: one of them."""
    outcome, node = FilterOutcome(nodes, all_true(1)), nodes.info(0)
    for name, ask in calls.filter:
        if name in state.skip_filter_plugins:
            continue
        if name in calls.own_rows:
            try:
                verdict = calls.filter_row[name](state, pod, node)
                if verdict:
                    outcome.add(name, [Rejection(_IT, *rejection) for rejection in verdict])
            except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
                outcome.error = failure_of(name, "Filter", problem)
        else:
            outcome.ask(name, ask, state, pod)
        if outcome.is_settled:
            break
    return outcome
