"""Coscheduling: the order of the queue, and members placed one by one.

The events that queue a rejected member again.

Recent: each group is remembered for a fixed time.

The part of a group's minResources that all nodes together lack.
"""

from typing import Any, Unpack

import pytest
from msgspec.structs import replace

from bayplan.api.objects import decode
from bayplan.api.pod_groups import GroupKey
from bayplan.api.quantity import QuantityError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_ADD,
    UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import Code, code_of
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord, Record
from bayplan.plugins.coscheduling import (
    Coscheduling,
    Recent,
    member_events,
    missing,
    shortage_message,
)
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import NodeOptions, PodOptions, SampleCluster, check_plugin, node, pod
from tests.plugins.coscheduling_kit import (
    KIND,
    coscheduling,
    group_manifest,
    labels,
    member,
    nodes,
    put_group,
    put_members,
)
from tests.scenarios.world import World, play, scenario
from tests.seeded import depth

# ---- plugin ---------------------------------------------------------------------------------


FIT = "NodeResourcesFit"


# ---- the order of the queue -----------------------------------------------------------------

T0, T1, T2 = (f"2026-01-01T00:00:0{second}Z" for second in range(3))


def queued(waiting: PodInfo, created: str = T1, *, sequence: int = 0) -> QueuedPodInfo:
    pod = waiting.pod
    metadata = replace(pod.metadata, creation_timestamp=created)
    return QueuedPodInfo(pod_info(replace(pod, metadata=metadata)), 0.0, sequence)


def order(cluster: SampleCluster, *entries: QueuedPodInfo) -> list[str]:
    key = coscheduling(cluster, placement="group").key
    return [each.pod.name for each in sorted(entries, key=key)]


def test_a_member_is_as_old_as_its_group() -> None:
    cluster = nodes()
    put_group(cluster, created=T1)
    entries = queued(member("late"), T2), queued(pod("older"), T0), queued(pod("newer"), T2)
    assert order(cluster, *entries) == ["older", "late", "newer"]


def test_members_of_a_group_are_tried_one_after_another() -> None:
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


# ---- PreFilter ------------------------------------------------------------------------------


def refusal(plugin: Coscheduling, cluster: SampleCluster, waiting: PodInfo) -> str:
    """The message of PreFilter; "" if the pod passes."""
    result = plugin.pre_filter(CycleState(), waiting, cluster.lend().nodes)
    if result is None:
        return ""
    assert code_of(result) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE  # type: ignore[arg-type]
    return str(result)


def gang_of(count: int, min_member: int, **spec: Any) -> SampleCluster:
    cluster = nodes(n1={"cpu": 4}, n2={"cpu": 4})
    put_group(cluster, minMember=min_member, **spec)
    put_members(cluster, *(f"m{number}" for number in range(count)))
    return cluster


def test_a_pod_without_a_group_or_with_an_unknown_group_passes() -> None:
    cluster = nodes(n1={})
    plugin = coscheduling(cluster)
    assert refusal(plugin, cluster, pod("alone")) == ""
    assert refusal(plugin, cluster, member("m0")) == ""


def test_a_group_with_too_few_members_is_rejected() -> None:
    cluster = gang_of(2, 3)
    expected = (
        "pre-filter pod m0 cannot find enough sibling pods, "
        "current pods number: 2, minMember of group: 3"
    )
    assert refusal(coscheduling(cluster), cluster, member("m0")) == expected
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


def test_a_shortage_does_not_deny_the_group_if_denials_are_off() -> None:
    cluster = gang_of(2, 2, minResources={"cpu": 9})
    plugin = coscheduling(cluster)
    for name in ("m0", "m1"):
        assert refusal(plugin, cluster, member(name)) == "resource gap: cpu 1000m"


def test_a_group_that_passed_is_not_measured_again_for_a_while() -> None:
    cluster = gang_of(2, 2, minResources={"cpu": 8})
    plugin = coscheduling(cluster, permitWaitingTimeSeconds=10)
    assert refusal(plugin, cluster, member("m0")) == ""
    cluster.add(pod("other", cpu=4, node="n1"))
    assert refusal(plugin, cluster, member("m1")) == ""
    cluster.clock.advance_to(10.0)
    assert refusal(plugin, cluster, member("m1")) == "resource gap: cpu 4000m"


def test_invalid_min_resources_are_reported() -> None:
    cluster = gang_of(1, 1, minResources={"cpu": "many"})
    message = refusal(coscheduling(cluster), cluster, member("m0"))
    assert message.startswith("spec.minResources of PodGroup default/g: ")


# ---- group mode ---------------------------------------------------------------


def test_in_group_mode_the_engine_places_members_together() -> None:
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
def test_it_satisfies_the_plugin_contract(placement: str) -> None:
    members: list[PodOptions] = [{"labels": labels()}, {"labels": labels("absent")}]

    def prepare(cluster: SampleCluster) -> None:
        put_group(cluster, minMember=3, minResources={"cpu": 1})
        put_members(cluster, "x", "y", "z")

    plugin_args = {"placement": placement}
    check_plugin(Coscheduling, plugin_args, pods=members, prepare=prepare, clusters=depth(3, 10))


# ---- members placed one by one, in a cluster --------------------------------------------------


def start(world: World, *members: str, node_count: int = 3, **spec: Any) -> None:
    """Create nodes with room for one member each, a group, and its members."""
    for number in range(1, node_count + 1):
        world.add_node(f"n{number}", cpu=4)
    world.cluster.create(group_manifest(**spec))
    add(world, *members)


def add(world: World, *members: str) -> None:
    for name in members:
        world.add_pod(name, cpu=3, labels=labels())


def pod_by_pod(**args: Any) -> dict[str, Any]:
    plugin_args = {"Coscheduling": {"placement": "pod", **args}}
    return {"queue_sort": "Coscheduling", "plugins": [FIT], "args": plugin_args}


#: The args of the older charts.
NO_POST_FILTER = {"postFilter": {"disabled": [{"name": "Coscheduling"}]}}


def without_post_filter(**args: Any) -> dict[str, Any]:
    names = ("Coscheduling", FIT, "DefaultBinder")
    enabled = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    return {**pod_by_pod(**args), "profile": {"plugins": {"multiPoint": enabled, **NO_POST_FILTER}}}


def at_permit(world: World) -> list[str]:
    return [waiting.pod.name for waiting in world.scheduler.waiting_pods()]


@scenario(**pod_by_pod(podGroupBackoffSeconds=20))
async def test_members_that_arrive_one_after_another_are_bound_when_the_last_one_arrives(
    world: World,
) -> None:
    start(world, minMember=3)
    for name in "abc":
        add(world, name)
        await world.until(0)
    bound = [world.bound(name) for name in "abc"]
    assert [binding and binding[0] for binding in bound] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("spec", "args", "seconds", "text"),
    [
        ({"scheduleTimeoutSeconds": 10}, {"permitWaitingTimeSeconds": 30}, 10, "10s"),
        ({}, {"permitWaitingTimeSeconds": 30}, 30, "30s"),
        ({}, {}, 60, "1m0s"),
        ({"scheduleTimeoutSeconds": 0}, {}, 60, "1m0s"),
        ({"scheduleTimeoutSeconds": -5}, {}, 60, "1m0s"),
    ],
    ids=["the group's time", "the plugin's time", "the default time", "no time", "nonsense"],
)
def test_members_wait_for_their_configured_time(
    spec: dict[str, int], args: dict[str, int], seconds: int, text: str
) -> None:
    async def run(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3, **spec)
        await world.until(seconds - 0.001)
        assert at_permit(world) == ["a", "b"]
        assert world.message("a") == ""
        await world.until(seconds)
        expected = f"rejected due to timeout after waiting {text} at plugin Coscheduling"
        assert expected in world.message("a")
        assert expected in world.message("b")

    world = play(run, **without_post_filter(**args))
    assert [world.bound(name) for name in "abc"] == [None, None, None]


@scenario(**pod_by_pod(podGroupBackoffSeconds=20))
async def test_a_member_that_does_not_fit_rejects_the_waiting_members(world: World) -> None:
    start(world, "a", "b", "c", node_count=2, minMember=3)
    await world.until(0)
    assert at_permit(world) == []
    assert "optimistic rejection in PostFilter" in world.message("a")
    assert world.message("c").endswith("Pod c is unschedulable even after PostFilter")
    assert world.requested("n1") == world.requested("n2") == 0


@scenario(**pod_by_pod(podGroupRejectPercentage=34))
async def test_if_few_members_are_missing_the_waiting_members_continue_to_wait(
    world: World,
) -> None:
    start(world, "a", "b", "c", node_count=2, minMember=3)
    await world.until(0)
    assert at_permit(world) == ["a", "b"]
    world.add_node("n3", cpu=4)
    await world.until(5)
    bound = [world.bound(name) for name in "abc"]
    assert all(binding is not None and binding[0] <= 5 for binding in bound)


@scenario(**without_post_filter(podGroupBackoffSeconds=20))
async def test_a_waiting_member_that_is_deleted_rejects_all_waiting_members(world: World) -> None:
    start(world, "a", "b", "c", node_count=2, minMember=3)
    await world.until(5)
    assert at_permit(world) == ["a", "b"]
    world.delete_pod("b")
    await world.until(5)
    assert at_permit(world) == []
    assert "rejection in Unreserve" in world.message("a")


@scenario(**without_post_filter(deniedPGExpirationTimeSeconds=3))
async def test_a_group_that_failed_is_denied_for_a_while(world: World) -> None:
    start(world, "a", "b", "c", node_count=2, minMember=3, scheduleTimeoutSeconds=10)
    await world.until(10)
    add(world, "d")
    await world.until(12)
    denied = "pod with pgName: default/g last failed in 3s, deny."
    assert denied in world.message("d")
    assert at_permit(world) == []


@pytest.mark.parametrize("denied_seconds", [3, 20])
def test_members_are_tried_again_when_the_denial_ends(denied_seconds: int) -> None:
    """The denial rejects members after a new node meanwhile, and no other event marks its end."""

    async def run(world: World) -> None:
        start(world, "a", "b", "c", node_count=2, minMember=3)
        await world.until(2)
        world.add_node("n3", cpu=4)
        await world.until(denied_seconds - 0.001)
        assert [world.bound(name) for name in "abc"] == [None] * 3
        assert f"last failed in {denied_seconds}s, deny." in world.message("a")
        await world.until(denied_seconds)

    world = play(run, **pod_by_pod(deniedPGExpirationTimeSeconds=denied_seconds))
    bound = [world.bound(name) for name in "abc"]
    assert [binding and binding[0] for binding in bound] == [denied_seconds] * 3


@scenario(**pod_by_pod(podGroupBackoffSeconds=20))
async def test_members_that_arrive_during_the_denial_are_tried_when_it_ends(world: World) -> None:
    start(world, "a", "b", node_count=1, minMember=2)
    await world.until(4)
    world.delete_pod("b")
    world.add_pod("small", cpu=1, labels=labels())
    await world.until(19.999)
    assert world.bound("small") is None
    await world.until(20)
    results = [world.bound(name) for name in ("a", "small")]
    assert results == [(20.0, "n1"), (20.0, "n1")]


@scenario(**without_post_filter(deniedPGExpirationTimeSeconds=3))
async def test_a_shortage_of_resources_is_computed_again_when_the_denial_ends(world: World) -> None:
    start(world, "a", "b", node_count=2, minMember=2, minResources={"cpu": 9})
    await world.until(1)
    world.add_node("n3", cpu=4)
    await world.until(2.999)
    assert [world.bound(name) for name in "ab"] == [None, None]
    await world.until(3)
    bound = [world.bound(name) for name in "ab"]
    assert [binding and binding[0] for binding in bound] == [3.0, 3.0]


@scenario(**pod_by_pod(podGroupBackoffSeconds=20))
async def test_a_group_that_never_fits_is_tried_once_per_denial(world: World) -> None:
    start(world, "a", "b", "c", node_count=2, minMember=3)
    await world.until(205)
    moments = [r.at_seconds for r in world.journal.records if is_refusal(r)]
    assert moments == [20.0 * number for number in range(11)]


def is_refusal(record: Record) -> bool:
    """Whether the message rejects a member that does not fit, or its group."""
    return isinstance(record, AttemptRecord) and "Insufficient cpu" in record.message


@scenario(**pod_by_pod())
async def test_members_without_a_group_object_wait_for_it(world: World) -> None:
    world.add_node("n1", cpu=8)
    add(world, "a", "b")
    await world.until(5)
    assert world.message("a") == "0/1 nodes are available: 1 PodGroup not found."
    world.cluster.create(group_manifest(minMember=2))
    await world.until(5)
    assert world.bound("a") == world.bound("b") == (5.0, "n1")


@scenario(**pod_by_pod())
async def test_the_arrival_of_a_missing_member_queues_the_other_members(world: World) -> None:
    start(world, "a", "b", minMember=3)
    await world.until(60)
    assert "current pods number: 2, minMember of group: 3" in world.message("a")
    add(world, "c")
    await world.until(60)
    bound = [world.bound(name) for name in "abc"]
    assert [binding and binding[0] for binding in bound] == [60.0, 60.0, 60.0]


@scenario(**pod_by_pod())
async def test_a_lower_minimum_queues_the_members(world: World) -> None:
    start(world, "a", "b", minMember=10)
    await world.until(30)
    world.cluster.update(group_manifest(minMember=2))
    await world.until(30)
    assert [binding and binding[0] for binding in map(world.bound, "ab")] == [30.0, 30.0]


@scenario(**pod_by_pod())
async def test_a_late_member_of_a_running_group_is_bound_alone(world: World) -> None:
    start(world, "a", "b", node_count=3, minMember=2)
    await world.until(10)
    add(world, "c")
    await world.until(10)
    result = world.bound("c")
    assert result is not None
    assert result[0] == 10.0


@scenario(**pod_by_pod(permitWaitingTimeSeconds=10))
async def test_only_members_with_a_node_count_at_permit(world: World) -> None:
    """With room for two of three members no member starts."""
    start(world, "a", "b", "c", "d", "e", node_count=2, minMember=3)
    await world.until(600)
    assert [world.bound(name) for name in "abcde"] == [None] * 5


# ---- hints ----------------------------------------------------------------------------------


NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
X_K8S_UPDATE = ClusterEvent("scheduling.x-k8s.io/PodGroup", UPDATE)
MING_ADD = ClusterEvent("scheduling.ming.io/PodGroup", ActionType.ADD)


def wakes(cluster: SampleCluster, event: ClusterEvent, old: Any, new: Any) -> bool:
    """Whether an event queues member a of group g."""
    hints = [r.hint for r in member_events(cluster.pod_groups) if r.event.match(event)]
    waiting = member("a")
    return any(h is None or h(waiting, old, new) is QueueingHint.QUEUE for h in hints)


def with_group(min_member: int, *members: str) -> SampleCluster:
    cluster = nodes()
    put_group(cluster, minMember=min_member)
    put_members(cluster, *members)
    return cluster


@pytest.mark.parametrize("event", [EVENT_UNSCHEDULED_POD_ADD, EVENT_ASSIGNED_POD_ADD])
def test_a_new_member_of_the_group_queues_the_pod(event: ClusterEvent) -> None:
    cluster = with_group(2, "a")
    assert wakes(cluster, event, None, member("b"))
    assert not wakes(cluster, event, None, member("b", group="other"))
    assert not wakes(cluster, event, None, pod("alone"))
    elsewhere = pod("b", namespace="other", labels=labels())
    assert not wakes(cluster, event, None, elsewhere)


def test_freed_room_queues_the_pod_if_the_group_is_complete() -> None:
    left = pod("other", node="n1")
    assert wakes(with_group(2, "a", "b"), EVENT_ASSIGNED_POD_DELETE, left, None)
    assert not wakes(with_group(3, "a", "b"), EVENT_ASSIGNED_POD_DELETE, left, None)


def test_a_released_reservation_is_not_freed_room() -> None:
    cluster = with_group(2, "a", "b")
    assert not wakes(cluster, EVENT_ASSIGNED_POD_DELETE, member("b", node="n1"), None)
    put_members(cluster, "x", group="other")
    other = member("x", group="other", node="n1")
    assert not wakes(cluster, EVENT_ASSIGNED_POD_DELETE, other, None)
    assert wakes(cluster, EVENT_ASSIGNED_POD_DELETE, member("gone", node="n1"), None)


def test_a_node_queues_the_pod_if_the_group_is_complete() -> None:
    assert wakes(with_group(1, "a"), NODE_ADD, None, node("n1"))
    assert not wakes(with_group(2, "a"), NODE_ADD, None, node("n1"))
    assert not wakes(with_group(1, "a"), NODE_LABEL, node("n1"), node("n1"))


def test_a_change_of_its_own_group_object_queues_the_pod() -> None:
    cluster = with_group(3, "a")
    mine, other = (decode(KIND, group_manifest(name)) for name in ("g", "other"))
    assert wakes(cluster, X_K8S_UPDATE, mine, mine)
    assert not wakes(cluster, X_K8S_UPDATE, other, other)
    assert not wakes(cluster, MING_ADD, None, mine)


# ---- recent ---------------------------------------------------------------------------------


A, B = GroupKey("g", "default", "a"), GroupKey("g", "default", "b")


def test_noting_a_group_again_does_not_extend_its_time() -> None:
    recent = Recent(3.0)
    recent.note(A, 0.0)
    recent.note(A, 2.0)
    assert not recent.has(A, 3.0)


def test_forgotten_groups_use_no_memory() -> None:
    recent = Recent(3.0)
    for second in range(100):
        recent.note(GroupKey("g", "default", str(second)), float(second))
    assert len(recent) == 3


# ---- shortage -------------------------------------------------------------------------------


FOUR: NodeOptions = {"cpu": 4, "memory": "8Gi"}


def lack(
    min_resources: dict[str, Any] | None,
    *placed: PodInfo,
    min_member: int = 1,
    **options: Unpack[NodeOptions],
) -> dict[str, int]:
    """The shortage with n1 and n2, without the requests of ``placed`` members."""
    node_options: NodeOptions = {**FOUR, **options}
    cluster = nodes(n1=node_options, n2=node_options).add(*placed)
    put_group(cluster, minMember=min_member, minResources=min_resources)
    state = cluster.pod_groups.get(GroupKey(KIND.partition("/")[0], "default", "g"))
    assert state is not None and state.group is not None
    members = [each for each in placed if each.group_key is not None]
    return missing(state.group, members, cluster.lend().nodes)


def test_resources_of_members_count_as_free() -> None:
    assert lack({"cpu": 8}, member("a", cpu=3, node="n1"), member("b", cpu=2, node="n2")) == {}


def test_a_resource_that_no_node_has_is_missing() -> None:
    assert lack({"nvidia.com/gpu": 2}) == {"nvidia.com/gpu": 2}


def test_an_invalid_quantity_is_reported() -> None:
    with pytest.raises(QuantityError):
        lack({"cpu": "many"})


def test_the_missing_amounts_are_listed_in_order() -> None:
    assert (
        shortage_message({"nvidia.com/gpu": 2, "cpu": 500})
        == "resource gap: cpu 500m, nvidia.com/gpu 2"
    )
