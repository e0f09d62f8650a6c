"""Permit and binding of a whole group."""

from typing import Any

import pytest

from bayplan.engine import placements
from bayplan.engine.podgroups import placements as group_placements
from bayplan.framework.status import Code, Status, unschedulable
from tests.framework.answering import answering
from tests.scenarios.gangs import FIT, add_members, bound, message, put_group
from tests.scenarios.world import World, scenario

LOST = Status(Code.ERROR, ("lost",))
#: Holds the member b for 10 seconds.
HOLDS_B = answering(
    "Slow",
    permit=lambda _, pod, __: (Status(Code.WAIT), 10.0) if pod.name == "b" else (None, 0.0),
)


def group_of_two(world: World, **options: Any) -> None:
    """A node with room for both members of a group."""
    world.add_node("n1", cpu=4)
    put_group(world, "g", 2)
    add_members(world, "ab", "g", **options)


@scenario(plugins=[*FIT, "Slow"], classes=[HOLDS_B])
async def test_a_permit_wait_of_a_plugin_holds_the_whole_group_until_the_deadline(
    world: World,
) -> None:
    group_of_two(world, cpu=2)
    await world.until(9)
    assert list(bound(world, "a", "b")) == [None, None]
    assert world.scheduler.cache.assumed_count == 2
    await world.until(10)
    assert world.scheduler.cache.assumed_count == 0
    assert "rejected due to timeout after waiting 10s at plugin Slow" in message(world, "a")


@scenario(
    plugins=[*FIT, "Refuses"],
    classes=[
        answering(
            "Refuses",
            permit=lambda _, pod, __: (unschedulable("no") if pod.name == "b" else None, 0.0),
        )
    ],
)
async def test_a_permit_rejection_of_one_member_releases_all_members(world: World) -> None:
    group_of_two(world)
    await world.until(5)
    assert list(bound(world, "a", "b")) == [None, None]
    assert world.scheduler.cache.assumed_count == 0
    assert message(world, "a") == "group default/g: default/b: no"


@scenario(
    plugins=[*FIT, "Slow"], classes=[answering("Slow", permit=lambda *_: (Status(Code.WAIT), 10.0))]
)
async def test_released_members_lose_their_nominations(world: World) -> None:
    """The nominations of the wait at Permit would block other pods."""
    group_of_two(world, cpu=2)
    await world.until(9)
    assert [world.nominated(member) for member in "ab"] == ["n1", "n1"]
    await world.until(10)
    assert [world.nominated(member) for member in "ab"] == ["", ""]


@scenario(
    plugins=[*FIT, "Broken"],
    classes=[answering("Broken", filter_node=lambda _, pod, __: LOST if pod.name == "b" else None)],
)
async def test_an_error_of_an_attempt_clears_the_nominations_of_all_members(world: World) -> None:
    """A previous leader wrote the nominations."""
    world.add_node("n1", cpu=4)
    put_group(world, "g", 2)
    add_members(world, "ab", "g", cpu=2, nominated_node="n1")
    await world.until(0)
    assert [world.nominated(member) for member in "ab"] == ["", ""]
    world.add_pod("c", cpu=4)
    await world.until(0)
    assert world.bound("c") == (0, "n1"), "the nominations block the pod"


@scenario(
    plugins=[*FIT, "Refuses"],
    classes=[answering("Refuses", pre_bind=lambda _, pod, *__: LOST if pod.name == "b" else None)],
)
async def test_a_member_whose_binding_fails_is_retried_at_once_and_only_once(world: World) -> None:
    """Its sibling stays placed. Repeated refusals of the API do not cause a loop."""
    group_of_two(world)
    await world.until(0)
    assert list(bound(world, "a", "b")) == [0, None]
    assert world.attempt_times("b") == [0, 0]
    await world.until(10)
    assert len(world.attempt_times("b")) <= 5


class _Once:
    """Raises at the first call, and then calls the original."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._has_raised = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not self._has_raised:
            self._has_raised = True
            raise RuntimeError("unthought of")
        return self._call(*args, **named)


@pytest.mark.parametrize(
    ("module", "name"), [(placements, "code_of"), (group_placements, "Diagnosis")]
)
@scenario(
    plugins=[*FIT, "Slow"],
    classes=[HOLDS_B],
    raise_bugs=False,
)
async def test_a_bug_after_the_wait_of_a_group_releases_its_members(
    world: World, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both before any member is released, and in the middle of the release."""
    group_of_two(world, cpu=2)
    await world.until(9)
    assert world.scheduler.cache.assumed_count == 2
    monkeypatch.setattr(module, name, _Once(getattr(module, name)))
    await world.until(10)
    assert world.scheduler.cache.assumed_count == 0
    assert not world.scheduler.waiting_pods()
    assert world.metric("bayplan_bugs_total") == 1
    assert [world.reason(member) for member in ("a", "b")] == ["SchedulerError"] * 2
    await world.until(19)
    assert world.scheduler.cache.assumed_count == 2, "the group was not tried again"


@scenario(
    plugins=[*FIT, "Slow"],
    classes=[answering("Slow", permit=lambda *_: (Status(Code.WAIT), 60.0))],
    raise_bugs=False,
)
async def test_a_bug_while_one_member_is_bound_does_not_affect_its_siblings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_of_two(world, cpu=2)
    await world.until(5)
    monkeypatch.setattr(placements, "BindingCycle", _Once(placements.BindingCycle))
    for waiting in world.scheduler.waiting_pods():
        waiting.allow("Slow")
    await world.until(5.5)
    assert list(bound(world, "a", "b")) == [None, 5]
    assert world.scheduler.cache.assumed_count == 0
    assert world.reason("a") == "SchedulerError"
