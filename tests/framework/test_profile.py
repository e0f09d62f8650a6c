"""The plugins of one profile by extension point."""

from typing import Any

from bayplan.framework.profile import (
    EXTENSION_POINTS,
    extension_points_of,
    may_be_enabled_at,
)
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.testing import pod
from tests.framework.answering import answering, plugins_of


def test_a_class_is_at_the_points_it_implements_in_the_order_they_run() -> None:
    plugin = answering("A", permit=(None, 0.0), score=None, pre_filter=None, reserve=None)
    assert extension_points_of(plugin) == ["preFilter", "score", "reserve", "permit"]
    assert extension_points_of(PrioritySort) == ["queueSort"]


def test_the_two_forms_of_filter_and_score_are_one_point() -> None:
    assert extension_points_of(answering("A", filter=None)) == ["filter"]
    assert extension_points_of(answering("A", filter_node=None)) == ["filter"]
    assert extension_points_of(answering("A", score_node=None)) == ["score"]


def test_plugins_that_ignore_resizes_are_left_out_of_resizes() -> None:
    ignoring = answering("Ignoring", filter=None)
    ignoring.ignores_resizes = True
    plugins = plugins_of(ignoring, answering("Other", filter=None))
    pending: Any = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
    shape = pod(node="n1", status=pending).shape
    assert plugins.ignoring(shape) == set()
    plugins.tries_resizes = True
    assert plugins.ignoring(shape) == {"Ignoring"}
    assert plugins.ignoring(pod().shape) == set()


def test_all_of_upstreams_points_are_there_and_one_of_ours() -> None:
    *upstreams, ours = EXTENSION_POINTS
    assert ours == "tieBreak"
    assert upstreams == [
        "preEnqueue",
        "queueSort",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "placementGenerate",
        "placementScore",
        "podGroupPostFilter",
    ]


def test_score_plugins_may_be_tie_break_keys_where_they_are_named() -> None:
    scorer, key = answering("A", score=None), answering("B", tie_break=None)
    assert extension_points_of(scorer) == ["score"]
    assert extension_points_of(key) == ["tieBreak"]
    assert may_be_enabled_at("tieBreak", scorer)
    assert may_be_enabled_at("tieBreak", key)
    assert not may_be_enabled_at("score", key)
    assert not may_be_enabled_at("tieBreak", answering("C", filter=None))
