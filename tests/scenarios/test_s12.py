"""S-12: a gang waits for its members."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from bayplan.api.pod_groups import KINDS
from bayplan.journal import NoteRecord
from bayplan.ports import ApiError, Cluster
from bayplan.state.pods import PodInfo
from tests.scenarios.gangs import (
    CONFIGURED,
    CONFIGURED_ROW,
    FIT,
    LABELS,
    MING,
    X_K8S,
    add_member,
    add_members,
    bound,
    condition,
    explanation,
    group_attempts,
    message,
    owned_by,
    put_group,
    scheduled_status,
    status,
)
from tests.scenarios.world import World, play, scenario

UPSTREAM = "scheduling.k8s.io/v1beta1 PodGroup"
NAMES = ("nginx-1", "nginx-2", "nginx-3")
HERE = (
    "group default/nginx: 2 of 3 members are here (current pods number: 2, minMember of group: 3)"
)


async def _two_of_three(world: World, kind: str) -> None:
    for name in ("n1", "n2", "n3"):
        world.add_node(name, cpu=1, memory="4Gi")
    put_group(world, "nginx", 3, kind)
    add_members(world, NAMES[:2], "nginx", kind, metadata=owned_by("nginx"))
    await world.until(59)


@pytest.mark.parametrize("kind", KINDS)
@scenario(plugins=FIT)
async def test_part_a_members_wait_without_attempts_until_the_quorum_exists(
    world: World, kind: str
) -> None:
    await _two_of_three(world, kind)
    assert list(bound(world, *NAMES[:2])) == [None, None]
    assert world.attempts("nginx-1") == world.attempts("nginx-2") == []
    assert explanation(world, "nginx") == HERE
    for name in NAMES[:2]:
        assert message(world, name) == ""
        assert world.events(name, "FailedScheduling") == []
    if kind in LABELS:
        assert status(world, "nginx", kind)["phase"] == "Pending"
    else:
        assert condition(world, "nginx", "PodGroupInitiallyScheduled", kind) == {}


@pytest.mark.parametrize("kind", KINDS)
@scenario(plugins=FIT)
async def test_part_a_all_members_are_placed_when_the_last_arrives_and_a_later_one_at_once(
    world: World, kind: str
) -> None:
    await _two_of_three(world, kind)
    await world.until(60)
    add_member(world, "nginx-3", "nginx", kind, metadata=owned_by("nginx"))
    await world.until(61)
    assert list(bound(world, *NAMES)) == [60, 60, 60]
    places = [world.bound(name) for name in NAMES]
    assert {place[1] for place in places if place} == {"n1", "n2", "n3"}
    (attempt,) = group_attempts(world, "nginx")
    assert (attempt.at_seconds, attempt.result, attempt.fitting) == (60, "placed", 3)
    # LeastAllocated: 92 on an empty node, 85 on a node with a sibling.
    (first, second, _) = (world.attempts(name)[0] for name in NAMES)
    assert [score.total for score in first.scores] == [92, 92, 92]
    assert [score.total for score in second.scores] == [92, 92, 85]
    if kind in LABELS:
        result = status(world, "nginx", kind)
        assert (result["phase"], result["scheduled"], result["running"]) == ("Running", 3, 3)
        assert result["occupiedBy"] == "default/nginx"
        assert result["scheduleStartTime"] == "2026-01-01T00:01:00Z"
    else:
        result = condition(world, "nginx", "PodGroupInitiallyScheduled", kind)
        assert (result["status"], result["reason"]) == ("True", "Scheduled")
    await world.until(70)
    add_member(world, "nginx-4", "nginx", kind)
    await world.until(71)
    assert list(bound(world, "nginx-4")) == [70]
    # Upstream tries later members as a group, too.
    assert len(group_attempts(world, "nginx")) == (1 if kind in LABELS else 2)
    if kind in LABELS:
        assert scheduled_status(world, "nginx", kind) == (4, 4)


def test_part_a_every_kind_gives_the_same_bindings() -> None:
    places: list[list[Any]] = []
    for kind in (*KINDS, CONFIGURED):

        async def scene(world: World, kind: str = kind) -> None:
            await _two_of_three(world, kind)
            await world.until(60)
            add_member(world, "nginx-3", "nginx", kind)
            await world.until(61)
            places.append([world.bound(name) for name in NAMES])
            if kind in LABELS:
                assert scheduled_status(world, "nginx", kind) == (3, 3)

        play(scene, plugins=FIT, config={"podGroups": {"kinds": [CONFIGURED_ROW]}})
    assert all(place == places[0] for place in places)
    assert None not in places[0]


@scenario(plugins=FIT, config={"podGroups": {"kinds": [CONFIGURED_ROW]}})
async def test_an_invalid_object_of_a_configured_kind_is_noted_and_is_no_group(
    world: World,
) -> None:
    world.add_node("n1")
    put_group(world, "g", 1, CONFIGURED, minMember="three")
    add_member(world, "a", "g", CONFIGURED)
    await world.until(1)
    assert list(bound(world, "a")) == [None]
    assert "PodGroup not found in batch.example.com" in explanation(world, "g")
    notes = [each.text for each in world.journal.records if isinstance(each, NoteRecord)]
    assert any("minMember" in text for text in notes)
    put_group(world, "g", 1, CONFIGURED)
    await world.until(2)
    assert list(bound(world, "a")) == [1]


@scenario(plugins=FIT)
async def test_without_the_row_the_label_has_no_meaning(world: World) -> None:
    world.add_node("n1")
    add_member(world, "a", "g", CONFIGURED)
    await world.until(1)
    assert list(bound(world, "a")) == [0]


@pytest.mark.parametrize("kind", [X_K8S, MING, UPSTREAM])
@scenario(plugins=FIT)
async def test_part_b_a_lowered_minimum_starts_the_group_at_once(world: World, kind: str) -> None:
    world.add_node("n1")
    put_group(world, "g", 10, kind)
    add_members(world, "ab", "g", kind)
    await world.until(29)
    assert "2 of 10 members are here" in explanation(world, "g")
    await world.until(30)
    put_group(world, "g", 2, kind)
    await world.until(31)
    assert list(bound(world, "a", "b")) == [30, 30]


@pytest.mark.parametrize("kind", [X_K8S, MING, UPSTREAM])
@scenario(plugins=FIT)
async def test_part_c_members_wait_for_the_group_object(world: World, kind: str) -> None:
    world.add_node("n1")
    add_members(world, "ab", "nginx", kind)
    await world.until(19)
    assert "group default/nginx: PodGroup not found" in explanation(world, "nginx")
    await world.until(20)
    put_group(world, "nginx", 2, kind)
    await world.until(21)
    assert list(bound(world, "a", "b")) == [20, 20]


@pytest.mark.parametrize("kind", [X_K8S, MING])
@scenario(plugins=["SchedulingGates", *FIT])
async def test_part_d_five_pods_that_do_not_count_as_members(world: World, kind: str) -> None:
    world.add_node("n1")
    put_group(world, "nginx", 3, kind)
    add_members(world, "ab", "nginx", kind)
    add_member(world, "c", "nginx", kind, namespace="other")
    add_member(world, "d", "nginx", kind, node="n1", status={"phase": "Succeeded"})
    add_member(world, "e", "nginx", kind, {"finalizers": ["example.com/kept"]})
    world.delete_pod("e")
    add_member(world, "f", "nginx", kind, gates=["later"])
    add_member(world, "g", "nginx", kind, scheduler_name="default-scheduler")
    await world.until(50)
    assert world.pod("e").content["metadata"]["deletionTimestamp"]
    assert list(bound(world, "a", "b", "e", "f")) == [None] * 4
    assert "2 of 3" in explanation(world, "nginx")
    await world.until(60)
    world.change_pod("f", lambda content: content["spec"].pop("schedulingGates"))
    await world.until(61)
    assert list(bound(world, "a", "b", "f", "g", "e")) == [60, 60, 60, None, None]


class RefusesOnce:
    """A cluster that answers the third binding with 422, and counts bindings and evictions."""

    def __init__(self, inner: Cluster) -> None:
        self._inner = inner
        self.bindings: list[str] = []
        self.evictions: list[str] = []
        self.on_refused: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        self.bindings.append(pod.name)
        if len(self.bindings) == 3:
            self.on_refused()
            raise ApiError(422, "Invalid", "out of order")
        await self._inner.bind(pod, node_name)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self.evictions.append(name)
        await self._inner.delete_pod(namespace, name, uid)


@pytest.mark.parametrize("kind", KINDS)
def test_part_e_a_scheduler_killed_between_bindings_is_replaced(kind: str) -> None:
    refusing: list[RefusesOnce] = []

    def reach(cluster: Cluster) -> Cluster:
        refusing.append(RefusesOnce(cluster))
        return cast(Cluster, refusing[0])

    async def scene(world: World) -> None:
        await _two_of_three(world, kind)
        await world.until(60)
        refusing[0].on_refused = world.kill_at_once
        add_member(world, "nginx-3", "nginx", kind, metadata=owned_by("nginx"))
        await world.until(60)
        (missing,) = [name for name in NAMES if world.bound(name) is None]
        await world.until(65)
        assert world.bound(missing) is None
        world.start()
        await world.until(80)
        result = world.bound(missing)
        assert result is not None
        assert 65 <= result[0] <= 76
        assert sorted(set(refusing[0].bindings)) == sorted(NAMES)
        assert len(refusing[0].bindings) == 4
        assert refusing[0].evictions == []
        if kind in LABELS:
            assert status(world, "nginx", kind)["scheduled"] == 3
            assert status(world, "nginx", kind)["phase"] == "Running"
            assert status(world, "nginx", kind)["scheduleStartTime"] == "2026-01-01T00:01:00Z"
        else:
            result = condition(world, "nginx", "PodGroupInitiallyScheduled", kind)
            assert result["status"] == "True"

    play(scene, plugins=FIT, reach=reach)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_whose_binding_fails_is_retried_at_once_and_counted(kind: str) -> None:
    def reach(cluster: Cluster) -> Cluster:
        return cast(Cluster, RefusesOnce(cluster))

    async def scene(world: World) -> None:
        await _two_of_three(world, kind)
        await world.until(60)
        add_member(world, "nginx-3", "nginx", kind)
        await world.until(60)
        assert list(bound(world, *NAMES)) == [60, 60, 60]
        assert world.metric("bayplan_group_members_retried_total") == 1
        await world.until(61)
        if kind in LABELS:
            assert scheduled_status(world, "nginx", kind) == (3, 3)

    play(scene, plugins=FIT, reach=reach)
