"""Virtual time: jumps, order, deadlocks, and failures that must not be lost."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.clock import ManualClock
from bayplan.sim.loop import (
    DeadlockError,
    Turns,
    run,
    running_loop,
    settled,
    settled_after_each,
)

HOUR = 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_sleep_moves_the_virtual_clock_only() -> None:
    clock = ManualClock(start_seconds=5.0)

    async def nap() -> float:
        await asyncio.sleep(1000 * HOUR)
        return now()

    assert run(nap(), clock) == 5.0 + 1000 * HOUR
    assert clock.now() == 5.0 + 1000 * HOUR


def test_time_stands_still_while_a_task_can_run() -> None:
    async def busy() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return now()

    assert run(busy(), ManualClock()) == 0.0


@given(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 7.0]), max_size=20))
def test_sleepers_wake_by_time_and_then_in_order_of_their_start(
    delays: list[float],
) -> None:
    woken: list[tuple[float, int]] = []

    async def sleeper(number: int, delay: float) -> None:
        await asyncio.sleep(delay)
        woken.append((now(), number))

    async def main() -> None:
        await asyncio.gather(*(sleeper(n, delay) for n, delay in enumerate(delays)))

    run(main(), ManualClock())
    assert woken == sorted((delay, number) for number, delay in enumerate(delays))


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    async def main() -> float:
        asyncio.get_running_loop().call_later(HOUR, print).cancel()
        await asyncio.sleep(1)
        return running_loop().next_timer_seconds() or now()

    assert run(main(), ManualClock()) == 1.0


def test_ten_thousand_cancelled_timers_are_removed() -> None:
    async def main() -> tuple[int, float | None]:
        loop = running_loop()
        loop.call_later(2 * HOUR, print)
        for _ in range(10_000):
            loop.call_later(HOUR, print).cancel()
        return len(loop.timers), loop.next_timer_seconds()

    count, due = run(main(), ManualClock())
    assert count < 200
    assert due == 2 * HOUR


def test_a_timeout_uses_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 30)
        return now()

    assert run(main(), ManualClock()) == 30.0


def test_a_time_in_the_past_means_now() -> None:
    async def main() -> float:
        event = asyncio.Event()
        asyncio.get_running_loop().call_at(3.0, event.set)
        await event.wait()
        return now()

    assert run(main(), ManualClock(start_seconds=10.0)) == 10.0


def test_a_deadlock_is_reported_with_the_waiting_tasks() -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(2)
        task = asyncio.create_task(waits_for_nothing(), name="reflector v1 Pod")
        await task

    with pytest.raises(DeadlockError) as error:
        run(main(), ManualClock())
    text = str(error.value)
    assert "at 2 s" in text
    assert len(error.value.waiting) == 2
    assert error.value.waiting[0].startswith("main: ")
    assert "reflector v1 Pod: " in error.value.waiting[1]
    assert "waits_for_nothing, locks.py:" in error.value.waiting[1]


def test_waiting_forever_is_a_deadlock() -> None:
    clock = ManualClock()
    with pytest.raises(DeadlockError):
        run(asyncio.sleep(math.inf), clock)
    assert clock.now() == 0.0


def test_a_failed_task_without_a_waiter_ends_the_run() -> None:
    async def fails() -> None:
        raise KeyError("lost")

    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        tasks.append(asyncio.create_task(fails(), name="binder"))
        await asyncio.sleep(HOUR)

    clock = ManualClock()
    with pytest.raises(KeyError, match="lost") as error:
        run(main(), clock)
    assert error.value.__notes__ == ["in task binder, which no task awaits"]
    assert clock.now() == 0.0


def test_a_failed_task_with_a_waiter_raises_there() -> None:
    async def fails() -> None:
        await asyncio.sleep(1)
        raise KeyError("found")

    async def main() -> str:
        try:
            await asyncio.create_task(fails())
        except KeyError as problem:
            await asyncio.sleep(1)
            return str(problem)
        return "nothing"

    assert run(main(), ManualClock()) == "'found'"


def test_a_failure_at_the_end_of_the_run_is_not_lost() -> None:
    async def fails() -> None:
        raise KeyError("late")

    async def main() -> None:
        task = asyncio.create_task(fails())
        await asyncio.sleep(0)
        assert task.done()

    with pytest.raises(KeyError, match="late"):
        run(main(), ManualClock())


def test_a_failing_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(1, [].pop)
        await asyncio.sleep(HOUR)

    clock = ManualClock()
    with pytest.raises(IndexError):
        run(main(), clock)
    assert clock.now() == 1.0


def test_remaining_tasks_are_cancelled_at_the_end() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(HOUR)
        finally:
            ended.append("background")

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(0)
        assert not task.done()

    run(main(), ManualClock())
    assert ended == ["background"]


def test_a_task_that_ignores_cancellation_is_named() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(HOUR)
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        tasks.append(asyncio.create_task(stubborn(), name="stubborn"))
        await asyncio.sleep(1)

    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(DeadlockError, match="stubborn"):
        run(main(), ManualClock())


def test_an_abandoned_generator_is_closed() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("numbers")

    async def main() -> None:
        generators.append(numbers())
        assert await anext(generators[0]) == 1

    generators: list[AsyncIterator[int]] = []
    run(main(), ManualClock())
    assert closed == ["numbers"]


def test_settled_returns_when_only_timers_remain() -> None:
    steps: list[str] = []

    async def worker() -> None:
        for step in range(5):
            await asyncio.sleep(0)
            steps.append(f"step {step}")
        await asyncio.sleep(1)
        steps.append("a second later")

    async def main() -> tuple[list[str], float, float | None]:
        task = asyncio.create_task(worker())
        await settled()
        result = list(steps), now(), running_loop().next_timer_seconds()
        await task
        return result

    assert run(main(), ManualClock()) == ([f"step {n}" for n in range(5)], 0.0, 1.0)


def test_a_timer_of_this_moment_runs_before_settled_returns() -> None:
    async def main() -> list[str]:
        calls: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0, calls.append, "at once")
        loop.call_at(-5, calls.append, "long ago")
        await settled()
        return calls

    assert run(main(), ManualClock()) == ["long ago", "at once"]


def test_waiters_for_settled_continue_one_by_one() -> None:
    turns: list[str] = []

    async def waiter(name: str) -> None:
        await settled()
        turns.append(f"{name} begins")
        await asyncio.sleep(0)
        turns.append(f"{name} ends")

    async def main() -> None:
        await asyncio.gather(waiter("a"), waiter("b"))

    run(main(), ManualClock())
    assert turns == ["a begins", "a ends", "b begins", "b ends"]


def test_threads_are_not_available() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(NotImplementedError):
        run(main(), ManualClock())


def test_in_a_thread_with_another_event_loop_virtual_time_has_a_thread_of_its_own() -> None:
    """As in a notebook, whose cells run in an event loop."""

    async def nap() -> float:
        await asyncio.sleep(1000 * HOUR)
        return now()

    async def fail() -> None:
        raise ValueError("its own")

    async def cell() -> float:
        with pytest.raises(ValueError, match="its own"):
            run(fail(), ManualClock())
        return run(nap(), ManualClock())

    assert asyncio.run(cell()) == 1000 * HOUR


def test_virtual_time_does_not_nest() -> None:
    async def main() -> None:
        run(asyncio.sleep(1), ManualClock())

    with pytest.raises(RuntimeError, match="inside a running event loop"):
        run(main(), ManualClock())


def test_a_task_group_works_under_virtual_time() -> None:
    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("one of them")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(asyncio.sleep(HOUR))

    async def main() -> float:
        with pytest.raises(ExceptionGroup) as error:
            await both()
        assert error.group_contains(ValueError, match="one of them")
        return now()

    assert run(main(), ManualClock()) == 1.0


# ---- pauses inside a task --------------------------------------------------------------------


class Deed(NamedTuple):
    """Something that happens soon: a callback, a timer that is due at once, or the step of a task.
    It may wake the task that pauses, before or after it causes further deeds."""

    kind: str
    wakes: str
    further: "tuple[Deed, ...]"


DEEDS = st.recursive(
    st.builds(Deed, st.sampled_from("cctk"), st.sampled_from("-ba"), st.just(())),
    lambda deeds: st.builds(
        Deed,
        st.sampled_from("cctk"),
        st.sampled_from("-ba"),
        st.lists(deeds, max_size=3).map(tuple),
    ),
    max_leaves=6,
)


class Pausing:
    """A task that pauses like the runner of a scheduler, and the order of all that happens."""

    def __init__(self, steps: list[tuple[str, list[Deed]]]) -> None:
        self._steps = steps
        self.order: list[str] = []
        self._turns: Turns | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_woken = False

    async def run(self, *, has_turns: bool) -> None:
        self._turns = running_loop().turns if has_turns else None
        for number, (pause, deeds) in enumerate(self._steps):
            self._is_woken = False
            self.order.append(f"turn {number}")
            for index, deed in enumerate(deeds):
                self._begin(deed, f"{number}.{index}")
            if pause == "let run":
                await self._let_run(f"last {number}")
            else:
                running_loop().call_later(1, self._wake)
                await self._wait()
        await settled()

    async def _let_run(self, name: str) -> None:
        def last() -> None:
            self.order.append(name)
            running_loop().call_soon(self.order.append, f"after {name}")

        if self._turns is None:
            running_loop().call_soon(last)
            await asyncio.sleep(0)
        elif not self._turns.let_run(last):
            await asyncio.sleep(0)

    async def _wait(self) -> None:
        if self._is_woken or (self._turns is not None and self._turns.pause(until_woken=True)):
            return
        if self._is_woken:
            await asyncio.sleep(0)
            return
        self._waiter = running_loop().create_future()
        await self._waiter
        self._waiter = None

    def _wake(self) -> None:
        self._is_woken = True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif self._turns is not None and self._turns.is_waiting:
            self._turns.wake()

    def _begin(self, deed: Deed, name: str) -> None:
        async def step() -> None:
            self._do(deed, name)

        if deed.kind == "c":
            running_loop().call_soon(self._do, deed, name)
        elif deed.kind == "t":
            running_loop().call_later(0, self._do, deed, name)
        else:
            running_loop().create_task(step())

    def _do(self, deed: Deed, name: str) -> None:
        self.order.append(name)
        if deed.wakes == "b":
            self._wake()
        for index, each in enumerate(deed.further):
            self._begin(each, f"{name}.{index}")
        if deed.wakes == "a":
            self._wake()


@given(st.lists(st.tuples(st.sampled_from(["let run", "wait"]), st.lists(DEEDS, max_size=3))))
def test_a_pause_inside_a_task_has_the_order_of_a_real_one(
    steps: list[tuple[str, list[Deed]]],
) -> None:
    real, inside = Pausing(steps), Pausing(steps)
    run(real.run(has_turns=False), ManualClock())
    run(inside.run(has_turns=True), ManualClock())
    assert inside.order == real.order


def test_a_pause_that_meets_no_task_suspends_none() -> None:
    rounds: list[int] = []

    async def main() -> None:
        turns = running_loop().turns
        running_loop().call_soon(lambda: rounds.append(1))
        assert turns.let_run(lambda: rounds.append(2))
        running_loop().call_soon(turns.wake)
        assert turns.pause(until_woken=True)
        running_loop().create_task(asyncio.sleep(0))
        assert not turns.let_run(lambda: rounds.append(3))
        await asyncio.sleep(0)
        assert rounds == [1, 2, 3]

    run(main(), ManualClock())


def test_work_goes_on_when_nothing_else_can_run() -> None:
    order: list[str] = []

    def work() -> Iterator[None]:
        for number in range(3):
            order.append(f"step {number}")
            running_loop().call_soon(order.append, f"consequence {number}")
            yield

    async def main() -> None:
        await settled_after_each(work())
        order.append("end")

    run(main(), ManualClock())
    assert order == [
        *("step 0", "consequence 0", "step 1", "consequence 1", "step 2", "consequence 2"),
        "end",
    ]


def test_work_that_fails_fails_the_task_that_waits_for_it() -> None:
    def work() -> Iterator[None]:
        yield
        raise ValueError("second step")

    async def main() -> None:
        with pytest.raises(ValueError, match="second step"):
            await settled_after_each(work())

    run(main(), ManualClock())
