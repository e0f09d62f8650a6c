"""Cached searches have the same candidates as new searches, after any changes."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from bayplan.plugins.default_preemption.search_cache import ENTRIES_MAX, SearchCache
from bayplan.plugins.default_preemption.victims import victims_on_all
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import EARLY, LATER, Scene, budget, scene, started
from tests.seeded import depth

TAINT = [{"key": "k", "effect": "NoSchedule"}]
NODES = 4
#: Pods that fill the nodes.
POD_COUNT = 3 * NODES
FEW: dict[str, Any] = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 2}
PREEMPTORS = [pod(f"p{n}", cpu=n, priority=priority) for n in (1, 2) for priority in (1, 2)]

Step = Callable[[Scene], None]


def caching_scene(*args: Any, **options: Any) -> Scene:
    """A scene whose profile caches searches."""
    over = scene(*args, **options)
    over.framework.plugins.reuse_bytes_max = 1
    return over


def search(over: Scene, pod: PodInfo) -> Any:
    """(node, its victims, violations, costs) of each candidate, in order."""
    batch, snapshot = over.find(pod).candidates, over.cluster.lent_snapshot
    assert snapshot is not None
    if batch is None:
        return None
    names = [snapshot.nodes.name(position) for position in batch.positions.tolist()]
    victims = [batch.victims(index) for index in range(len(batch))]
    reports = [([p.name for p in each.pods], each.pdb_violation_count) for each in victims]
    costs = [str(batch.costs.take([index])) for index in range(len(batch))]  # type: ignore[arg-type]
    return list(zip(names, reports, costs, strict=True))


def new_search(over: Scene, pod: PodInfo) -> Any:
    bytes_max, over.framework.plugins.reuse_bytes_max = over.framework.plugins.reuse_bytes_max, 0
    rows = search(over, pod)
    over.framework.plugins.reuse_bytes_max = bytes_max
    return rows


# ---- what changes --------------------------------------------------------------------------

POD_NAMES = st.sampled_from([f"a{number}" for number in range(POD_COUNT)])
NODE_NAMES = st.sampled_from([f"n{number}" for number in range(NODES)])


@st.composite
def placements(draw: st.DrawFn) -> Step:
    """A pod is added, or updated."""
    name = draw(POD_NAMES)
    options: dict[str, Any] = {
        "cpu": draw(st.integers(1, 2)),
        "priority": draw(st.integers(0, 3)),
        "labels": draw(st.sampled_from(({"app": "a"}, {}))),
        "status": draw(st.sampled_from(({}, started(EARLY), started(LATER)))),
        "node": draw(NODE_NAMES),
    }

    def place(over: Scene) -> None:
        cache = over.cluster.cache
        cache.remove_pod(pod(name).uid)
        if cache.node(options["node"]) is not None:
            cache.add_pod(pod(name, **options))

    return place


@st.composite
def starts(draw: st.DrawFn) -> Step:
    """The start time of a pod is set."""
    name, stamp = draw(POD_NAMES), draw(st.sampled_from((EARLY, LATER)))

    def start(over: Scene) -> None:
        old = over.cluster.cache.pod(pod(name).uid)
        if old is not None:
            options: dict[str, Any] = {
                "cpu": old.requests.get("cpu", 0) // 1000,
                "priority": old.priority,
                "labels": dict(old.labels),
                "node": old.node_name,
            }
            over.cluster.cache.update_pod(pod(name, status=started(stamp), **options))

    return start


@st.composite
def other_nodes(draw: st.DrawFn) -> Step:
    """A node gets more or less cpu, or a taint."""
    name, cpu = draw(NODE_NAMES), draw(st.integers(2, 4))
    taints = TAINT if draw(st.booleans()) else []

    def change(over: Scene) -> None:
        over.cluster.cache.update_node(node(name, cpu=cpu, taints=taints))

    return change


@st.composite
def departures(draw: st.DrawFn) -> Step:
    name = draw(POD_NAMES)
    return lambda over: over.cluster.cache.remove_pod(pod(name).uid) and None


@st.composite
def budgets(draw: st.DrawFn) -> Step:
    allowed = draw(st.integers(0, 2))
    return lambda over: over.put_budgets(budget("one", {"app": "a"}, allowed))


@st.composite
def nominations(draw: st.DrawFn) -> Step:
    """A pod is nominated to a node, or to none any more. One of them is a preemptor itself."""
    name = draw(st.sampled_from(["n", "m", PREEMPTORS[0].name]))
    options: dict[str, Any] = {"cpu": draw(st.integers(1, 2)), "priority": draw(st.integers(0, 3))}
    nominated = pod(name, nominated_node=draw(NODE_NAMES), **options)

    def nominate(over: Scene) -> None:
        over.cluster.nominator.add_nominated_pod(nominated)

    def withdraw(over: Scene) -> None:
        over.cluster.nominator.delete_nominated_pod_if_exists(nominated)

    return nominate if draw(st.booleans()) else withdraw


STEPS = st.lists(
    st.one_of(
        placements(),
        placements(),
        starts(),
        other_nodes(),
        departures(),
        budgets(),
        nominations(),
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=depth(15, 60), deadline=None)
@given(STEPS, st.booleans())
def test_cached_results_equal_new_results(steps: list[Step], has_budgets: bool) -> None:
    nodes = [node(f"n{number}", cpu=3) for number in range(NODES)]
    labels = {"app": "a"}
    pods = [pod(f"a{n}", cpu=1, node=f"n{n % NODES}", labels=labels) for n in range(POD_COUNT)]
    over = caching_scene(*nodes, *pods, **FEW)
    if has_budgets:
        over.put_budgets(budget("one", {"app": "a"}, 1))
    for step in steps:
        over.cluster.take_back()
        step(over)
        for expected in PREEMPTORS:
            if over.cycle(expected).choice is None:
                assert search(over, expected) == new_search(over, expected)


# ---- what is searched ----------------------------------------------------------------------


def full_nodes(count: int) -> list[Any]:
    nodes = [node(f"n{number}", cpu=2) for number in range(count)]
    return [*nodes, *(pod(f"a{number}", cpu=2, node=f"n{number}") for number in range(count))]


def searched(over: Scene, pod: PodInfo, monkeypatch: Any) -> int:
    """The number of nodes that are searched."""
    counts = [0]

    def counted(snapshot: Any, positions: Any, *args: Any, **options: Any) -> Any:
        counts[0] += len(positions)
        return victims_on_all(snapshot, positions, *args, **options)

    path = "bayplan.plugins.default_preemption.dry_run.victims_on_all"
    with monkeypatch.context() as patch:
        patch.setattr(path, counted)
        over.find(pod)
    return counts[0]


def test_only_nodes_that_changed_are_searched_again(monkeypatch: Any) -> None:
    over = caching_scene(*full_nodes(20))
    new_pod, other = pod("p", cpu=2, priority=1), pod("q", cpu=2, priority=1)
    assert searched(over, new_pod, monkeypatch) == 20
    assert searched(over, other, monkeypatch) == 0
    over.cluster.take_back()
    over.cluster.cache.update_node(node("n7", cpu=3))
    over.cluster.cache.remove_pod(pod("a8").uid)
    over.cluster.cache.add_pod(pod("b8", cpu=2, node="n8"))
    assert searched(over, other, monkeypatch) == 2


def test_only_nodes_with_new_nominations_are_searched_again(monkeypatch: Any) -> None:
    """As many equal pods find that preempt one after another."""
    over = caching_scene(*full_nodes(20))
    assert searched(over, pod("p", cpu=2, priority=1), monkeypatch) == 20
    over.nominate(pod("p", cpu=2, priority=1, nominated_node="n3"))
    other = pod("q", cpu=2, priority=1)
    assert searched(over, other, monkeypatch) == 1
    assert searched(over, other, monkeypatch) == 0
    assert "n3" not in over.candidates(other)


def test_another_priority_is_searched_separately(monkeypatch: Any) -> None:
    over = caching_scene(*full_nodes(6))
    assert searched(over, pod("p", cpu=2, priority=1), monkeypatch) == 6
    assert searched(over, pod("q", cpu=2, priority=2), monkeypatch) == 6


def test_nothing_is_cached_without_reuse(monkeypatch: Any) -> None:
    over = scene(*full_nodes(6))
    for name in ("p", "q"):
        assert searched(over, pod(name, cpu=2, priority=1), monkeypatch) == 6


def test_the_most_recently_used_keys_stay_cached() -> None:
    over, cache = caching_scene(*full_nodes(2)), SearchCache()
    state = over.cycle(PREEMPTORS[0]).state
    filter_key = over.plugin.handle.runner.filter_key(state, PREEMPTORS[0])
    assert filter_key is not None
    none = over.plugin._current_budgets()
    first = cache.of(filter_key, 0, none)
    assert cache.of(filter_key, 0, none) is first
    for priority in range(1, ENTRIES_MAX + 1):
        cache.of(filter_key, priority, none)
    assert cache.of(filter_key, 0, none) is not first
