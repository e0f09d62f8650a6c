"""Some plugins are asked as all would be, after what the others said."""

from typing import Any

import numpy as np

from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState
from bayplan.framework.rest import filter_rest, score_rest
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Rejection, Status
from bayplan.queue.nominator import Nominator
from bayplan.testing import SampleCluster, node, pod
from tests.framework.answering import answering, plugins_of

POD = pod("p")


def no_to(name: str) -> Any:
    def answer(state: Any, asked: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        return [Rejection(nodes.positions([name]), Code.UNSCHEDULABLE, (f"not {name}",))]

    return answer


def raising(*_: Any) -> Any:
    raise OSError("disk")


def framework(*plugins: Any) -> Framework:
    return Framework(plugins_of(*plugins), Nominator())


def steps(asked: Framework) -> list[Any]:
    state = CycleState()
    return [
        lambda outcome, name=name, ask=ask: outcome.ask(name, ask, state, POD)
        for name, ask in asked.calls(state, POD).filter
    ]


def outcome_without(name: str) -> FilterOutcome:
    """What others said already."""
    nodes = SampleCluster().add(*(node(n) for n in ("n1", "n2", "n3"))).lend().nodes
    outcome = FilterOutcome(nodes, np.ones(3, np.bool_))
    rejection = Rejection(nodes.positions([name]), Code.UNSCHEDULABLE, ("full",))
    outcome.add("Others", [rejection])
    return outcome


def test_the_rest_filters_what_others_left() -> None:
    asked = framework(answering("A", filter=no_to("n1")), answering("B", filter=no_to("n2")))
    outcome = outcome_without("n1")
    assert filter_rest(asked, steps(asked), outcome) is outcome
    assert outcome.feasible.tolist() == [False, False, True]
    assert outcome.reason_counts() == {"full": 1, "not n2": 1}


def test_after_an_error_or_the_last_node_nobody_is_asked() -> None:
    asked = framework(answering("A", filter=raising), answering("B", filter=no_to("n2")))
    outcome = outcome_without("n1")
    filter_rest(asked, steps(asked), outcome)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.plugin) == (Code.ERROR, "A")
    assert "not n2" not in outcome.reason_counts()


def test_the_rest_scores_in_columns_and_who_fails_is_named() -> None:
    asked = framework(answering("A", score_node=7), answering("B", score=raising))
    state, nodes = CycleState(), outcome_without("n1").nodes
    good, bad = asked.calls(state, POD).score
    columns = score_rest(asked, [good], state, POD, nodes)
    assert isinstance(columns, list)
    assert [(each.name, each.weighted.tolist()) for each in columns] == [("A", [7, 7, 7])]
    failed = score_rest(asked, [good, bad], state, POD, nodes)
    assert isinstance(failed, Status)
    assert failed.plugin == "B"
