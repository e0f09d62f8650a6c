"""Writes of a failed attempt at a scheduling.k8s.io group, in kube-scheduler's words.

The expected texts are those of kube-scheduler 1.37 with the gate GenericWorkload.
"""

from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.framework.status import Code, Status
from bayplan.objects.keys import object_key
from tests.framework.answering import answering
from tests.scenarios.gangs import (
    FIT,
    add_member,
    bound,
    condition,
    explanation,
    group_attempts,
    message,
    put_group,
)
from tests.scenarios.world import World, play, scenario

KIND = "scheduling.k8s.io/v1beta1 PodGroup"
PREEMPTING = [*FIT, "DefaultPreemption"]
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def member(world: World, name: str, **options: Any) -> None:
    add_member(world, name, "g", KIND, **{"cpu": 1, **options})


def group(world: World, minimum: int, names: str, **options: Any) -> None:
    """A group and its members. ``options``: of both."""
    put_group(world, "g", minimum, KIND, **options)
    for name in names:
        member(world, name, **options)


def initially_scheduled(world: World) -> tuple[str, str, str]:
    """(status, reason, message)."""
    pod_condition = condition(world, "g", "PodGroupInitiallyScheduled", KIND)
    return (
        pod_condition.get("status", ""),
        pod_condition.get("reason", ""),
        pod_condition.get("message", ""),
    )


@scenario(plugins=PREEMPTING)
async def test_members_that_fit_get_the_reason_of_the_group_and_further_members_get_their_own(
    world: World,
) -> None:
    world.add_node("n1", cpu=2)
    group(world, 3, "abc")
    await world.until(0)
    short = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {NO_VICTIMS}"
    whole = f"pod group is unschedulable, {short}"
    own = "0/1 nodes are available: 1 Insufficient cpu."
    for name, text in (("a", whole), ("b", whole), ("c", own)):
        assert message(world, name) == text
        assert world.events(name, "FailedScheduling") == [text]
        assert world.reason(name) == "Unschedulable"
    assert initially_scheduled(world) == ("False", "Unschedulable", short)
    assert explanation(world, "g").startswith("group default/g: 2 of 3 members fit; the 3rd")


@scenario(plugins=PREEMPTING)
async def test_members_that_are_not_tried_get_the_count(world: World) -> None:
    world.add_node("n1", cpu="500m")
    group(world, 3, "abc")
    await world.until(0)
    count = "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert message(world, "a") == "0/1 nodes are available: 1 Insufficient cpu."
    assert message(world, "b") == message(world, "c") == count
    assert initially_scheduled(world)[2] == f"{count}, {NO_VICTIMS}"


@scenario(plugins=PREEMPTING)
async def test_victims_that_do_not_help_stay_and_the_message_counts_without_them(
    world: World,
) -> None:
    world.add_node("n1", cpu=2)
    world.add_pod("small", cpu=1, node="n1")
    group(world, 3, "abc", priority=10)
    await world.until(0)
    assert initially_scheduled(world)[2] == (
        "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining, "
        "pod group preemption: minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    )


@scenario(plugins=PREEMPTING)
async def test_members_stay_nominated_with_a_message_while_victims_terminate(world: World) -> None:
    world.add_node("n1", cpu=2)
    world.add_pod("small", cpu=2, node="n1", metadata={"finalizers": ["example.com/stays"]})
    group(world, 2, "ab", priority=10)
    await world.until(0)
    assert world.pod("a").content["status"]["nominatedNodeName"] == "n1"
    message = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    assert initially_scheduled(world)[2].endswith(message)
    world.change_pod("b", lambda content: content["metadata"].update(labels={"x": "y"}))
    world.add_node("n2", cpu="100m")
    await world.until(60)
    assert world.pod("a").content["status"]["nominatedNodeName"] == "n1"
    going = "pod group preemption: ongoing preemption on nominated nodes"
    assert initially_scheduled(world)[2].endswith(going)


@scenario(plugins=FIT)
async def test_a_status_update_of_a_group_does_not_activate_the_group(world: World) -> None:
    """The API reports every written condition."""
    world.add_node("n1", cpu=1)
    group(world, 2, "ab")
    await world.until(60)
    assert len(group_attempts(world, "g")) == 1
    put_group(world, "g", 1, KIND)
    await world.until(90)
    assert [each is None for each in bound(world, "a", "b")].count(True) == 1


@scenario(plugins=PREEMPTING)
async def test_nominated_members_of_one_group_do_not_block_each_other(world: World) -> None:
    """Both are nominated to a node with room for one of them."""
    world.add_node("n1", cpu=2)
    for name in ("x", "y"):
        world.add_pod(name, cpu=1, node="n1", metadata={"finalizers": ["example.com/stays"]})
    group(world, 2, "ab", priority=10)
    await world.until(0)
    world.change_pod("x", lambda content: content["metadata"].pop("finalizers"))
    await world.until(30)
    assert message(world, "a").startswith("minCount (2) cannot be satisfied: 1 scheduled")
    assert message(world, "b") == "0/1 nodes are available: 1 Insufficient cpu."


@scenario(plugins=PREEMPTING)
async def test_events_of_victims_name_the_group(world: World) -> None:
    world.add_node("n1", cpu=1)
    world.add_pod("x", cpu=1, node="n1")
    put_group(world, "g", 1, KIND, priority=10)
    member(world, "a", priority=10)
    await world.until(0)
    stored = world.cluster.get(object_key(KIND, "default", "g"))
    assert stored is not None
    uid = stored.content["metadata"]["uid"]
    assert world.events("x", "Preempted") == [f"Preempted by podgroup {uid} on node cluster"]
    (event,) = (
        each.content
        for each in world.cluster.objects(EVENT)
        if each.content["reason"] == "Preempted"
    )
    related = event["related"]
    assert (related["kind"], related["name"], related["uid"]) == ("PodGroup", "g", uid)


@scenario(
    plugins=["Broken", *FIT],
    classes=[
        answering(
            "Broken",
            filter_node=lambda _, pod, __: (
                Status(Code.ERROR, ("out of order",)) if pod.name == "b" else None
            ),
        )
    ],
)
async def test_an_error_of_one_member_is_reported_for_all_members(world: World) -> None:
    world.add_node("n1", cpu=4)
    group(world, 3, "abc")
    await world.until(0)
    whole = f"failed to schedule other pod from a pod group: {message(world, 'b')}"
    assert "out of order" in message(world, "b")
    assert not message(world, "b").startswith("failed to schedule other")
    assert message(world, "a") == message(world, "c") == whole
    assert [world.reason(name) for name in "abc"] == ["SchedulerError"] * 3
    assert initially_scheduled(world) == ("False", "SchedulerError", whole)


QUIET = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "quiet"},
    "value": 0,
    "preemptionPolicy": "Never",
}
SAME = "all pods in a single pod group should have the same"


@pytest.mark.parametrize(
    ("group", "members", "text"),
    [
        (
            {"priority": 100},
            ({}, {}),
            f"{SAME} priority as the pod group's priority, got 0 and 100",
        ),
        (
            {},
            ({"priority": 7}, {"priority": 7}),
            f"{SAME} priority as the pod group's priority, got 7 and 0",
        ),
        (
            {},
            ({}, {"spec": {"priorityClassName": "quiet"}}),
            f"{SAME} preemption policy, got Never and PreemptLowerPriority",
        ),
    ],
)
@scenario(plugins=FIT)
async def test_members_with_different_group_settings_are_refused(
    world: World, group: dict[str, Any], members: tuple[dict[str, Any], ...], text: str
) -> None:
    world.add_node("n1", cpu=4)
    world.cluster.create(QUIET)
    put_group(world, "g", 2, KIND, **group)
    for name, options in zip("ab", members, strict=True):
        member(world, name, **options)
    await world.until(30)
    assert list(bound(world, "a", "b")) == [None, None]
    for name in "ab":
        assert (world.reason(name), message(world, name)) == ("SchedulerError", text)
    assert initially_scheduled(world) == ("False", "SchedulerError", text)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            None,
            (
                f"{SAME} preemption policy as the pod group's preemption policy, "
                "got Never and PreemptLowerPriority"
            ),
        ),
        ("Never", ""),
    ],
)
@scenario(plugins=FIT, gates={"GenericWorkload": True, "PodGroupPreemptionPolicy": True})
async def test_with_the_gate_the_preemption_policy_of_the_group_counts(
    world: World, policy: str | None, text: str
) -> None:
    world.add_node("n1", cpu=4)
    world.cluster.create(QUIET)
    put_group(world, "g", 2, KIND, preemptionPolicy=policy)
    for name in "ab":
        member(world, name, spec={"priorityClassName": "quiet"})
    await world.until(30)
    assert all(place is not None for place in bound(world, "a", "b")) is not bool(text)
    assert initially_scheduled(world)[2] == text


@scenario(plugins=FIT)
async def test_a_late_member_with_another_priority_is_refused(world: World) -> None:
    world.add_node("n1", cpu=8)
    put_group(world, "g", 2, KIND)
    member(world, "a")
    member(world, "b")
    await world.until(1)
    member(world, "c", priority=5)
    await world.until(30)
    assert list(bound(world, "a", "b", "c")) == [0, 0, None]
    assert message(world, "c").endswith("got 5 and 0")
    assert initially_scheduled(world) == ("True", "Scheduled", "")


@scenario(plugins=PREEMPTING)
async def test_members_beyond_the_minimum_are_tried_as_a_group_and_get_their_own_reasons(
    world: World,
) -> None:
    world.add_node("n1", cpu=2)
    group(world, 2, "ab")
    await world.until(1)
    for name in "cd":
        member(world, name)
    await world.until(2)
    own = "0/1 nodes are available: 1 Insufficient cpu."
    assert message(world, "c") == message(world, "d") == own
    world.add_node("n2", cpu=1)
    await world.until(30)
    assert [each is None for each in bound(world, "c", "d")].count(True) == 1


# ---- from 1.38 on --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "prefix", "plugins", "end"),
    [
        (NEWEST, "pod group is unschedulable, ", FIT, ", "),
        (KubernetesVersion.V1_38, "", FIT, ""),
        (NEWEST, "pod group is unschedulable, ", PREEMPTING, f", {NO_VICTIMS}"),
        (KubernetesVersion.V1_38, "", PREEMPTING, f", {NO_VICTIMS}"),
    ],
)
def test_messages_have_no_prefix_from_1_38_on(
    version: KubernetesVersion, prefix: str, plugins: list[str], end: str
) -> None:
    async def scenario(world: World) -> None:
        world.add_node("n1", cpu=2)
        group(world, 3, "abc")
        await world.until(0)
        whole = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining{end}"
        assert message(world, "a") == f"{prefix}{whole}"
        assert initially_scheduled(world) == ("False", "Unschedulable", whole)

    play(scenario, plugins=plugins, kubernetes=version)


OLDER_MISMATCH = (
    "all pods in a single pod group should have the same priority as the pod group's priority, "
    "got 5 and 10"
)
MISMATCH = (
    "all pods in a pod group hierarchy should have the same priority as the root pod group's "
    'priority, got 5 ("b") and 10 ("podgroup/default/g")'
)


@pytest.mark.parametrize(
    ("version", "reason", "text"),
    [
        (NEWEST, "SchedulerError", OLDER_MISMATCH),
        (KubernetesVersion.V1_38, "PodGroupError", MISMATCH),
    ],
)
def test_members_that_differ_have_a_reason_of_their_own_from_1_38_on(
    version: KubernetesVersion, reason: str, text: str
) -> None:
    async def scenario(world: World) -> None:
        world.add_node("n1", cpu=2)
        put_group(world, "g", 2, KIND, priority=10)
        member(world, "a", priority=10)
        member(world, "b", priority=5)
        await world.until(0)
        assert initially_scheduled(world) == ("False", reason, text)
        assert message(world, "a") == message(world, "b") == text

    play(scenario, plugins=FIT, kubernetes=version)
