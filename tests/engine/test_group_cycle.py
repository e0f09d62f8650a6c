"""One pass over a group. What whole groups come to stands in tests/scenarios and
test_group_attempts."""

from typing import Any

from bayplan.framework.status import Status, unschedulable
from tests.framework.answering import answering
from tests.scenarios.gangs import FIT, add_member, bound, put_group
from tests.scenarios.world import World, play


class Log:
    """A plugin that reserves, and notes what for."""

    def __init__(self, *refused: str) -> None:
        self.said: list[str] = []
        self._refused = refused
        self.plugin = answering("Log", reserve=self._reserve, unreserve=self._unreserve)

    def _reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        self.said.append(f"+{pod.name}")
        return unschedulable("taken") if pod.name in self._refused else None

    def _unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.said.append(f"-{pod.name}")

    @property
    def options(self) -> dict[str, Any]:
        return {"plugins": [*FIT, "Log"], "classes": [self.plugin]}


def test_nobody_is_tried_once_too_few_are_left() -> None:
    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 3)
        for name, cpu in (("a", 1), ("b", 9), ("c", 1)):
            add_member(world, name, "g", cpu=cpu)
        await world.until(0)
        assert [len(world.attempts(name)) for name in "abc"] == [1, 1, 0]

    play(story, plugins=FIT)


def test_what_members_have_reserved_is_given_back_the_last_one_first() -> None:
    log = Log()

    async def story(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 3)
        for name, cpu in (("a", 1), ("b", 1), ("c", 9)):
            add_member(world, name, "g", cpu=cpu)
        await world.until(0)
        assert log.said == ["+a", "+b", "-b", "-a"]
        assert world.requested("n1") == 0

    play(story, **log.options)


def test_a_place_that_cannot_be_reserved_is_the_next_members() -> None:
    log = Log("a")

    async def story(world: World) -> None:
        world.add_node("n1", cpu=1)
        put_group(world, "g", 1)
        for name in "ab":
            add_member(world, name, "g", cpu=1)
        await world.until(0)
        assert log.said[:3] == ["+a", "-a", "+b"]
        assert list(bound(world, "a", "b")) == [None, 0]

    play(story, **log.options)
