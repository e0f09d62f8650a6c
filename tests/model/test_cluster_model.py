"""A model gives the scheduler's answers, and a question leaves no trace."""

from typing import Any, cast

import pytest
from msgspec import structs

from bayplan import testing
from bayplan.api.objects import NODE, POD, Node, Pod
from bayplan.engine.cache_check import differences
from bayplan.framework.types import QueuedPodInfo
from bayplan.model.cluster_model import GATED_MESSAGE, ClusterModel
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.rng import stream
from bayplan.testing import node, pod
from bayplan.testing.generators import Draws, draw_node, draw_placed_pod, draw_pod
from tests.model.clusters import model_of


def state_of(model: ClusterModel) -> dict[str, Any]:
    """The state of a scheduler: cache, queue and nominator, without versions of objects."""
    scheduler = model.scheduler
    table = scheduler.cache.table
    names = {name: row for name, row in table.row_of.items() if table.nodes[row] is not None}
    nominator = scheduler.queue.nominator
    queued = {
        each.uid: (state, each.nominated_node_name)
        for state, pods in scheduler.queue.pending_pods().items()
        for each in pods
    }
    return {
        "nodes": {name: sorted(table.pods[row]) for name, row in names.items()},
        "contents": {
            name: structs.replace(
                table.nodes[row],  # pyright: ignore[reportArgumentType] - checked above
                metadata=structs.replace(table.nodes[row].metadata, resource_version=None),  # pyright: ignore[reportOptionalMemberAccess]
            )
            for name, row in names.items()
        },
        "assumed": scheduler.cache.assumed_count,
        "queued": queued,
        "tries": {uid: scheduler.queue.find(uid).attempts for uid in queued},  # pyright: ignore[reportOptionalMemberAccess]
        "nominated": dict(nominator.node_of),
        "waiting": scheduler.waiting_pods(),
        "in flight": len(scheduler.queue.in_flight),
        "quiet": scheduler.only_retries_wait or bool(queued),
    }


def answers(model: ClusterModel) -> dict[str, tuple[str, str, str]]:
    attempts = {each.key: model.attempt(each.key) for each in model.pending()}
    return {key: (a.result, a.node, a.message) for key, a in attempts.items()}


def assert_consistent(model: ClusterModel) -> None:
    nodes = [cast(Node, each) for each in model.objects(NODE)]
    pods = [cast(Pod, each) for each in model.objects(POD)]
    assert not differences(model.scheduler, nodes, pods)


def test_an_attempt_has_the_message_of_kube_scheduler_and_leaves_no_trace() -> None:
    model = model_of([node("n1", cpu="1"), node("n2", cpu="2")], [pod("big", cpu="3")])
    before = state_of(model)
    attempt = model.attempt("default/big")
    assert attempt.result == "unschedulable"
    assert attempt.message == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )
    assert state_of(model) == before


def test_a_pod_that_fits_gets_a_node_in_a_placement_only() -> None:
    model = model_of([node("n1", cpu="1")], [pod("a", cpu="1"), pod("b", cpu="1")])
    assert model.attempt("default/a").node == "n1"
    assert model.attempt("default/b").node == "n1"
    assert model.place("default/a").node == "n1"
    assert not model.attempt("default/b").fits
    assert_consistent(model)
    with pytest.raises(KeyError, match="does not wait"):
        model.attempt("default/a")


def test_an_attempt_names_victims_and_a_placement_evicts_them() -> None:
    model = model_of(
        [node("n1", cpu="1")],
        [pod("low", node="n1", cpu="1", priority=0), pod("high", cpu="1", priority=10)],
    )
    before = state_of(model)
    attempt = model.attempt("default/high")
    assert (attempt.node, attempt.nominated_node) == ("", "n1")
    assert [each.key for each in attempt.victims] == ["default/low"]
    assert state_of(model) == before
    with model.trial():
        placed = model.place("default/high")
        assert (placed.node, [each.key for each in placed.victims]) == ("n1", ["default/low"])
        assert model.pod("default/low") is None
        assert_consistent(model)
    assert state_of(model) == before
    assert model.attempt("default/high").nominated_node == "n1"


def test_a_gated_pod_is_not_tried() -> None:
    model = model_of([node("n1")], [pod("gated", gates=["g"])])
    attempt = model.attempt("default/gated")
    assert (attempt.result, attempt.gating_plugin) == ("gated", "SchedulingGates")
    assert attempt.message == GATED_MESSAGE


def test_a_nomination_of_another_pod_counts() -> None:
    pods = [pod("first", cpu="1", priority=5, nominated_node="n1"), pod("second", cpu="1")]
    model = model_of([node("n1", cpu="1")], pods)
    assert not model.attempt("default/second").fits
    assert model.attempt("default/first").node == "n1"


def test_an_equal_condition_of_the_pod_does_not_suppress_the_message() -> None:
    big = pod("big", cpu="3")
    model = model_of([node("n1", cpu="1")], [big])
    message = model.attempt("default/big").message
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    old = pod("big", cpu="3", status={"conditions": [{**condition, "message": message}]})
    assert model_of([node("n1", cpu="1")], [old]).attempt("default/big").message == message


def test_changes_of_a_trial_are_undone() -> None:
    model = model_of([node("n1", cpu="1")], [pod("big", cpu="3"), pod("old", node="n1")])
    before, old_answers = state_of(model), answers(model)
    with model.trial():
        model.add(NODE, node("n2", cpu="4"))
        assert model.attempt("default/big").node == "n2"
        with model.trial():
            model.remove(NODE, "", "n2")
            assert not model.attempt("default/big").fits
        model.remove(POD, "default", "old")
        assert model.place("default/big").node == "n2"
    assert state_of(model) == before
    assert answers(model) == old_answers


@pytest.mark.parametrize("seed", range(12))
def test_after_drawn_operations_a_trial_restores_the_earlier_state(seed: int) -> None:
    draws = Draws(stream(seed, "cluster model"))
    nodes = [testing.node(f"n{i}", **draw_node(draws)) for i in range(6)]
    pods = [testing.pod(f"placed{i}", **draw_placed_pod(draws)) for i in range(10)]
    pods += [testing.pod(f"p{i}", **draw_pod(draws)) for i in range(10)]
    names = {each.metadata.name for each in nodes}
    model = model_of(nodes, [each for each in pods if each.node_name in {"", *names}])
    before, old_answers = state_of(model), answers(model)
    assert state_of(model) == before
    for _ in range(4):
        with model.trial():
            for number in range(8):
                _do_something(model, draws, number)
                assert_consistent(model)
        assert state_of(model) == before
    assert answers(model) == old_answers
    assert_consistent(model)


def _do_something(model: ClusterModel, draws: Draws, number: int) -> None:
    nodes = [each.metadata.name for each in model.objects(NODE)]
    pods = [each.metadata for each in model.objects(POD)]
    pending = [each.key for each in model.pending()]
    operation = draws.one(("add node", "add pod", "remove", "change", "place", "place", "attempt"))
    if operation == "add node":
        model.add(NODE, testing.node(f"new{number}", **draw_node(draws)))
    elif operation == "add pod":
        added = testing.pod(f"new{number}", **draw_pod(draws)).pod
        metadata = structs.replace(added.metadata, uid=None)
        model.add(POD, structs.replace(added, metadata=metadata))
    elif operation == "remove" and pods:
        metadata = draws.one(pods)
        model.remove(POD, metadata.namespace or "", metadata.name)
    elif operation == "change" and nodes:
        model.replace(NODE, testing.node(draws.one(nodes), **draw_node(draws)))
    elif pending and operation == "place":
        model.place(draws.one(pending))
    elif pending:
        model.attempt(draws.one(pending))


def test_what_is_made_once_lasts_until_the_objects_change_and_returns_after_a_trial() -> None:
    model = model_of([node("n1")], [pod("p")])
    made: list[int] = []

    def pod_count(model: ClusterModel) -> int:
        made.append(0)
        return sum(1 for _ in model.objects(POD))

    assert [model.once(pod_count), model.once(pod_count), len(made)] == [1, 1, 1]
    with model.trial():
        model.remove(POD, "default", "p")
    model.attempt("default/p")
    assert [model.once(pod_count), len(made)] == [1, 1]
    with model.trial():
        model.remove(POD, "default", "p")
        assert model.once(pod_count) == 0
    assert model.once(pod_count) == 1
    model.remove(POD, "default", "p")
    assert model.once(pod_count) == 0


def test_the_queue_is_sorted_once_until_pods_change_and_has_its_order_after_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sorted_pods: list[str] = []
    key = PrioritySort.key

    def counted_key(plugin: PrioritySort, queued: QueuedPodInfo) -> tuple[int, float, int]:
        sorted_pods.append(queued.pod.name)
        return key(plugin, queued)

    monkeypatch.setattr(PrioritySort, "key", counted_key)
    model = model_of([node("n1")], [pod("low"), pod("high", priority=7), pod("later")])

    def names() -> list[str]:
        return [each.name for each in model.in_queue_order()]

    assert names() == ["high", "low", "later"]
    sorted_pods.clear()
    assert (names(), sorted_pods) == (["high", "low", "later"], [])
    with model.trial():
        model.place("default/low")
        assert names() == ["high", "later"]
        model.add(POD, testing.pod("highest", priority=9).pod)
        assert names() == ["highest", "high", "later"]
    assert names() == ["high", "low", "later"]
    model.remove(POD, "default", "high")
    assert names() == ["low", "later"]
