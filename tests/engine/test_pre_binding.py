"""PreBind: what runs side by side, and what cancels it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bayplan.engine.binding import BindingCycle, BindingOutcome
from bayplan.engine.pre_binding import PodInPreBind, groups_of
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code, Status
from bayplan.testing import pod
from tests.engine.kit import Port, start_task
from tests.framework.answering import answering, framework_of

PLACED = pod("p", node="n1")
Log = list[str]


def plugin(name: str, pre_bind: Any = None, *, parallel: bool = True) -> type[Any]:
    return answering(name, pre_bind=pre_bind, allows_parallel_pre_bind=parallel)


def waiting(name: str, log: Log, until: asyncio.Event | None = None, answer: Any = None) -> Any:
    """A plugin whose PreBind waits, for ever without ``until``."""
    found = plugin(name)

    async def pre_bind(self: Any, *args: Any) -> Status | None:
        log.append(f"{name} begins")
        try:
            await (until or asyncio.Event()).wait()
        except asyncio.CancelledError:
            log.append(f"{name} is cancelled")
            raise
        log.append(f"{name} ends")
        return answer

    found.pre_bind = pre_bind
    return found


async def outcome_of(
    *plugins: Any, control: PodInPreBind | None = None, state: CycleState | None = None
) -> BindingOutcome:
    framework, state = framework_of(*plugins), state or CycleState()
    control = control or PodInPreBind()
    return await BindingCycle(framework, state, PLACED, "n1", None, control)(Port(), start_task)


class SleepingPort(Port):
    """A port on which others go on meanwhile."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.0)


def run(main: Callable[[], Coroutine[Any, Any, BindingOutcome]]) -> Status | None:
    return asyncio.run(main()).status


# ---- groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "skipped", "groups"),
    [
        pytest.param("Ab", "", ["Ab"], id="neighbours that allow it"),
        pytest.param("aXb", "", ["a", "X", "b"], id="one that does not allow it is alone"),
        pytest.param("XY", "", ["X", "Y"], id="neighbours that do not allow it"),
        pytest.param("aXb", "X", ["a", "b"], id="a skipped one separates its neighbours"),
        pytest.param("abc", "b", ["ac"], id="a skipped one that allows it does not"),
        pytest.param("Xab", "a", ["X", "b"], id="the first of a group is skipped"),
        pytest.param("ab", "ab", [], id="all are skipped"),
    ],
)
def test_neighbours_that_allow_it_form_a_group(
    plugins: str, skipped: str, groups: list[str]
) -> None:
    """X and Y do not allow it. Upstream: TestPreBindPlugins."""
    classes = [plugin(name, parallel=name not in "XY") for name in plugins]
    calls = framework_of(*classes).calls(CycleState(), PLACED)
    found = ["".join(name for name, _ in group) for group in groups_of(calls, set(skipped))]
    assert found == groups


def test_plugins_of_a_group_run_side_by_side() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        both = asyncio.Event()

        def second(*_: Any) -> None:
            log.append("B begins")
            both.set()

        binder = answering("Binder", bind=None)
        return await outcome_of(waiting("A", log, both), plugin("B", second), binder)

    assert run(main) is None
    assert log == ["A begins", "B begins", "A ends"]


def test_the_first_failure_cancels_the_rest_of_its_group() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        failing = plugin("B", Status(Code.ERROR, ("no disk",)))
        return await outcome_of(waiting("A", log), waiting("C", log), failing)

    status = run(main)
    assert status == Status(Code.ERROR, ('running PreBind plugin "B": no disk',), "B")
    assert log == ["A begins", "C begins", "A is cancelled", "C is cancelled"]


def test_a_group_begins_when_the_one_before_has_ended() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        failing = plugin("X", Status(Code.ERROR, ("no disk",)), parallel=False)
        return await outcome_of(failing, waiting("A", log))

    status = run(main)
    assert status is not None and status.plugin == "X"
    assert log == []


# ---- cancelling -----------------------------------------------------------------------------


def test_a_binding_that_is_cancelled_fails_with_the_reason() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        control = PodInPreBind()
        ends = asyncio.ensure_future(outcome_of(waiting("A", log), control=control))
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        assert control.cancel("preempted by P")
        assert control.cancel("preempted by Q"), "it is cancelled already"
        await control.ended(SleepingPort())
        return await ends

    status = run(main)
    text = 'running PreBind plugin "A": preempted by P'
    assert status == Status(Code.ERROR, (text,), "A")
    assert log == ["A begins", "A is cancelled"]


def test_a_binding_that_is_cancelled_before_it_begins_fails_as_well() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        control = PodInPreBind()
        assert control.cancel("preempted by P")
        return await outcome_of(waiting("A", log), control=control)

    status = run(main)
    assert status is not None
    assert status.message == 'running PreBind plugin "A": preempted by P'
    assert log == []


def test_who_cancels_a_binding_waits_also_for_one_that_has_not_begun() -> None:
    """Before PreBind, a binding waits for the status patch of the pod that is under way. Who
    tries again at once meanwhile finds the pod on its node still, and cancels it again."""
    log: Log = []

    async def main() -> BindingOutcome:
        control, port = PodInPreBind(), SleepingPort()
        assert control.cancel("preempted by P")
        ended = asyncio.ensure_future(control.ended(port))
        for _ in range(5):
            await asyncio.sleep(0.0)
        assert not ended.done()
        outcome = await outcome_of(waiting("A", log), control=control)
        await ended
        return outcome

    assert run(main) is not None
    assert log == []


def test_a_plugin_that_ends_at_the_moment_of_the_cancellation_does_not_bind() -> None:
    async def main() -> BindingOutcome:
        control = PodInPreBind()
        cancelling = plugin("A", lambda *_: control.cancel("preempted by P") and None)
        return await outcome_of(cancelling, answering("Binder", bind=None), control=control)

    assert run(main) == Status(Code.ERROR, ("preempted by P",))


def test_nothing_cancels_a_binding_whose_pre_bind_has_ended() -> None:
    control, answers = PodInPreBind(), list[bool]()

    async def main() -> BindingOutcome:
        binder = answering("B", bind=lambda *_: answers.append(control.cancel("late")))
        return await outcome_of(plugin("A"), binder, control=control)

    assert run(main) is None
    assert answers == [False]
