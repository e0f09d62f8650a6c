"""Plugins that read each other's scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.score_graph import ScoreGraph
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import SKIP, Code, Status
from bayplan.framework.tie_break import break_ties
from bayplan.testing import handle, pod
from tests.framework.answering import answering, plugins_of
from tests.framework.reading import (
    NODE_COUNT,
    ReaderArgs,
    framework_of,
    normalized,
    reader,
    scored,
    source,
    table_of,
)


def call_count(plugin: Any, method: str = "score") -> int:
    return plugin.calls.count((plugin.instance_name, method))


# ---- sources and readers -------------------------------------------------------------------------


def test_sources_precede_readers_in_an_order_that_is_fixed_at_the_start() -> None:
    a, b, c = source("A", 1, 2, 3, 4), reader("B", "A"), reader("C", "A")
    d = reader("D", "B", "C")
    plugins = plugins_of(d)
    plugins.sources = [c, b, a]
    graph = ScoreGraph(plugins)
    assert [name for name, _ in graph.questions] == ["A", "B", "C", "D"]
    assert sorted(graph.edges()) == [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]


def test_the_order_of_calls_is_the_same_every_time() -> None:
    orders = set[tuple[Any, ...]]()
    for _ in range(100):
        calls: list[tuple[str, str]] = []
        a = source("A", 1, 2, 3, 4, calls=calls)
        b, c = reader("B", "A", calls=calls), reader("C", "A", calls=calls)
        table_of([reader("D", "B", "C", calls=calls)], [a, b, c])
        orders.add(tuple(calls))
    assert len(orders) == 1


# ---- what is read ---------------------------------------------------------------------------


def test_source_scores_are_read_node_by_node() -> None:
    args = ReaderArgs(score_from=("A",))
    plugin = answering("R", score_node=lambda state, pod, node: 100 - state.score_of("A", node))
    table = table_of([plugin(args, handle(), "R")], [source("A", 1, 2, 3, 4)], feasible=[3, 1])
    assert table.totals.tolist() == [96, 98]


# ---- PreScore, Skip -------------------------------------------------------------------------


def test_pre_score_of_a_source_runs_even_if_the_source_is_not_enabled() -> None:
    a = source("A", 1, 2, 3, 4, pre_score=None)
    table_of([reader("R", "A")], [a])
    assert a.calls == [("A", "pre_score"), ("A", "score")]


def test_a_reader_whose_sources_are_all_skipped_is_skipped() -> None:
    a = source("A", 1, 2, 3, 4, pre_score=SKIP)
    b, c = reader("B", "A"), reader("C", "B")
    table = table_of([c, source("E", 9, 8, 7, 6)], [a, b])
    assert table.totals.tolist() == [9, 8, 7, 6]
    assert call_count(b) == call_count(c) == 0
    assert table.notes == [
        "B was skipped: so was all it reads, A",
        "C was skipped: so was all it reads, B",
    ]


def test_a_skipped_source_among_several_has_scores_of_zero() -> None:
    a, b = source("A", 9, 9, 9, 9, pre_score=SKIP), source("B", 1, 2, 3, 4)
    table = table_of([reader("R", "A", "B", score=lambda one, two: one * 10 + two)], [a, b])
    assert table.totals.tolist() == [1, 2, 3, 4]
    assert table.notes == ["R read zeros in place of A, which was skipped"]


def test_a_reader_may_skip_itself() -> None:
    table = table_of([reader("R", "A", pre_score=SKIP)], [source("A", 1, 2, 3, 4)])
    assert (table.totals.tolist(), table.notes) == ([0, 0, 0, 0], [])


# ---- over all nodes -------------------------------------------------------------------------


def wide(name: str = "W", *sources: str, **options: Any) -> Any:
    return reader(name, *(sources or ("A",)), over="all", **options)


def test_a_source_with_scope_cluster_runs_as_if_all_nodes_were_feasible() -> None:
    """PreScore counts the nodes; Score returns the count."""

    def counted(state: Any, pod: Any, nodes: Any) -> None:
        state["count"] = len(nodes)

    def score_count(state: Any, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), state["count"])

    a = answering("A", pre_score=counted, score=score_count, scope="cluster")(None, handle(), "A")
    near, far = reader("N", "A", score=lambda s: s), wide(score=lambda s: s[[0, 1]])
    result = normalized(table_of([far, near], [a], feasible=[0, 1]))
    assert (result["W"], result["N"]) == ([4, 4], [2, 2])


def test_a_skip_over_all_nodes_applies_to_readers_of_all_nodes_only() -> None:
    a = answering(
        "A",
        pre_score=lambda state, pod, nodes: SKIP if len(nodes) == NODE_COUNT else None,
        score=lambda state, pod, nodes: np.full(len(nodes), 7),
        scope="cluster",
    )(None, handle(), "A")
    table = table_of([wide(), reader("N", "A", score=lambda s: s)], [a], feasible=[0, 1])
    assert table.totals.tolist() == [7, 7]
    assert table.notes == ["W was skipped: so was all it reads, A"]


# ---- what goes wrong ------------------------------------------------------------------------


def failure(*enabled: Any, sources: Any = (), feasible: Any = range(NODE_COUNT)) -> Status:
    status = scored(framework_of(enabled, sources), feasible)
    assert isinstance(status, Status)
    assert status.code is Code.ERROR
    return status


def test_a_source_that_fails_is_named_and_not_its_reader() -> None:
    a = answering("A", score=ValueError("boom"))(None, handle(), "A")
    result = failure(reader("R", "A"), sources=[a])
    assert result.plugin == "A"
    step = 'running Score plugins: plugin "A" failed with'
    assert result.message.startswith(f"{step}: ValueError: boom")


def test_a_source_out_of_range_is_named() -> None:
    result = failure(reader("R", "A"), sources=[source("A", 1, 2, 101, 4)])
    assert result.plugin == "A"
    assert 'plugin "A" returns an invalid score 101' in result.message


def test_a_reader_that_writes_to_a_source_fails_alone() -> None:
    def writes(scores: Any) -> Any:
        scores += 1
        return scores

    own = np.array([1, 2, 3, 4], np.int64)
    a = answering("A", score=lambda *_: own)(None, handle(), "A")
    result = failure(reader("Good", "A"), reader("Bad", "A", score=writes), sources=[a])
    assert result.plugin == "Bad"
    assert "read-only" in result.message
    assert own.tolist() == [1, 2, 3, 4]
    own[0] = 7  # the array is the plugin's


def test_an_undeclared_source_cannot_be_read() -> None:
    plugin = answering("R", score=lambda state, pod, nodes: state.scores("E"))
    args = ReaderArgs(score_from=("A",))
    enabled = [plugin(args, handle(), "R"), source("E", 1, 2, 3, 4)]
    result = failure(*enabled, sources=[source("A", 1, 2, 3, 4)])
    assert result.plugin == "R"
    assert 'scores of "E" are not read by R' in result.message


def test_after_the_plugins_turn_no_source_can_be_read() -> None:
    plugin = answering("R", score=lambda state, pod, nodes: state.scores("A"))
    enabled = [reader("N", "A"), plugin(None, handle(), "R")]
    assert failure(*enabled, sources=[source("A", 1, 2, 3, 4)]).plugin == "R"


@pytest.mark.parametrize(
    ("pre_score", "message"),
    [
        pytest.param(ValueError("boom"), "ValueError: boom", id="raises"),
        pytest.param(Status(Code.UNSCHEDULABLE, ("no",)), "no", id="rejects"),
    ],
)
def test_a_pre_score_over_all_nodes_that_fails_is_named(pre_score: Any, message: str) -> None:
    def only_then(state: Any, pod: Any, nodes: Any) -> Any:
        if len(nodes) < NODE_COUNT:
            return None
        if isinstance(pre_score, Exception):
            raise pre_score
        return pre_score

    a = source("A", 1, 2, 3, 4, scope="cluster", pre_score=only_then)
    result = failure(wide(), sources=[a], feasible=[0, 1])
    assert (result.plugin, message in result.message) == ("A", True)


# ---- keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("totals", "left", "times"),
    [((5, 5, 5, 1), [2], 1), ((5, 6, 5, 1), [1], 0)],
    ids=["something ties", "nothing ties"],
)
def test_a_reader_may_be_a_tie_break_key_and_is_called_only_for_ties(
    totals: tuple[int, ...], left: list[int], times: int
) -> None:
    a, key = source("A", 3, 2, 1, 0), reader("K", "A", score=lambda s: 100 - s)
    framework = framework_of([source("E", *totals)], [a], keys=[key])
    table = scored(framework)
    assert isinstance(table, ScoreTable)
    assert (
        break_ties(framework.calls(CycleState(), pod()).tie_break, CycleState(), pod(), table)
        is None
    )
    assert table.tied is not None
    assert np.flatnonzero(table.tied).tolist() == left
    assert call_count(a) == call_count(key) == times


def test_a_source_of_a_key_that_fails_is_named() -> None:
    a = answering("A", score=ValueError("boom"))(None, handle(), "A")
    framework = framework_of([source("E", 1, 1, 1, 1)], [a], keys=[reader("K", "A")])
    table = scored(framework)
    assert isinstance(table, ScoreTable)
    failed = break_ties(framework.calls(CycleState(), pod()).tie_break, CycleState(), pod(), table)
    assert failed is not None
    assert failed.plugin == "A"


# ---- any graph ------------------------------------------------------------------------------

numbers = st.lists(st.integers(0, 100), min_size=NODE_COUNT, max_size=NODE_COUNT)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=5))
def test_a_graph_that_equals_a_weighted_sum_has_the_same_totals(
    drawn_scores: list[tuple[list[int], int]],
) -> None:
    """Each plugin has a reader that returns the plugin's scores."""
    plain = [source(f"S{n}", *scores) for n, (scores, _) in enumerate(drawn_scores)]
    weights = {f"S{n}": weight for n, (_, weight) in enumerate(drawn_scores)}
    sources = [source(f"S{n}", *scores) for n, (scores, _) in enumerate(drawn_scores)]
    readers = [reader(f"R{n}", f"S{n}", score=lambda s: s) for n in range(len(drawn_scores))]
    read = {f"R{n}": weight for n, (_, weight) in enumerate(drawn_scores)}
    one, other = table_of(plain, weights=weights), table_of(readers, sources, weights=read)
    assert one.totals.tolist() == other.totals.tolist()
    both = {**weights, **read}
    assert table_of([*readers, *sources], weights=both).totals.tolist() == (2 * one.totals).tolist()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_graph_scores_as_a_naive_recomputation_does(data: Any) -> None:
    """Drawn sources, and layers of readers; each reader reads some of the plugins before it."""
    leaves = data.draw(st.lists(numbers, min_size=1, max_size=3))
    feasible = sorted(data.draw(st.sets(st.integers(0, NODE_COUNT - 1), min_size=2)))
    plugins = [source(f"P{n}", *scores) for n, scores in enumerate(leaves)]
    reads: dict[str, tuple[list[str], bool]] = {}
    for n in range(len(leaves), len(leaves) + data.draw(st.integers(1, 6))):
        names = data.draw(
            st.lists(st.sampled_from([f"P{k}" for k in range(n)]), min_size=1, unique=True)
        )
        is_wide = data.draw(st.booleans())
        reads[f"P{n}"] = names, is_wide
        plugins.append(_summing(f"P{n}", names, is_wide))
    added = data.draw(st.sets(st.sampled_from(range(len(plugins))), min_size=1))
    enabled = [plugins[n] for n in sorted(added)]
    left = [plugin for n, plugin in enumerate(plugins) if n not in added]
    table = table_of(enabled, left, feasible=feasible)

    def naive(name: str, over: list[int]) -> list[int]:
        if name not in reads:
            return [leaves[int(name[1:])][node] for node in over]
        names, is_wide = reads[name]
        everything = list(range(NODE_COUNT)) if is_wide else over
        total = sum(sum(naive(each, everything)) for each in names)
        return [(total + node) % 101 for node in over]

    expected = np.sum([naive(plugin.name, feasible) for plugin in enabled], axis=0)
    assert table.totals.tolist() == expected.tolist()


def _summing(name: str, sources: list[str], is_wide: bool) -> Any:
    """A reader whose scores depend on all nodes that it reads, and differ from node to node."""

    def score(state: Any, pod: Any, nodes: Any) -> Any:
        total = sum(int(state.scores(each).sum()) for each in sources)
        return np.array([(total + int(node[1:])) % 101 for node in nodes.names()], np.int64)

    args = ReaderArgs(score_from=tuple(sources), over="all" if is_wide else "feasible")
    return answering(name, score=score, scope="cluster")(args, handle(), name)
