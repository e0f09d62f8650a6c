"""Coscheduling: the order of the queue, and members placed one by one."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.framework.interface import CycleState, QueuedPodInfo
from bayplan.framework.status import Code, NodeToStatus, code_of
from bayplan.journal import AttemptRecord, Record
from bayplan.plugins.coscheduling import Coscheduling
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import PodOptions, SampleCluster, check_plugin, pod
from tests.plugins.coscheduling_kit import (
    coscheduling,
    group_manifest,
    labels,
    member,
    nodes,
    put_group,
    put_members,
)
from tests.scenarios.world import World, play

FIT = "NodeResourcesFit"


# ---- the order of the queue -----------------------------------------------------------------

T0, T1, T2 = (f"2026-01-01T00:00:0{second}Z" for second in range(3))


def queued(waiting: PodInfo, created: str = T1, *, sequence: int = 0) -> QueuedPodInfo:
    found = waiting.pod
    metadata = replace(found.metadata, creation_timestamp=created)
    return QueuedPodInfo(pod_info(replace(found, metadata=metadata)), 0.0, sequence)


def order(cluster: SampleCluster, *entries: QueuedPodInfo) -> list[str]:
    key = coscheduling(cluster, placement="group").key
    return [each.pod.name for each in sorted(entries, key=key)]


def test_the_higher_priority_goes_first() -> None:
    cluster = nodes()
    put_group(cluster, created=T0)
    entries = queued(member("a")), queued(pod("urgent", priority=1), T2)
    assert order(cluster, *entries) == ["urgent", "a"]


def test_a_member_is_as_old_as_its_group() -> None:
    cluster = nodes()
    put_group(cluster, created=T1)
    entries = queued(member("late"), T2), queued(pod("older"), T0), queued(pod("newer"), T2)
    assert order(cluster, *entries) == ["older", "late", "newer"]


def test_members_of_one_group_follow_one_another() -> None:
    cluster = nodes()
    for name in ("g", "h"):
        put_group(cluster, name, created=T0)
    entries = [
        queued(member("h1", "h"), sequence=1),
        queued(member("g1", "g"), sequence=2),
        queued(member("h2", "h"), sequence=3),
        queued(member("g2", "g"), sequence=4),
    ]
    assert order(cluster, *entries) == ["g1", "g2", "h1", "h2"]


def test_pods_of_one_second_go_as_they_came() -> None:
    entries = queued(pod("b"), sequence=1), queued(pod("a"), sequence=2)
    assert order(nodes(), *entries) == ["b", "a"]


# ---- PreFilter ------------------------------------------------------------------------------


def refusal(plugin: Coscheduling, cluster: SampleCluster, waiting: PodInfo) -> str:
    """The message; "" where the pod may go on."""
    found = plugin.pre_filter(CycleState(), waiting, cluster.lend().nodes)
    if found is None:
        return ""
    assert code_of(found) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE  # type: ignore[arg-type]
    return str(found)


def gang_of(count: int, min_member: int, **spec: Any) -> SampleCluster:
    cluster = nodes(n1={"cpu": 4}, n2={"cpu": 4})
    put_group(cluster, minMember=min_member, **spec)
    put_members(cluster, *(f"m{number}" for number in range(count)))
    return cluster


def test_a_pod_without_a_group_or_with_one_that_does_not_exist_goes_on() -> None:
    cluster = nodes(n1={})
    plugin = coscheduling(cluster)
    assert refusal(plugin, cluster, pod("alone")) == ""
    assert refusal(plugin, cluster, member("m0")) == ""


def test_too_few_siblings() -> None:
    cluster = gang_of(2, 3)
    wanted = (
        "pre-filter pod m0 cannot find enough sibling pods, "
        "current pods number: 2, minMember of group: 3"
    )
    assert refusal(coscheduling(cluster), cluster, member("m0")) == wanted
    put_members(cluster, "m2")
    assert refusal(coscheduling(cluster), cluster, member("m0")) == ""


def test_a_shortage_denies_the_group_for_a_while() -> None:
    cluster = gang_of(2, 2, minResources={"cpu": 9})
    plugin = coscheduling(cluster, deniedPGExpirationTimeSeconds=3)
    assert refusal(plugin, cluster, member("m0")) == "resource gap: cpu 1000m"
    denied = "pod with pgName: default/g last failed in 3s, deny."
    assert refusal(plugin, cluster, member("m1")) == denied
    cluster.clock.advance_to(2.9)
    assert refusal(plugin, cluster, member("m1")) == denied
    cluster.clock.advance_to(3.0)
    assert refusal(plugin, cluster, member("m1")) == "resource gap: cpu 1000m"


def test_a_shortage_denies_nothing_where_that_is_off() -> None:
    cluster = gang_of(2, 2, minResources={"cpu": 9})
    plugin = coscheduling(cluster)
    for name in ("m0", "m1"):
        assert refusal(plugin, cluster, member(name)) == "resource gap: cpu 1000m"


def test_a_group_that_was_let_through_is_not_measured_again_for_a_while() -> None:
    cluster = gang_of(2, 2, minResources={"cpu": 8})
    plugin = coscheduling(cluster, permitWaitingTimeSeconds=10)
    assert refusal(plugin, cluster, member("m0")) == ""
    cluster.add(pod("other", cpu=4, node="n1"))
    assert refusal(plugin, cluster, member("m1")) == ""
    cluster.clock.advance_to(10.0)
    assert refusal(plugin, cluster, member("m1")) == "resource gap: cpu 4000m"


def test_min_resources_that_are_no_quantity_are_told() -> None:
    cluster = gang_of(1, 1, minResources={"cpu": "many"})
    found = refusal(coscheduling(cluster), cluster, member("m0"))
    assert found.startswith("spec.minResources of PodGroup default/g: ")


# ---- in group mode it keeps out of the way ----------------------------------------------------


def test_in_group_mode_members_are_the_engines_to_keep_together() -> None:
    cluster = gang_of(1, 3, minResources={"cpu": 100})
    plugin = coscheduling(cluster, placement="group")
    assert not plugin.places_pod_by_pod
    assert refusal(plugin, cluster, member("m0")) == ""
    assert plugin.permit(CycleState(), member("m0"), "n1") == (None, 0.0)
    assert plugin.sign_pod(member("m0")) == plugin.sign_pod(pod("alone")) == ()


def test_in_pod_mode_members_are_not_signed() -> None:
    plugin = coscheduling(nodes())
    assert plugin.places_pod_by_pod
    assert plugin.sign_pod(member("m0")) is None
    assert plugin.sign_pod(pod("alone")) == ()


@pytest.mark.parametrize("placement", ["group", "pod"])
def test_it_keeps_to_the_contract(placement: str) -> None:
    members: list[PodOptions] = [{"labels": labels()}, {"labels": labels("absent")}]

    def prepare(cluster: SampleCluster) -> None:
        put_group(cluster, minMember=3, minResources={"cpu": 1})
        put_members(cluster, "x", "y", "z")

    given = {"placement": placement}
    check_plugin(Coscheduling, given, pods=members, prepare=prepare, clusters=10)


# ---- PostFilter -----------------------------------------------------------------------------


def said_after_filter(cluster: SampleCluster, waiting: PodInfo) -> str:
    plugin = coscheduling(cluster)
    nomination, status = plugin.post_filter(CycleState(), waiting, NodeToStatus())
    assert nomination is None
    assert code_of(status) is Code.UNSCHEDULABLE
    return str(status)


def test_a_member_that_does_not_fit_takes_its_group_with_it() -> None:
    wanted = "PodGroup default/g gets rejected due to Pod m0 is unschedulable even after PostFilter"
    assert said_after_filter(gang_of(3, 3), member("m0")) == wanted


def test_others_that_do_not_fit_concern_no_group() -> None:
    cluster = gang_of(3, 3)
    assert said_after_filter(cluster, pod("alone")) == ""
    assert said_after_filter(cluster, member("x", group="absent")) == ""


# ---- members placed one by one, in a cluster --------------------------------------------------


def start(world: World, *members: str, node_count: int = 3, **spec: Any) -> None:
    """Nodes that hold one member each, a group, and its members."""
    for number in range(1, node_count + 1):
        world.add_node(f"n{number}", cpu=4)
    world.cluster.create(group_manifest(**spec))
    add(world, *members)


def add(world: World, *members: str) -> None:
    for name in members:
        world.add_pod(name, cpu=3, labels=labels())


def pod_by_pod(**args: Any) -> dict[str, Any]:
    given = {"Coscheduling": {"placement": "pod", **args}}
    return {"queue_sort": "Coscheduling", "plugins": [FIT], "args": given}


#: As the older charts had it.
NO_POST_FILTER = {"postFilter": {"disabled": [{"name": "Coscheduling"}]}}


def without_post_filter(**args: Any) -> dict[str, Any]:
    names = ("Coscheduling", FIT, "DefaultBinder")
    enabled = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    return {**pod_by_pod(**args), "profile": {"plugins": {"multiPoint": enabled, **NO_POST_FILTER}}}


def at_permit(world: World) -> list[str]:
    return [held.pod.name for held in world.scheduler.waiting_pods()]


def test_the_last_one_that_is_needed_lets_all_go() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", minMember=3)
        await world.until(0)

    world = play(story, **pod_by_pod())
    bound = [world.bound(name) for name in "abc"]
    assert [found and found[0] for found in bound] == [0.0, 0.0, 0.0]


def test_members_that_come_one_after_another_go_when_the_last_one_is_here() -> None:
    async def story(world: World) -> None:
        start(world, minMember=3)
        for name in "abc":
            add(world, name)
            await world.until(0)

    world = play(story, **pod_by_pod(podGroupBackoffSeconds=20))
    bound = [world.bound(name) for name in "abc"]
    assert [found and found[0] for found in bound] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("spec", "args", "seconds", "told"),
    [
        ({"scheduleTimeoutSeconds": 10}, {"permitWaitingTimeSeconds": 30}, 10, "10s"),
        ({}, {"permitWaitingTimeSeconds": 30}, 30, "30s"),
        ({}, {}, 60, "1m0s"),
        ({"scheduleTimeoutSeconds": 0}, {}, 60, "1m0s"),
        ({"scheduleTimeoutSeconds": -5}, {}, 60, "1m0s"),
    ],
    ids=["the group's time", "the plugin's time", "the default time", "no time", "nonsense"],
)
def test_members_wait_exactly_as_long_as_they_are_told_to(
    spec: dict[str, int], args: dict[str, int], seconds: int, told: str
) -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3, **spec)
        await world.until(seconds - 0.001)
        assert at_permit(world) == ["a", "b"]
        assert world.message("a") == ""
        await world.until(seconds)
        wanted = f"rejected due to timeout after waiting {told} at plugin Coscheduling"
        assert wanted in world.message("a")
        assert wanted in world.message("b")

    world = play(story, **without_post_filter(**args))
    assert [world.bound(name) for name in "abc"] == [None, None, None]


def test_one_that_does_not_fit_rejects_those_that_wait() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(0)
        assert at_permit(world) == []
        assert "optimistic rejection in PostFilter" in world.message("a")
        assert world.message("c").endswith("Pod c is unschedulable even after PostFilter")
        assert world.requested("n1") == world.requested("n2") == 0

    play(story, **pod_by_pod(podGroupBackoffSeconds=20))


def test_where_few_are_missing_the_others_go_on_waiting() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(0)
        assert at_permit(world) == ["a", "b"]
        world.add_node("n3", cpu=4)
        await world.until(5)

    world = play(story, **pod_by_pod(podGroupRejectPercentage=34))
    bound = [world.bound(name) for name in "abc"]
    assert all(found is not None and found[0] <= 5 for found in bound)


def test_a_member_that_goes_while_it_waits_takes_the_others_with_it() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(5)
        assert at_permit(world) == ["a", "b"]
        world.delete_pod("b")
        await world.until(5)
        assert at_permit(world) == []
        assert "rejection in Unreserve" in world.message("a")

    play(story, **without_post_filter(podGroupBackoffSeconds=20))


def test_a_group_that_failed_is_denied_for_a_while() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3, scheduleTimeoutSeconds=10)
        await world.until(10)
        add(world, "d")
        await world.until(12)
        denied = "pod with pgName: default/g last failed in 3s, deny."
        assert denied in world.message("d")
        assert at_permit(world) == []

    play(story, **without_post_filter(deniedPGExpirationTimeSeconds=3))


@pytest.mark.parametrize("denied_seconds", [3, 20])
def test_members_are_tried_again_at_the_very_moment_the_denial_ends(denied_seconds: int) -> None:
    """A node that comes meanwhile is refused by the denial, and nothing else tells of its end."""

    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(2)
        world.add_node("n3", cpu=4)
        await world.until(denied_seconds - 0.001)
        assert [world.bound(name) for name in "abc"] == [None] * 3
        assert f"last failed in {denied_seconds}s, deny." in world.message("a")
        await world.until(denied_seconds)

    world = play(story, **pod_by_pod(deniedPGExpirationTimeSeconds=denied_seconds))
    bound = [world.bound(name) for name in "abc"]
    assert [found and found[0] for found in bound] == [denied_seconds] * 3


def test_members_that_came_during_the_denial_are_tried_when_it_ends() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", node_count=1, minMember=2)
        await world.until(4)
        world.delete_pod("b")
        world.add_pod("small", cpu=1, labels=labels())
        await world.until(19.999)
        assert world.bound("small") is None
        await world.until(20)

    world = play(story, **pod_by_pod(podGroupBackoffSeconds=20))
    found = [world.bound(name) for name in ("a", "small")]
    assert found == [(20.0, "n1"), (20.0, "n1")]


def test_a_shortage_of_resources_is_looked_at_again_when_the_denial_ends() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", node_count=2, minMember=2, minResources={"cpu": 9})
        await world.until(1)
        world.add_node("n3", cpu=4)
        await world.until(2.999)
        assert [world.bound(name) for name in "ab"] == [None, None]
        await world.until(3)

    world = play(story, **without_post_filter(deniedPGExpirationTimeSeconds=3))
    bound = [world.bound(name) for name in "ab"]
    assert [found and found[0] for found in bound] == [3.0, 3.0]


def test_a_group_that_never_fits_looks_for_room_once_per_denial() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(205)

    world = play(story, **pod_by_pod(podGroupBackoffSeconds=20))
    moments = [r.at_seconds for r in world.journal.records if is_refusal(r)]
    assert moments == [20.0 * number for number in range(11)]


def is_refusal(record: Record) -> bool:
    """A member that finds no room, and with it its group."""
    return isinstance(record, AttemptRecord) and "Insufficient cpu" in record.message


def test_members_without_a_group_object_wait_for_it() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=8)
        add(world, "a", "b")
        await world.until(5)
        assert world.message("a") == "0/1 nodes are available: 1 PodGroup not found."
        world.cluster.create(group_manifest(minMember=2))
        await world.until(5)

    world = play(story, **pod_by_pod())
    assert world.bound("a") == world.bound("b") == (5.0, "n1")


def test_a_missing_member_that_comes_brings_the_others() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", minMember=3)
        await world.until(60)
        assert "current pods number: 2, minMember of group: 3" in world.message("a")
        add(world, "c")
        await world.until(60)

    world = play(story, **pod_by_pod())
    bound = [world.bound(name) for name in "abc"]
    assert [found and found[0] for found in bound] == [60.0, 60.0, 60.0]


def test_a_lower_minimum_wakes_the_members() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", minMember=10)
        await world.until(30)
        world.cluster.update(group_manifest(minMember=2))
        await world.until(30)

    world = play(story, **pod_by_pod())
    assert [found and found[0] for found in map(world.bound, "ab")] == [30.0, 30.0]


def test_a_late_member_of_a_running_group_goes_alone() -> None:
    async def story(world: World) -> None:
        start(world, "a", "b", node_count=3, minMember=2)
        await world.until(10)
        add(world, "c")
        await world.until(10)

    world = play(story, **pod_by_pod())
    found = world.bound("c")
    assert found is not None
    assert found[0] == 10.0


def test_only_members_that_hold_a_node_are_counted_at_permit() -> None:
    """However many there are: with room for two of three, no one starts."""

    async def story(world: World) -> None:
        start(world, "a", "b", "c", "d", "e", node_count=2, minMember=3)
        await world.until(600)

    world = play(story, **pod_by_pod(permitWaitingTimeSeconds=10))
    assert [world.bound(name) for name in "abcde"] == [None] * 5
