"""Changes of a group or of its members reach the queue; minResources is checked."""

from itertools import count

import pytest

from bayplan.clock import ManualClock
from bayplan.objects.keys import object_key
from bayplan.queue.entry import State
from bayplan.testing import node
from tests.engine.kit import Engine, waiting_pod
from tests.scenarios.gangs import (
    FIT,
    LABELS,
    X_K8S,
    add_member,
    add_members,
    bound,
    explanation,
    message,
    put_group,
)
from tests.scenarios.world import World, scenario

# ---- gangs ----------------------------------------------------------------------------------


@scenario(plugins=FIT)
async def test_a_group_that_loses_a_member_assembles_again(world: World) -> None:
    put_group(world, "g", 2)
    add_members(world, ("a", "b"), "g")
    await world.until(1)
    world.delete_pod("b")
    await world.until(2)
    assert "1 of 2 members are here" in explanation(world, "g")
    world.add_node("n1")
    await world.until(60)
    assert list(bound(world, "a")) == [None]
    add_member(world, "c", "g")
    await world.until(61)
    assert list(bound(world, "a", "c")) == [60, 60]


@scenario(plugins=FIT)
async def test_deleting_a_group_object_gates_its_members(world: World) -> None:
    put_group(world, "g", 2)
    add_members(world, ("a", "b"), "g")
    await world.until(1)
    world.cluster.delete(object_key(X_K8S, "default", "g"))
    world.add_node("n1")
    await world.until(30)
    assert list(bound(world, "a", "b")) == [None, None]
    assert "not found" in explanation(world, "g")


def test_a_group_is_tried_again_if_another_program_binds_a_member() -> None:
    labels = {LABELS[X_K8S]: "g"}
    engine = Engine(plugins=["NodeResourcesFit"])
    engine.put(X_K8S, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}})
    engine.add(node("n1", cpu=2), *(waiting_pod(name, cpu=1, labels=labels) for name in "abc"))
    assert engine.bound() == {}
    engine.until(30)
    engine.update(waiting_pod("c", cpu=1, node="n2", labels=labels))
    assert engine.bound() == {"a": "n1", "b": "n1"}


@scenario(plugins=FIT)
async def test_a_group_that_lost_a_member_is_not_activated_before_it_is_complete_again(
    world: World,
) -> None:
    """An event that helps its members arrives during its delay."""
    world.add_node("n1", cpu=1)
    put_group(world, "g", 2)
    add_members(world, "ab", "g", cpu=1)
    await world.until(0.1)
    world.delete_pod("b")
    world.add_node("n2", cpu=1)
    await world.until(0.2)
    assert world.scheduler.queue.state_of(world.uid("a")) is State.GATED
    add_member(world, "c", "g", cpu=1)
    await world.until(3)
    assert list(bound(world, "a", "c")) == [2.0, 2.0]


def test_groups_created_in_one_second_are_ordered_by_name_despite_clock_drift(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = count()
    monkeypatch.setattr(ManualClock, "epoch_seconds", lambda clock: clock.now() + next(reads))
    engine = Engine(plugins=["NodeResourcesFit"])
    for name in ("x", "y"):
        meta = {"name": name, "creationTimestamp": "1970-01-01T00:00:00Z"}
        engine.put(X_K8S, {"metadata": {**meta, "namespace": "default"}, "spec": {"minMember": 2}})
    for name in ("x1", "x2", "y1", "y2"):
        labels = {LABELS[X_K8S]: name[0]}
        engine.add(waiting_pod(name, cpu=1, labels=labels))
    engine.add(node("n1", cpu=2))
    assert sorted(engine.bound()) == ["x1", "x2"]


# ---- min resources --------------------------------------------------------------------------


@scenario(plugins=FIT)
async def test_s14_min_resources_is_a_lower_bound_that_is_checked(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 2, minResources={"cpu": "6"})
    add_members(world, ("g1", "g2"), "g", cpu=1)
    await world.until(10)
    assert list(bound(world, "g1", "g2")) == [None, None]
    expected = "minResources are not free in the cluster: cpu (wanted 6, found 4)"
    assert expected in message(world, "g1")
    world.add_node("n2", cpu=4)
    await world.until(20)
    assert None not in list(bound(world, "g1", "g2"))


@scenario(plugins=FIT)
async def test_an_invalid_quantity_is_reported_with_its_path(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 1, minResources={"cpu": "many"})
    add_member(world, "g1", "g", cpu=1)
    await world.until(10)
    assert list(bound(world, "g1")) == [None]
    expected = "group default/g: spec.minResources: found 'many', wanted a quantity"
    assert message(world, "g1").startswith(expected)
    put_group(world, "g", 1, minResources={"cpu": "1500m"})
    await world.until(30)
    assert None not in list(bound(world, "g1"))
