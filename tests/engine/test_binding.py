"""The binding cycle of a pod: order, parallel PreBind plugins, failures and cancellation."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bayplan.engine.binding import BindingCycle, BindingOutcome, PodInPreBind, groups_of
from bayplan.engine.extenders.results import Extenders
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import SKIP, Code, Status, unschedulable
from bayplan.framework.timing import Watch
from bayplan.ports import AskExtender, ConflictError, ExtenderAnswer, ExtenderVerb
from bayplan.testing import pod
from tests.engine.kit import no_extenders, start_task
from tests.framework.answering import Calls, answering, framework_of
from tests.kit.extenders import FakeExtender
from tests.kit.ports import RecordingPort

# ---- binding --------------------------------------------------------------------------------


UID = "uid-default/p"


def ended(
    *plugins: Any, port: RecordingPort | None = None, state: CycleState | None = None
) -> BindingOutcome:
    framework, state = framework_of(*plugins), state or CycleState()
    cycle = BindingCycle(
        framework,
        state,
        pod("p", node="n1"),
        "n1",
        extender_binding=None,
        in_pre_bind=PodInPreBind(),
    )

    async def main() -> BindingOutcome:
        return await cycle(port or RecordingPort(), start_task, no_extenders)

    return asyncio.run(main())


async def binds(state: Any, pod: Any, node_name: str, port: Any) -> None:
    await port.bind(pod, node_name)


def binder(name: str, log: Calls | None = None, answer: Any = None) -> type[Any]:
    return answering(name, log, bind=answer)


def test_a_pod_goes_through_pre_bind_bind_and_post_bind() -> None:
    log: Calls = []
    plugins = [
        answering("A", log, pre_bind=None, post_bind=None),
        answering("B", log, pre_bind=None, bind=None),
    ]
    assert ended(*plugins) == BindingOutcome(UID, None)
    assert log == [("A", "pre_bind"), ("B", "pre_bind"), ("B", "bind"), ("A", "post_bind")]


def test_binders_are_called_in_order_until_one_does_not_skip() -> None:
    log: Calls = []
    plugins = [binder("A", log, SKIP), binder("B", log), binder("C", log)]
    assert ended(*plugins).status is None
    assert log == [("A", "bind"), ("B", "bind")]


@pytest.mark.parametrize("answers", [(), (SKIP,), (SKIP, SKIP)])
def test_a_pod_that_every_binder_skips_is_an_error(answers: tuple[Any, ...]) -> None:
    plugins = [binder(f"B{number}", None, answer) for number, answer in enumerate(answers)]
    status = ended(*plugins).status
    assert status is not None
    assert status.code is Code.ERROR
    assert "no bind plugin took pod default/p" in status.message


@pytest.mark.parametrize(
    ("point", "named"),
    [pytest.param("pre_bind", "PreBind", id="PreBind"), pytest.param("bind", "Bind", id="Bind")],
)
@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        pytest.param(unschedulable("no"), Code.UNSCHEDULABLE, "no", id="rejects"),
        pytest.param(Status(Code.ERROR, ("broken",)), Code.ERROR, "broken", id="an Error"),
        pytest.param(
            Status(Code.WAIT), Code.ERROR, "returned Wait; wanted", id="waits, which is not allowed"
        ),
        pytest.param(OSError("gone"), Code.ERROR, "OSError: gone", id="raises"),
        pytest.param(True, Code.ERROR, "returned True", id="no status"),
    ],
)
def test_the_first_failure_ends_the_binding_and_names_the_plugin(
    point: str, named: str, answer: Any, code: Code, message: str
) -> None:
    log: Calls = []
    late = answering("Late", log, pre_bind=None, bind=None, post_bind=None)
    outcome = ended(answering("A", **{point: answer}), late)
    status = outcome.status
    assert status is not None
    assert (status.code, status.plugin) == (code, "A")
    assert message in status.message
    if code is Code.ERROR:
        assert status.message.startswith(f'running {named} plugin "A": ')
    assert log == ([] if point == "pre_bind" else [("Late", "pre_bind")])


def test_an_exception_in_post_bind_is_noted_only() -> None:
    log: Calls = []
    plugins = [
        answering("A", log, bind=None, post_bind=ValueError("boom")),
        answering("B", log, post_bind=None),
    ]
    outcome = ended(*plugins)
    assert outcome.status is None
    [remark] = outcome.remarks
    assert remark.message.startswith('running PostBind plugin "A": ValueError: boom (')
    assert log[-1] == ("B", "post_bind")


def test_plugins_that_write_get_the_port() -> None:
    port = RecordingPort()
    plugin = answering("A", bind=None)
    plugin.bind = lambda self, *args: binds(*args)
    assert ended(plugin, port=port).status is None
    assert port.bound == [("default/p", "n1")]
    failure = ended(plugin, port=RecordingPort(ConflictError("already bound"))).status
    assert failure is not None
    assert failure.message == 'running Bind plugin "A": ConflictError: already bound'


def test_the_points_of_a_binding_are_timed() -> None:
    reports: list[tuple[str, Code]] = []
    watch = Watch(
        lambda: 0.0, point=lambda point, code, _: lambda seconds: reports.append((point, code))
    )
    framework = framework_of(answering("A", pre_bind=None, bind=unschedulable("no")), watch=watch)
    placed = pod("p", node="n1")
    cycle = BindingCycle(
        framework, CycleState(), placed, "n1", extender_binding=None, in_pre_bind=PodInPreBind()
    )

    async def main() -> None:
        await cycle(RecordingPort(), start_task, no_extenders)

    asyncio.run(main())
    assert reports == [("PreBind", Code.SUCCESS), ("Bind", Code.UNSCHEDULABLE)]


# ---- one request ---------------------------------------------------------------------------


def test_a_binding_is_one_request_if_its_only_bind_plugin_promises_so() -> None:
    promising = answering("A", bind=None, binds_with_one_request=True)
    assert framework_of(promising).binds_with_one_request
    assert not framework_of(binder("A")).binds_with_one_request
    assert not framework_of(promising, binder("B")).binds_with_one_request
    assert not framework_of(promising, answering("B", post_bind=None)).binds_with_one_request


# ---- extenders -----------------------------------------------------------------------------


def through(error: str, *, ignorable: bool = False) -> tuple[BindingOutcome, Calls]:
    """A binding through an extender with this answer."""
    log: Calls = []

    async def ask(question: AskExtender) -> ExtenderAnswer:
        log.append((question.extender, "bind"))
        return ExtenderAnswer(error=error)

    binds = frozenset((ExtenderVerb.BIND,))
    extenders = Extenders((FakeExtender(ignorable=ignorable, verbs=binds),))
    scheduled_pod = pod("p", node="n1")
    framework = framework_of(answering("A", log, pre_bind=None, bind=None, post_bind=None))
    binding = extenders.binding(scheduled_pod)
    cycle = BindingCycle(
        framework,
        CycleState(),
        scheduled_pod,
        "n1",
        extender_binding=binding,
        in_pre_bind=PodInPreBind(),
    )

    async def main() -> BindingOutcome:
        return await cycle(RecordingPort(), start_task, ask)

    return asyncio.run(main()), log


def test_an_extender_binds_in_place_of_the_plugins() -> None:
    outcome, log = through("")
    assert outcome == BindingOutcome(UID, None)
    assert log == [("A", "pre_bind"), ("far", "bind"), ("A", "post_bind")]


def test_a_failed_extender_binding_is_not_retried_by_plugins() -> None:
    outcome, log = through("no licence")
    assert outcome.status == Status(Code.ERROR, ("no licence",))
    assert log == [("A", "pre_bind"), ("far", "bind")]


def test_a_failure_of_an_ignorable_extender_falls_back_to_the_plugins() -> None:
    outcome, log = through("no licence", ignorable=True)
    assert outcome.status is None
    assert log[1:] == [("far", "bind"), ("A", "bind"), ("A", "post_bind")]


# ---- PreBind --------------------------------------------------------------------------------


PLACED = pod("p", node="n1")
Log = list[str]


def plugin(name: str, pre_bind: Any = None, *, parallel: bool = True) -> type[Any]:
    return answering(name, pre_bind=pre_bind, allows_parallel_pre_bind=parallel)


def waiting(name: str, log: Log, until: asyncio.Event | None = None, answer: Any = None) -> Any:
    """A plugin whose PreBind waits, for ever without ``until``."""
    instance = plugin(name)

    async def pre_bind(self: Any, *args: Any) -> Status | None:
        log.append(f"{name} begins")
        try:
            await (until or asyncio.Event()).wait()
        except asyncio.CancelledError:
            log.append(f"{name} is cancelled")
            raise
        log.append(f"{name} ends")
        return answer

    instance.pre_bind = pre_bind
    return instance


async def outcome_of(
    *plugins: Any, control: PodInPreBind | None = None, state: CycleState | None = None
) -> BindingOutcome:
    framework, state = framework_of(*plugins), state or CycleState()
    control = control or PodInPreBind()
    return await BindingCycle(
        framework, state, PLACED, "n1", extender_binding=None, in_pre_bind=control
    )(RecordingPort(), start_task, no_extenders)


class SleepingPort(RecordingPort):
    """A port whose sleep lets other tasks run."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.0)


def run(main: Callable[[], Coroutine[Any, Any, BindingOutcome]]) -> Status | None:
    return asyncio.run(main()).status


# ---- parallel groups ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "skipped", "groups"),
    [
        pytest.param("Ab", "", ["Ab"], id="neighbours that allow it"),
        pytest.param("aXb", "", ["a", "X", "b"], id="a plugin that does not allow it is alone"),
        pytest.param("XY", "", ["X", "Y"], id="neighbours that do not allow it"),
        pytest.param("aXb", "X", ["a", "b"], id="a skipped plugin separates its neighbours"),
        pytest.param(
            "abc", "b", ["ac"], id="a skipped plugin that allows it does not separate them"
        ),
        pytest.param("Xab", "a", ["X", "b"], id="the first plugin of a group is skipped"),
        pytest.param("ab", "ab", [], id="all plugins are skipped"),
    ],
)
def test_neighbouring_plugins_that_allow_it_run_as_one_parallel_group(
    plugins: str, skipped: str, groups: list[str]
) -> None:
    """X and Y do not allow it. Upstream: TestPreBindPlugins."""
    classes = [plugin(name, parallel=name not in "XY") for name in plugins]
    calls = framework_of(*classes).calls(CycleState(), PLACED)
    results = ["".join(name for name, _ in group) for group in groups_of(calls, set(skipped))]
    assert results == groups


def test_plugins_of_a_parallel_group_run_side_by_side() -> None:
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


def test_the_first_failure_cancels_the_other_plugins_of_its_group() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        failing = plugin("B", Status(Code.ERROR, ("no disk",)))
        return await outcome_of(waiting("A", log), waiting("C", log), failing)

    status = run(main)
    assert status == Status(Code.ERROR, ('running PreBind plugin "B": no disk',), "B")
    assert log == ["A begins", "C begins", "A is cancelled", "C is cancelled"]


def test_a_parallel_group_starts_after_the_previous_one_has_ended() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        failing = plugin("X", Status(Code.ERROR, ("no disk",)), parallel=False)
        return await outcome_of(failing, waiting("A", log))

    status = run(main)
    assert status is not None and status.plugin == "X"
    assert log == []


# ---- cancelling -----------------------------------------------------------------------------


def test_a_cancelled_binding_fails_with_the_reason() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        control = PodInPreBind()
        ends = asyncio.ensure_future(outcome_of(waiting("A", log), control=control))
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        assert control.cancel("preempted by P")
        assert control.cancel("preempted by Q"), "the binding is cancelled already"
        await control.ended(SleepingPort())
        return await ends

    status = run(main)
    text = 'running PreBind plugin "A": preempted by P'
    assert status == Status(Code.ERROR, (text,), "A")
    assert log == ["A begins", "A is cancelled"]


def test_a_binding_cancelled_before_it_begins_fails() -> None:
    log: Log = []

    async def main() -> BindingOutcome:
        control = PodInPreBind()
        assert control.cancel("preempted by P")
        return await outcome_of(waiting("A", log), control=control)

    status = run(main)
    assert status is not None
    assert status.message == 'running PreBind plugin "A": preempted by P'
    assert log == []


def test_cancelling_a_binding_that_has_not_begun_waits_for_its_end() -> None:
    """Before PreBind, a binding waits for a pending status patch of the pod. Who
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


def test_a_binding_after_pre_bind_cannot_be_cancelled() -> None:
    control, answers = PodInPreBind(), list[bool]()

    async def main() -> BindingOutcome:
        binder = answering("B", bind=lambda *_: answers.append(control.cancel("late")))
        return await outcome_of(plugin("A"), binder, control=control)

    assert run(main) is None
    assert answers == [False]
