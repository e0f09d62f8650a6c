"""What is called at each extension point."""

import asyncio
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from bayplan.framework.calls import Calls, calls_for, calls_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code, unschedulable
from bayplan.framework.timing import Bare
from bayplan.testing import node, pod
from tests.framework.answering import answering, cluster_of, plugins_of, scores

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
    """A wrap that notes what it wraps."""

    def __init__(self) -> None:
        self.wrapped: list[tuple[str, str]] = []

    def plain(self, name: str, point: str, call: Any) -> Any:
        self.wrapped.append((name, point))
        return call

    listed = awaited = plain


def test_every_extension_point_is_called_under_the_instances_name() -> None:
    calls = calls_of(plugins_of(answering("All", **EVERYTHING)), Bare())
    for each in fields(Calls):
        found = getattr(calls, each.name)
        if each.name == "scoring":
            assert found == {"All": calls.score[0]}
            continue
        if each.name in ("unconcerned", "pre_state_per_template", "own_rows"):
            assert not found
            continue
        assert len(found) == 1, each.name
        if isinstance(found, Mapping):
            name = next(iter(found))
        else:
            name = found[0].name if each.name in ("score", "tie_break") else found[0][0]
        assert name == "All"


def test_each_call_is_wrapped_under_upstreams_word_for_its_point() -> None:
    wrap = Counting()
    plugin = answering("All", **EVERYTHING, normalize=lambda state, asked, found: found)
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


def test_plugins_stand_in_order_and_unreserve_in_the_reverse_one() -> None:
    plugins = plugins_of(*(answering(name, reserve=None) for name in "ABC"))
    calls = calls_of(plugins, Bare())
    assert [name for name, _ in calls.reserve] == ["A", "B", "C"]
    assert [name for name, _ in calls.unreserve] == ["C", "B", "A"]


def test_only_plugins_with_extensions_are_called_for_pods() -> None:
    plugins = plugins_of(
        answering("A", pre_filter=None), answering("B", pre_filter=None, add_pod=None)
    )
    assert [name for name, _ in calls_of(plugins, Bare()).add_pod] == ["B"]


def test_a_plugin_that_a_pod_does_not_concern_is_called_to_score_only() -> None:
    plugin = answering("All", **EVERYTHING)
    plugins = plugins_of(plugin)
    calls, shape = calls_of(plugins, Bare()), pod().shape
    assert calls_for(calls, plugins, shape) == calls
    plugin.concerns = lambda self, shape: False
    left = calls_for(calls, plugins, shape)
    kept = {each.name for each in fields(Calls) if getattr(left, each.name)}
    rows = {"filter_of", "filter_row", "score_row"}
    scoring = {"pre_score", "score", "scoring", "tie_break"}
    assert kept - rows == {
        *scoring,
        "pre_filter",
        "post_filter",
        "bind",
        "pre_bind_groups",
        "unconcerned",
        "pre_state_per_template",
    }
    assert left.unconcerned == {"All"}


def test_what_ignores_resizes_is_not_asked_where_a_pod_that_runs_is_to_be_resized() -> None:
    given = {"pre_filter": None, "filter": [], "post_filter": (None, None)}
    ignoring, other = answering("Ignoring", **given), answering("Other", **given)
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
    assert left.unconcerned == {"Ignoring"}


def test_a_plugin_written_node_by_node_is_called_for_many() -> None:
    plugins = plugins_of(
        answering("A", filter_node=unschedulable("no")),
        answering("B", score_node=lambda state, asked, info: len(info.name)),
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
