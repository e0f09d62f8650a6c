"""The calls at each extension point.

Plugins inside plugins: which extension points run, and under which name.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from msgspec.structs import fields

from bayplan.framework.calls import Calls, calls_for, calls_of, parts_of, with_parts
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import SKIP, Code, Status, is_skip, unschedulable
from bayplan.framework.timing import Bare
from bayplan.framework.types import PreFilterResult
from bayplan.testing import handle, node, pod
from tests.framework.answering import answering, cluster_of, framework_of, plugins_of, scores

# ---- calls ----------------------------------------------------------------------------------


EVERYTHING = {
    "pre_filter": None,
    "add_pod": None,
    "filter": [],
    "post_filter": (None, None),
    "pre_score": None,
    "score": scores(1),
    "reserve": None,
    "permit": (None, 0.0),
    "pre_bind_preflight": None,
    "pre_bind": None,
    "bind": None,
    "post_bind": None,
    "tie_break": scores(1),
}


class Counting:
    """A wrapper that records the calls it wraps."""

    def __init__(self) -> None:
        self.wrapped: list[tuple[str, str]] = []

    def plain(self, name: str, point: str, call: Any) -> Any:
        self.wrapped.append((name, point))
        return call

    listed = awaited = plain


def test_every_extension_point_is_called_under_the_instances_name() -> None:
    calls = calls_of(plugins_of(answering("All", **EVERYTHING)), Bare())
    for each in fields(Calls):
        mapping = getattr(calls, each.name)
        if each.name == "scoring":
            assert mapping == {"All": calls.score[0]}
            continue
        if each.name in ("unconcerned", "filters_left_out", "pre_state_per_template", "own_rows"):
            assert not mapping
            continue
        assert len(mapping) == 1, each.name
        if isinstance(mapping, Mapping):
            name = next(iter(mapping))
        else:
            name = mapping[0].name if each.name in ("score", "tie_break") else mapping[0][0]
        assert name == "All"


def test_each_call_is_wrapped_under_upstreams_word_for_its_point() -> None:
    wrap = Counting()
    plugin = answering("All", **EVERYTHING, normalize=lambda state, pod, raw: raw)
    calls_of(plugins_of(plugin), wrap)
    assert {point for _, point in wrap.wrapped} == {
        "PreFilter",
        "PreFilterExtensionAddPod",
        "PreFilterExtensionRemovePod",
        "Filter",
        "PostFilter",
        "PreScore",
        "Score",
        "ScoreExtensionNormalize",
        "Reserve",
        "Unreserve",
        "Permit",
        "PreBindPreFlight",
        "PreBind",
        "Bind",
        "PostBind",
        "TieBreak",
    }


def test_plugins_are_called_in_order_and_unreserve_in_reverse_order() -> None:
    plugins = plugins_of(*(answering(name, reserve=None) for name in "ABC"))
    calls = calls_of(plugins, Bare())
    assert [name for name, _ in calls.reserve] == ["A", "B", "C"]
    assert [name for name, _ in calls.unreserve] == ["C", "B", "A"]


def test_only_plugins_with_extensions_are_called_for_pods() -> None:
    plugins = plugins_of(
        answering("A", pre_filter=None), answering("B", pre_filter=None, add_pod=None)
    )
    assert [name for name, _ in calls_of(plugins, Bare()).add_pod] == ["B"]


def test_a_plugin_that_a_pod_does_not_concern_is_called_at_score_only() -> None:
    plugin = answering("All", **EVERYTHING)
    plugins = plugins_of(plugin)
    calls, shape = calls_of(plugins, Bare()), pod().shape
    assert calls_for(calls, plugins, shape) == calls
    plugin.concerns = lambda self, shape: False
    left = calls_for(calls, plugins, shape)
    left_names = {each.name for each in fields(Calls) if getattr(left, each.name)}
    rows = {"filter_of", "filter_row", "score_row"}
    scoring = {"pre_score", "score", "scoring", "tie_break"}
    assert left_names - rows == {
        *scoring,
        "pre_filter",
        "post_filter",
        "bind",
        "pre_bind_groups",
        "unconcerned",
        "filters_left_out",
        "pre_state_per_template",
    }
    assert left.unconcerned == left.filters_left_out == {"All"}


def test_plugins_that_ignore_resizes_are_not_called_for_a_resize() -> None:
    defaults = {"pre_filter": None, "filter": [], "post_filter": (None, None)}
    ignoring, other = answering("Ignoring", **defaults), answering("Other", **defaults)
    ignoring.ignores_resizes = True
    plugins = plugins_of(ignoring, other)
    calls = calls_of(plugins, Bare())
    pending: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
    shape = pod(node="n1", status=pending).shape
    assert calls_for(calls, plugins, shape) == calls
    plugins.tries_resizes = True
    assert calls_for(calls, plugins, pod().shape) == calls
    left = calls_for(calls, plugins, shape)
    for named in (left.pre_filter, left.filter, left.post_filter):
        assert [name for name, _ in named] == ["Other"]
    assert left.filters_left_out == {"Ignoring"}


def test_a_plugin_written_node_by_node_is_called_for_many() -> None:
    plugins = plugins_of(
        answering("A", filter_node=unschedulable("no")),
        answering("B", score_node=lambda state, pod, info: len(info.name)),
    )
    calls = calls_of(plugins, Bare())
    nodes = cluster_of(node("n1"), node("n22")).lend().nodes
    ((_, ask),) = calls.filter
    (rejection,) = ask(CycleState(), pod(), nodes, np.ones(2, np.bool_))
    assert (rejection.code, rejection.reasons) == (Code.UNSCHEDULABLE, ("no",))
    (score,) = calls.score
    assert score.score(CycleState(), pod(), nodes).tolist() == [2, 3]


def test_asynchronous_points_are_awaited() -> None:
    calls = calls_of(plugins_of(answering("A", bind=unschedulable("no"))), Bare())
    ((_, ask),) = calls.bind

    async def main() -> object:
        return await ask(CycleState(), pod(), "n1", PORT)

    assert asyncio.run(main()) == unschedulable("no")


PORT: Any = None


# ---- composition ----------------------------------------------------------------------------


def outer_plugin(part: type[Any], **answers: Any) -> Any:
    """A plugin instance with a nested plugin."""
    outer_handle = handle(name="Outer")
    inside = outer_handle.inside(part.name, part.kinds)
    outer_handle.made.append(part(None, inside, inside.instance_name))
    return answering("Outer", **answers)(None, outer_handle, "Outer")


def run(plugin: Any) -> tuple[CycleState, Any]:
    framework, state = framework_of(plugin), CycleState()
    nodes = cluster_of(node("a"), node("b")).lend().nodes
    _, failed, _ = framework.run_pre_filter(state, pod(), nodes)
    failed = failed or framework.run_pre_score(state, pod(), nodes)
    return state, failed or framework.run_score(state, pod(), nodes)


def test_a_nested_plugin_has_its_own_name() -> None:
    outer = outer_plugin(answering("Inner", score=scores(1, 2)), score=scores(1, 2))
    [part] = parts_of(outer)
    assert part.instance_name == "Outer.Inner"
    assert [plugin.instance_name for plugin in with_parts([outer])] == ["Outer", "Outer.Inner"]


def test_extension_points_that_a_plugin_does_not_implement_run_for_its_parts() -> None:
    inner = answering("Inner", pre_filter=None, pre_score=None, score=scores(1, 2))
    outer = outer_plugin(inner, score=scores(3, 4))
    _, table = run(outer)
    assert isinstance(table, ScoreTable)
    assert table.totals.tolist() == [3, 4]
    assert inner.calls == [("Outer.Inner", "pre_filter"), ("Outer.Inner", "pre_score")]


def test_extension_points_that_a_plugin_implements_do_not_run_for_its_parts() -> None:
    inner = answering("Inner", pre_score=ValueError("boom"), score=scores(1, 2))
    outer = outer_plugin(inner, pre_score=None, score=scores(3, 4))
    assert isinstance(run(outer)[1], ScoreTable)
    assert inner.calls == []


def test_a_plugin_is_skipped_if_all_of_its_parts_skip() -> None:
    outer = outer_plugin(answering("Inner", pre_score=SKIP, score=scores(1, 2)), score=scores(3, 4))
    state, table = run(outer)
    assert "Outer" in state.skip_score_plugins
    assert table.totals.tolist() == [0, 0]


def test_the_failure_of_a_part_is_reported_as_that_of_the_outer_plugin() -> None:
    inner = answering("Inner", pre_score=ValueError("boom"), score=scores(1, 2))
    _, failed = run(outer_plugin(inner, score=scores(3, 4)))
    assert (failed.code, failed.plugin) == (Code.ERROR, "Outer")
    assert "boom" in failed.message


def test_a_part_can_reject_only_if_the_outer_plugin_filters() -> None:
    inner = answering("Inner", pre_filter=unschedulable("no"), filter=[], score=scores(1, 2))
    assert isinstance(run(outer_plugin(inner, score=scores(3, 4)))[1], ScoreTable)
    _, rejected = run(outer_plugin(inner, filter=[], score=scores(3, 4)))
    assert (rejected.code, rejected.plugin) == (Code.UNSCHEDULABLE, "Outer")


@pytest.mark.parametrize(
    ("answer", "skips", "names"),
    [(SKIP, True, None), (None, False, None), (PreFilterResult(frozenset("a")), False, {"a"})],
    ids=["skip", "nothing", "narrowing"],
)
def test_the_pre_filter_result_of_a_part_is_that_of_the_outer_plugin(
    answer: Any, skips: bool, names: Any
) -> None:
    framework = framework_of(
        outer_plugin(answering("Inner", pre_filter=answer, filter=[]), filter=[])
    )
    state, nodes = CycleState(), cluster_of(node("a"), node("b")).lend().nodes
    result, failed, _ = framework.run_pre_filter(state, pod(), nodes)
    assert failed is None
    assert ("Outer" in state.skip_filter_plugins) is skips
    assert result.node_names == names


@pytest.mark.parametrize("answer", [None, SKIP], ids=["has notes", "skipped"])
def test_a_part_with_state_gets_add_pod_and_remove_pod(answer: Any) -> None:
    inner = answering("Inner", pre_filter=answer, filter=[], add_pod=None)
    framework, state = framework_of(outer_plugin(inner, filter=[])), CycleState()
    nodes = cluster_of(node("a")).lend().nodes
    framework.run_pre_filter(state, pod(), nodes)
    assert framework.run_add_pod(state, pod(), pod("other"), nodes.info(0)) is None
    assert inner.calls.count(("Outer.Inner", "add_pod")) == (answer is not SKIP)


def test_parts_of_parts_are_included() -> None:
    innermost = answering("Innermost", pre_score=Status(Code.SKIP), score=scores(1, 2))
    outer = outer_plugin(answering("Inner", score=scores(1, 2)), score=scores(3, 4))
    inner: Any = parts_of(outer)[0]
    inside = inner.handle.inside("Innermost", innermost.kinds)
    inner.handle.made.append(innermost(None, inside, inside.instance_name))
    state, _ = run(outer)
    assert "Outer" in state.skip_score_plugins
    assert is_skip(Status(Code.SKIP))
    assert np.array_equal(innermost.calls, [("Outer.Inner.Innermost", "pre_score")])
