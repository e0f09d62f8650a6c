"""One node evaluated alone has the result that it has among other nodes."""

from typing import Any, final

import pytest

from bayplan.framework.calls import Calls, calls_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.plugin import FilterPlugin, RowFilter
from bayplan.framework.runtime import filter_one
from bayplan.framework.status import Code, Rejection
from bayplan.framework.timing import Bare
from bayplan.framework.types import Verdict
from bayplan.testing import SampleCluster, node, pod
from tests.framework.answering import answering, plugins_of

POD = pod("p")


@final
class Narrow(FilterPlugin, RowFilter):
    """Rejects a node by its name. Its array form must not be called."""

    name = "Narrow"
    failure: Exception | None = None

    def filter(self, state: Any, pod: Any, nodes: Any, feasible: Any) -> Any:
        raise AssertionError("one node was evaluated as an array")

    def filter_row(self, state: Any, pod: Any, node: Any) -> Verdict:
        if self.failure is not None:
            raise self.failure
        no = Code.UNSCHEDULABLE
        return ((no, ("first",)), (no, ("second",))) if node.name == "bad" else ()


def calls_to(*plugins: Any) -> Calls:
    return calls_of(plugins_of(*plugins), Bare())


def outcome_of(name: str, *plugins: Any, state: CycleState | None = None) -> FilterOutcome:
    nodes = SampleCluster().add(node(name)).lend().nodes
    return filter_one(calls_to(*plugins), state or CycleState(), POD, nodes)


def other(messages: list[str]) -> Any:
    """A plugin without a form for one row."""

    def answer(state: Any, pod: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        messages.extend(nodes.names())
        return []

    return answering("Other", filter=answer)


def test_a_plugin_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Narrow, "failure", OSError("disk"))
    error = outcome_of("good", Narrow).error
    assert error is not None and (error.code, error.plugin) == (Code.ERROR, "Narrow")
