"""The loan of a cycle, and what-ifs over it. Rows F-044, F-045 and F-047 of the checklist."""

import pytest

from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.nodes import LoanEnded
from bayplan.state.snapshot import NodeNotFound, Snapshot
from tests.kit.objects import node, pod
from tests.state.affinity_terms import REQUIRED, term

AWAY = {"podAntiAffinity": {REQUIRED: [term({"app": "web"})]}}


def cache_of(*names: str) -> Cache:
    cache = Cache()
    for name in names:
        cache.add_node(node(name))
    return cache


def pods_on(snapshot: Snapshot, name: str) -> list[str]:
    return [each.name for each in snapshot.node(name).pods]


def test_nodes_are_looked_up_by_name_and_a_ghost_is_absent() -> None:
    cache = cache_of("a", "b")
    cache.add_pod(pod("p", "ghost"))
    snapshot = cache.lend()
    assert (snapshot.node("b").name, snapshot.node_count) == ("b", 2)
    for ghost in ("ghost", "never"):
        with pytest.raises(NodeNotFound, match=ghost):
            snapshot.node(ghost)


def test_nodes_with_affinity_are_listed() -> None:
    """F-045"""
    cache = cache_of("n1", "n2")
    placed = pod("p", "n2", affinity=AWAY)
    cache.add_pod(placed)
    snapshot = cache.lend()
    assert snapshot.rows_with_affinity.tolist() == [1]
    assert snapshot.rows_with_required_anti_affinity.tolist() == [1]
    snapshot.end()
    cache.remove_pod(placed.uid)
    snapshot = cache.lend()
    assert snapshot.rows_with_affinity.tolist() == []
    assert snapshot.rows_with_required_anti_affinity.tolist() == []


def test_a_snapshot_does_not_change_until_it_is_returned() -> None:
    """F-047: what comes meanwhile waits for the next one."""
    cache = cache_of("a")
    snapshot = cache.lend()
    with pytest.raises(AssertionError, match="while it is lent"):
        cache.add_node(node("b"))
    assert snapshot.nodes.names() == ["a"]
    snapshot.end()
    cache.add_node(node("b"))
    assert cache.lend().nodes.names() == ["a", "b"]


def test_a_snapshot_that_was_given_back_answers_nothing() -> None:
    snapshot = cache_of("a").lend()
    snapshot.end()
    questions = (
        lambda: snapshot.nodes,
        lambda: snapshot.node_count,
        lambda: snapshot.node("a"),
        snapshot.trial,
        lambda: snapshot.rows_with_affinity,
    )
    for question in questions:
        with pytest.raises(LoanEnded):
            question()


def test_a_snapshot_knows_the_generation_it_shows() -> None:
    cache = cache_of("a")
    first = cache.lend()
    first.end()
    cache.assume(pod("p", "a"))
    assert cache.lend().generation > first.generation == 1


# ---- trials ------------------------------------------------------------------------------------


def test_a_trial_is_seen_at_once_and_undone_at_its_end() -> None:
    cache = cache_of("a", "b")
    old = pod("old", "a", requests={"cpu": 2})
    cache.add_pod(old)
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        placed = trial.assume(pod("new", requests={"cpu": 3}), "b")
        trial.remove(old)
        assert placed.node_name == "b"
        assert snapshot.nodes.requested("cpu").tolist() == [0, 3000]
        assert (pods_on(snapshot, "a"), pods_on(snapshot, "b")) == ([], ["new"])
    assert snapshot.nodes.requested("cpu").tolist() == [2000, 0]
    assert (pods_on(snapshot, "a"), pods_on(snapshot, "b")) == (["old"], [])


def test_a_trial_is_undone_when_something_fails_within() -> None:
    cache = cache_of("a")
    snapshot = cache.lend()

    def fail() -> None:
        with snapshot.trial() as trial:
            trial.assume(pod("new"), "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert pods_on(snapshot, "a") == []


def test_undoing_moves_generations_forward() -> None:
    cache = cache_of("a", "b")
    snapshot = cache.lend()
    before = cache.table.log.generation
    with snapshot.trial() as trial:
        trial.assume(pod("new"), "a")
        within = snapshot.node("a").generation
    assert before < within < snapshot.node("a").generation
    assert cache.table.log.rows_since(before, 4095).tolist() == [0]


@pytest.mark.parametrize("removed", [["p"], ["q"], ["r"], ["r", "p"], ["p", "q", "r"]])
def test_pods_come_back_in_the_order_of_their_arrival(removed: list[str]) -> None:
    cache = cache_of("a")
    pods = {name: pod(name, "a") for name in ("p", "q", "r")}
    for each in pods.values():
        cache.add_pod(each)
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        for name in removed:
            trial.remove(pods[name])
        trial.assume(pod("new"), "a")
    assert pods_on(snapshot, "a") == ["p", "q", "r"]


def test_a_trial_within_a_trial_is_undone_first() -> None:
    cache = cache_of("a")
    snapshot = cache.lend()
    with snapshot.trial() as outer:
        outer.assume(pod("one"), "a")
        with snapshot.trial() as inner:
            inner.assume(pod("two"), "a")
            assert pods_on(snapshot, "a") == ["one", "two"]
        assert pods_on(snapshot, "a") == ["one"]
    assert pods_on(snapshot, "a") == []


def test_a_trial_can_be_undone_and_go_on() -> None:
    cache = cache_of("a")
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        trial.assume(pod("one"), "a")
        trial.undo()
        trial.assume(pod("two"), "a")
        assert pods_on(snapshot, "a") == ["two"]
    assert pods_on(snapshot, "a") == []


def test_committed_changes_stay() -> None:
    cache = cache_of("a")
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        trial.assume(pod("one"), "a")
        trial.commit()
        trial.assume(pod("two"), "a")
    assert pods_on(snapshot, "a") == ["one"]


def test_a_snapshot_tells_which_rows_changed_since_another_one() -> None:
    cache = Cache()
    for name in ("n1", "n2"):
        cache.add_node(node(name))
    before = cache.lend()
    generation = before.generation
    before.end()
    cache.add_pod(pod("p", "n2"))
    snapshot = cache.lend()
    assert snapshot.rows_since(generation, Facet.PODS).tolist() == [cache.table.row_of["n2"]]
    assert snapshot.rows_since(generation, Facet.TAINTS).tolist() == []
    snapshot.end()
