"""Evaluations of plugins are counted as upstream counts them: by pod, and by node."""

from typing import Any

import numpy as np

from bayplan.framework.evaluations import Evaluations

NOTHING: Any = object()


def test_a_pod_counts_once_and_nodes_count_each() -> None:
    counts = Evaluations()
    pre_filter = counts.of_pod("A", "PreFilter", lambda state, pod, nodes: "answer")
    ask_filter = counts.of_filter("A", lambda state, pod, nodes, feasible: ())
    filter_row = counts.of_node("A", "Filter", lambda state, pod, node: ())
    score = counts.of_score("A", lambda state, pod, nodes: np.zeros(len(nodes), np.int64))
    nodes: Any = range(4)
    assert pre_filter(NOTHING, NOTHING, nodes) == "answer"
    ask_filter(NOTHING, NOTHING, nodes, np.array([True, False, True, True]))
    filter_row(NOTHING, NOTHING, NOTHING)
    assert len(score(NOTHING, NOTHING, nodes)) == 4
    assert dict(counts.counts()) == {("A", "PreFilter"): 1, ("A", "Filter"): 4, ("A", "Score"): 4}


def test_a_plugin_that_was_never_evaluated_is_there_with_zero() -> None:
    counts = Evaluations()
    counts.of_score("B", lambda state, pod, nodes: np.zeros(0, np.int64))
    assert dict(counts.counts()) == {("B", "Score"): 0}


def test_an_evaluation_that_fails_counts() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    counts = Evaluations()
    ask = counts.of_pod("C", "PreScore", fail)
    for _ in range(2):
        try:
            ask(NOTHING, NOTHING, NOTHING)
        except RuntimeError:
            continue
    assert dict(counts.counts()) == {("C", "PreScore"): 2}
