"""One pass over a group, with and without extenders. No node stays reserved during a call."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.engine.extenders.results import ConfiguredExtender
from bayplan.framework.status import Status, unschedulable
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from tests.framework.answering import answering
from tests.scenarios.gangs import (
    FIT,
    add_member,
    add_members,
    bound,
    group_attempts,
    message,
    put_group,
)
from tests.scenarios.world import World, play, scenario

# ---- extender calls for groups --------------------------------------------------------------


TRIO = ("a", "b", "c")
Answer = Callable[[AskExtender], ExtenderAnswer]


class Outside:
    """An extender that takes a second and records its calls."""

    def __init__(self, answer: Answer, *verbs: ExtenderVerb, **fields: Any) -> None:
        kinds = frozenset(verbs or (ExtenderVerb.FILTER,))
        self.extender = ConfiguredExtender("ext", kinds, **fields)
        self.questions: list[AskExtender] = []
        self._answer = answer
        self.world: World | None = None

    async def ask(self, question: AskExtender) -> ExtenderAnswer:
        self.questions.append(question)
        assert self.world is not None
        # No pod is assumed during the call.
        assert self.world.scheduler.cache.assumed_count == 0
        await self.world.cluster.sleep(1.0)
        return self._answer(question)

    def play(self, scenario: Callable[[World], Any], **options: Any) -> None:
        async def run_in_world(world: World) -> None:
            self.world = world
            await scenario(world)

        answers = {"ext": self.ask}
        play(run_in_world, plugins=FIT, extenders=[self.extender], asks=answers, **options)


def all_but(*names: str) -> Answer:
    def answer(question: AskExtender) -> ExtenderAnswer:
        left = frozenset(question.node_names) - set(names)
        gone = {name: "licence missing" for name in question.node_names if name in names}
        return ExtenderAnswer(node_names=left, failed=gone)

    return answer


def trio(world: World, node_count: int, cpu: int = 4) -> None:
    for index in range(1, node_count + 1):
        world.add_node(f"n{index}", cpu=cpu)
    put_group(world, "g", 3)
    add_members(world, TRIO, "g", cpu=3)


def test_the_extender_is_called_once_per_member_with_all_nodes() -> None:
    outside = Outside(all_but())

    async def run(world: World) -> None:
        trio(world, 3)
        await world.until(5)
        assert list(bound(world, *TRIO)) == [1] * 3
        assert sorted(one.pod.name for one in outside.questions) == list(TRIO)
        assert [len(one.node_names) for one in outside.questions] == [3, 2, 1]
        (attempt,) = group_attempts(world, "g")
        assert attempt.attempt == 1

    outside.play(run)


def test_a_node_that_the_extender_rejects_gets_no_member() -> None:
    outside = Outside(all_but("n1"))

    async def run(world: World) -> None:
        trio(world, 4)
        await world.until(10)
        assert {place[1] for name in TRIO if (place := world.bound(name))} == {"n2", "n3", "n4"}
        # Its answer about one member is assumed for equal members: one more round in all.
        assert len(outside.questions) <= 6

    outside.play(run)


def test_if_the_extender_leaves_too_few_nodes_nothing_is_bound_and_its_reason_is_reported() -> None:
    outside = Outside(all_but("n1"))

    async def run(world: World) -> None:
        trio(world, 3)
        await world.until(10)
        assert list(bound(world, *TRIO)) == [None] * 3
        assert world.scheduler.cache.assumed_count == 0
        text = message(world, "a")
        assert text.startswith("group default/g: 2 of 3 members fit; the 3rd, default/c: 0/3 nodes")
        assert "1 licence missing" in text
        world.add_node("n4", cpu=4)
        await world.until(40)
        assert None not in list(bound(world, *TRIO))

    outside.play(run)


def test_the_extender_is_not_called_for_a_group_that_does_not_fit() -> None:
    outside = Outside(all_but())

    async def run(world: World) -> None:
        trio(world, 2)
        await world.until(10)
        assert list(bound(world, *TRIO)) == [None] * 3
        assert outside.questions == []

    outside.play(run)


@pytest.mark.parametrize(("ignorable", "expected"), [(True, [1, 1, 1]), (False, [None] * 3)])
def test_an_extender_that_does_not_answer(ignorable: bool, expected: list[float | None]) -> None:
    failing = Outside(lambda _: ExtenderAnswer(error="extender ext: down"), ignorable=ignorable)

    async def run(world: World) -> None:
        trio(world, 3)
        await world.until(1.5)
        assert list(bound(world, *TRIO)) == expected
        if not ignorable:
            assert "extender ext: down" in message(world, "a")
            assert world.reason("a") == "SchedulerError"

    failing.play(run)


def test_the_scores_of_the_extender_count_for_members() -> None:
    def answer(question: AskExtender) -> ExtenderAnswer:
        return ExtenderAnswer(scores=tuple((name, int(name[1:])) for name in question.node_names))

    outside = Outside(answer, ExtenderVerb.PRIORITIZE, weight=10)

    async def run(world: World) -> None:
        trio(world, 5)
        await world.until(10)
        assert {place[1] for name in TRIO if (place := world.bound(name))} == {"n3", "n4", "n5"}

    outside.play(run)


def test_a_member_deleted_while_its_extender_call_is_pending_leaves_the_group_incomplete() -> None:
    outside = Outside(all_but())

    async def run(world: World) -> None:
        trio(world, 3)
        await world.until(0.5)
        world.delete_pod("b")
        await world.until(10)
        assert list(bound(world, "a", "c")) == [None, None]
        assert "2 of 3 members are here" in message(world, "a")
        add_member(world, "d", "g", cpu=3)
        await world.until(20)
        assert list(bound(world, "a", "c", "d")) == [11] * 3

    outside.play(run)


def test_a_node_that_fills_up_during_an_extender_call_is_noticed() -> None:
    outside = Outside(all_but())

    async def run(world: World) -> None:
        trio(world, 4)
        await world.until(0.5)
        world.add_pod("other", cpu=3, node="n2")
        await world.until(10)
        assert {place[1] for name in TRIO if (place := world.bound(name))} == {"n1", "n3", "n4"}

    outside.play(run)


# ---- one pass over a group ------------------------------------------------------------------


class Log:
    """A plugin that records Reserve and Unreserve."""

    def __init__(self, *refused: str) -> None:
        self.calls: list[str] = []
        self._refused = refused
        self.plugin = answering("Log", reserve=self._reserve, unreserve=self._unreserve)

    def _reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        self.calls.append(f"+{pod.name}")
        return unschedulable("taken") if pod.name in self._refused else None

    def _unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.calls.append(f"-{pod.name}")

    @property
    def options(self) -> dict[str, Any]:
        return {"plugins": [*FIT, "Log"], "classes": [self.plugin]}


@scenario(plugins=FIT)
async def test_no_further_member_is_tried_once_too_few_remain(world: World) -> None:
    world.add_node("n1", cpu=4)
    put_group(world, "g", 3)
    for name, cpu in (("a", 1), ("b", 9), ("c", 1)):
        add_member(world, name, "g", cpu=cpu)
    await world.until(0)
    assert [len(world.attempts(name)) for name in "abc"] == [1, 1, 0]


def test_reserved_members_are_unreserved_in_reverse_order() -> None:
    log = Log()

    async def run(world: World) -> None:
        world.add_node("n1", cpu=4)
        put_group(world, "g", 3)
        for name, cpu in (("a", 1), ("b", 1), ("c", 9)):
            add_member(world, name, "g", cpu=cpu)
        await world.until(0)
        assert log.calls == ["+a", "+b", "-b", "-a"]
        assert world.requested("n1") == 0

    play(run, **log.options)


def test_a_node_whose_reserve_fails_is_offered_to_the_next_member() -> None:
    log = Log("a")

    async def run(world: World) -> None:
        world.add_node("n1", cpu=1)
        put_group(world, "g", 1)
        add_members(world, "ab", "g", cpu=1)
        await world.until(0)
        assert log.calls[:3] == ["+a", "-a", "+b"]
        assert list(bound(world, "a", "b")) == [None, 0]
        first, *_ = world.attempts("a")
        assert (first.result, first.message, first.plugin) == ("unschedulable", "taken", "Log")

    play(run, **log.options)
