"""Plugins inside plugins: whose extension points run under whose name."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.composition import parts_of, with_parts
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.score_table import ScoreTable
from bayplan.framework.status import SKIP, Code, Status, is_skip, unschedulable
from bayplan.framework.types import PreFilterResult
from bayplan.testing import handle, node, pod
from tests.framework.answering import answering, cluster_of, framework_of, scores


def holding(part: type[Any], **answers: Any) -> Any:
    """A made plugin that holds another one."""
    outer_handle = handle(name="Outer")
    inside = outer_handle.inside(part, part.name)
    outer_handle.made.append(part(None, inside, inside.instance_name))
    return answering("Outer", **answers)(None, outer_handle, "Outer")


def run(plugin: Any) -> tuple[CycleState, Any]:
    framework, state = framework_of(plugin), CycleState()
    nodes = cluster_of(node("a"), node("b")).lend().nodes
    _, failed, _ = framework.run_pre_filter(state, pod(), nodes)
    failed = failed or framework.run_pre_score(state, pod(), nodes)
    return state, failed or framework.run_score(state, pod(), nodes)


def test_a_part_notes_under_a_name_of_its_own() -> None:
    outer = holding(answering("Inner", score=scores(1, 2)), score=scores(1, 2))
    [part] = parts_of(outer)
    assert part.instance_name == "Outer.Inner"
    assert [plugin.instance_name for plugin in with_parts([outer])] == ["Outer", "Outer.Inner"]


def test_what_the_author_does_not_implement_runs_for_its_parts() -> None:
    inner = answering("Inner", pre_filter=None, pre_score=None, score=scores(1, 2))
    outer = holding(inner, score=scores(3, 4))
    _, table = run(outer)
    assert isinstance(table, ScoreTable)
    assert table.totals.tolist() == [3, 4]
    assert inner.calls == [("Outer.Inner", "pre_filter"), ("Outer.Inner", "pre_score")]


def test_what_the_author_implements_is_the_authors_business() -> None:
    inner = answering("Inner", pre_score=ValueError("boom"), score=scores(1, 2))
    outer = holding(inner, pre_score=None, score=scores(3, 4))
    assert isinstance(run(outer)[1], ScoreTable)
    assert inner.calls == []


def test_if_all_parts_skip_the_whole_is_skipped() -> None:
    outer = holding(answering("Inner", pre_score=SKIP, score=scores(1, 2)), score=scores(3, 4))
    state, table = run(outer)
    assert "Outer" in state.skip_score_plugins
    assert table.totals.tolist() == [0, 0]


def test_a_part_that_fails_is_its_holders_failure() -> None:
    inner = answering("Inner", pre_score=ValueError("boom"), score=scores(1, 2))
    _, failed = run(holding(inner, score=scores(3, 4)))
    assert (failed.code, failed.plugin) == (Code.ERROR, "Outer")
    assert "boom" in failed.message


def test_what_a_part_says_about_the_pod_counts_only_for_one_that_filters() -> None:
    inner = answering("Inner", pre_filter=unschedulable("no"), filter=[], score=scores(1, 2))
    assert isinstance(run(holding(inner, score=scores(3, 4)))[1], ScoreTable)
    _, rejected = run(holding(inner, filter=[], score=scores(3, 4)))
    assert (rejected.code, rejected.plugin) == (Code.UNSCHEDULABLE, "Outer")


@pytest.mark.parametrize(
    ("answer", "skips", "names"),
    [(SKIP, True, None), (None, False, None), (PreFilterResult(frozenset("a")), False, {"a"})],
    ids=["skip", "nothing", "narrowing"],
)
def test_a_parts_pre_filter_is_passed_on(answer: Any, skips: bool, names: Any) -> None:
    framework = framework_of(holding(answering("Inner", pre_filter=answer, filter=[]), filter=[]))
    state, nodes = CycleState(), cluster_of(node("a"), node("b")).lend().nodes
    result, failed, _ = framework.run_pre_filter(state, pod(), nodes)
    assert failed is None
    assert ("Outer" in state.skip_filter_plugins) is skips
    assert result.node_names == names


@pytest.mark.parametrize("answer", [None, SKIP], ids=["has notes", "skipped"])
def test_a_part_that_took_notes_is_told_of_pods(answer: Any) -> None:
    inner = answering("Inner", pre_filter=answer, filter=[], add_pod=None)
    framework, state = framework_of(holding(inner, filter=[])), CycleState()
    nodes = cluster_of(node("a")).lend().nodes
    framework.run_pre_filter(state, pod(), nodes)
    assert framework.run_add_pod(state, pod(), pod("other"), nodes.info(0)) is None
    assert inner.calls.count(("Outer.Inner", "add_pod")) == (answer is not SKIP)


def test_parts_of_parts_are_included() -> None:
    innermost = answering("Innermost", pre_score=Status(Code.SKIP), score=scores(1, 2))
    outer = holding(answering("Inner", score=scores(1, 2)), score=scores(3, 4))
    inner: Any = parts_of(outer)[0]
    inside = inner.handle.inside(innermost, "Innermost")
    inner.handle.made.append(innermost(None, inside, inside.instance_name))
    state, _ = run(outer)
    assert "Outer" in state.skip_score_plugins
    assert is_skip(Status(Code.SKIP))
    assert np.array_equal(innermost.calls, [("Outer.Inner.Innermost", "pre_score")])
