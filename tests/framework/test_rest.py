"""Some plugins are asked as all would be, after what the others said."""

from typing import Any

from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState
from bayplan.framework.rest import filter_rest, score_rest
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Rejection, Status
from bayplan.queue.nominator import Nominator
from bayplan.state.nodes import NodeView
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


class Known:
    """What kept plugins say: the first of them turns one node down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[tuple[int, int]] = []

    def reject(self, outcome: FilterOutcome, start: int, end: int) -> None:
        self.told.append((start, end))
        if start == 0 < end:
            rejected = outcome.nodes.positions([self.name])
            outcome.add("Known", [Rejection(rejected, Code.UNSCHEDULABLE, ("full",))])


def three() -> NodeView:
    return SampleCluster().add(*(node(n) for n in ("n1", "n2", "n3"))).lend().nodes


def filtered(known: Known, *plugins: Any) -> FilterOutcome:
    """One plugin that is kept stands before those that are asked, and one behind them."""
    run, state = framework(*plugins), CycleState()
    asked = [(1, name, ask) for name, ask in run.calls(state, POD).filter]
    return filter_rest(run, (known, 2), asked, (state, POD, three()))


def test_the_rest_filters_what_others_left() -> None:
    known = Known("n1")
    plugins = answering("A", filter=no_to("n1")), answering("B", filter=no_to("n2"))
    outcome = filtered(known, *plugins)
    assert outcome.feasible.tolist() == [False, False, True]
    assert outcome.reason_counts() == {"full": 1, "not n2": 1}
    assert known.told == [(0, 1), (1, 1), (1, 2)]


def test_after_an_error_nobody_is_asked() -> None:
    known = Known("n1")
    plugins = answering("A", filter=raising), answering("B", filter=no_to("n2"))
    outcome = filtered(known, *plugins)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.plugin) == (Code.ERROR, "A")
    assert "not n2" not in outcome.reason_counts() and known.told == [(0, 1)]


def test_after_the_last_node_nobody_is_asked() -> None:
    known = Known("n1")
    plugins = [answering(name, filter=no_to(name)) for name in ("n2", "n3", "n1")]
    outcome = filtered(known, *plugins)
    assert not outcome.feasible.any()
    assert outcome.reason_counts() == {"full": 1, "not n2": 1, "not n3": 1}
    assert known.told == [(0, 1), (1, 1)]


def test_the_rest_scores_in_columns_and_who_fails_is_named() -> None:
    asked = framework(answering("A", score_node=7), answering("B", score=raising))
    state, nodes = CycleState(), three()
    good, bad = asked.calls(state, POD).score
    columns = score_rest(asked, [good], state, POD, nodes)
    assert isinstance(columns, list)
    assert [(each.name, each.weighted.tolist()) for each in columns] == [("A", [7, 7, 7])]
    failed = score_rest(asked, [good, bad], state, POD, nodes)
    assert isinstance(failed, Status)
    assert failed.plugin == "B"
