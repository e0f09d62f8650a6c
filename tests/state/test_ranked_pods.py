"""Pods of nodes by importance."""

from math import inf

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bayplan.state import ranked_pods
from bayplan.state.cache import Cache
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import NO_PRIORITY, started_seconds
from bayplan.testing import node, pod

START = "2026-01-01T00:00:0{}Z"


def ranked(cache: Cache, name: str = "n1") -> list[str]:
    snapshot = cache.lend()
    nodes = snapshot.nodes.take(snapshot.nodes.positions([name]))
    view = snapshot.ranked_pods(nodes)
    names = [each.name for each in view.pods(0)]
    snapshot.end()
    return names


def cache_of(*names: str) -> Cache:
    cache = Cache(capacity=1)
    for name in names:
        cache.add_node(node(name))
    return cache


def at(
    name: str, priority: int = 0, second: int | None = None, on: str = "n1", **options: object
) -> PodInfo:
    status = {} if second is None else {"startTime": START.format(second)}
    return pod(name, node=on, priority=priority, status=status, **options)  # type: ignore[arg-type]


def test_a_pod_that_has_started_since_is_ranked_again() -> None:
    cache = cache_of("n1")
    cache.add_pod(at("a", 0, 5))
    cache.add_pod(at("b"))
    assert ranked(cache) == ["a", "b"]
    cache.update_pod(at("b", 0, 1))
    assert ranked(cache) == ["b", "a"]


def test_the_changed_nodes_include_placements_removals_and_starts() -> None:
    cache = cache_of("n1", "n2", "n3")
    cache.add_pod(at("a"))
    cache.add_pod(pod("b", node="n2"))

    def seen(turn: int) -> tuple[int, list[int]]:
        snapshot = cache.lend()
        view = snapshot.ranked_pods(snapshot.nodes)
        snapshot.end()
        return view.turn, sorted(set(view.rows_since(turn).tolist()))

    turn, changed = seen(0)
    assert changed == [0, 1, 2]
    assert seen(turn) == (turn, [])
    cache.update_pod(at("a", 0, 1))
    cache.remove_pod(pod("b").uid)
    assert seen(turn)[1] == [0, 1]


def test_a_pod_that_has_not_started_counts_as_started_last() -> None:
    assert started_seconds(pod("a")) == inf


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "remove", "look")),
            st.integers(0, 7),
            st.integers(0, 3),
            st.sampled_from(("n1", "n2", "n3")),
        ),
        max_size=40,
    ),
    st.sampled_from((0, 32)),
    st.booleans(),
)
def test_matrices_equal_a_new_count(
    steps: list[tuple[str, int, int, str]], few_rows: int, members_outrank: bool
) -> None:
    """Rows are ranked one by one and together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_pods, "_FEW_ROWS", few_rows)
        _take(steps, members_outrank)


def _take(steps: list[tuple[str, int, int, str]], members_outrank: bool) -> None:
    cache, placed = cache_of("n1", "n2", "n3"), dict[int, PodInfo]()
    cache.table.ranked_pods.members_outrank = members_outrank
    for verb, number, priority, name in [*steps, ("look", 0, 0, "n1")]:
        if verb == "add" and number not in placed:
            second = None if number % 3 else number
            spec = {"schedulingGroup": {"podGroupName": "g"}} if number % 2 else {}
            placed[number] = at(f"p{number}", priority, second, name, cpu=number, spec=spec)
            cache.add_pod(placed[number])
        elif verb == "remove" and number in placed:
            cache.remove_pod(placed.pop(number).uid)
        elif verb == "look":
            _compare(cache, placed, members_outrank)


def _compare(cache: Cache, placed: dict[int, PodInfo], members_outrank: bool) -> None:
    def importance(pod: PodInfo) -> tuple[int, bool, float]:
        is_plain = pod.spec.scheduling_group is None
        return (-pod.priority, members_outrank and is_plain, started_seconds(pod))

    snapshot = cache.lend()
    nodes = snapshot.nodes
    view = snapshot.ranked_pods(nodes)
    cpu = view.amounts("cpu")
    for position, name in enumerate(nodes.names()):
        expected = sorted((p for p in placed.values() if p.node_name == name), key=importance)
        priorities = [each.priority for each in expected]
        count = len(priorities)
        assert [each.uid for each in view.pods(position)] == [each.uid for each in expected]
        assert view.priorities[position, :count].tolist() == priorities
        starts = [started_seconds(each) for each in expected]
        assert view.starts[position, :count].tolist() == starts
        assert (view.priorities[position, count:] == NO_PRIORITY).all()
        amounts = [each.requests.get("cpu", 0) for each in expected]
        assert cpu[position, :count].tolist() == amounts
        assert not cpu[position, count:].any()
        lowest = priorities[-1] if priorities else NO_PRIORITY
        assert view.lowest[position] == lowest
    snapshot.end()
