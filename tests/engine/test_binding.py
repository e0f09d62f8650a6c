"""A pod's binding cycle: what the shell runs, and what comes back."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from bayplan.engine.binding import BindingCycle, BindingOutcome
from bayplan.engine.extending import Extenders
from bayplan.engine.pre_binding import PodInPreBind
from bayplan.framework.interface import CycleState
from bayplan.framework.status import SKIP, Code, Status, unschedulable
from bayplan.framework.timing import Watch
from bayplan.ports import AskExtender, ConflictError, ExtenderAnswer, ExtenderVerb
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.engine.kit import Port, start_task
from tests.framework.answering import Calls, answering, framework_of

UID = "uid-default/p"


def ended(
    *plugins: Any, port: Port | None = None, state: CycleState | None = None
) -> BindingOutcome:
    framework, state = framework_of(*plugins), state or CycleState()
    cycle = BindingCycle(framework, state, pod("p", node="n1"), "n1", None, PodInPreBind())

    async def main() -> BindingOutcome:
        return await cycle(port or Port(), start_task)

    return asyncio.run(main())


async def binds(state: Any, asked: Any, node_name: str, port: Any) -> None:
    await port.bind(asked, node_name)


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


def test_binders_are_asked_in_order_until_one_does_not_skip() -> None:
    log: Calls = []
    plugins = [binder("A", log, SKIP), binder("B", log), binder("C", log)]
    assert ended(*plugins).status is None
    assert log == [("A", "bind"), ("B", "bind")]


@pytest.mark.parametrize("answers", [(), (SKIP,), (SKIP, SKIP)])
def test_a_pod_nobody_takes_is_an_error(answers: tuple[Any, ...]) -> None:
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
    ("answer", "code", "said"),
    [
        pytest.param(unschedulable("no"), Code.UNSCHEDULABLE, "no", id="rejects"),
        pytest.param(Status(Code.ERROR, ("broken",)), Code.ERROR, "broken", id="an Error"),
        pytest.param(Status(Code.WAIT), Code.ERROR, "answered Wait", id="waits, which it may not"),
        pytest.param(OSError("gone"), Code.ERROR, "OSError: gone", id="raises"),
        pytest.param(True, Code.ERROR, "returned True", id="no status"),
    ],
)
def test_the_first_failure_ends_it_under_its_plugins_name(
    point: str, named: str, answer: Any, code: Code, said: str
) -> None:
    log: Calls = []
    late = answering("Late", log, pre_bind=None, bind=None, post_bind=None)
    outcome = ended(answering("A", **{point: answer}), late)
    status = outcome.status
    assert status is not None
    assert (status.code, status.plugin) == (code, "A")
    assert said in status.message
    if code is Code.ERROR:
        assert status.message.startswith(f'running {named} plugin "A": ')
    assert log == ([] if point == "pre_bind" else [("Late", "pre_bind")])


def test_a_skip_from_pre_bind_itself_is_an_error() -> None:
    """Whether there is something to prepare is asked before, in the preflight."""
    status = ended(answering("A", pre_bind=SKIP), binder("B")).status
    assert status is not None
    assert "answered Skip, which it may not" in status.message


def test_whose_preflight_skipped_is_left_out() -> None:
    log: Calls = []
    state = CycleState()
    state.skip_pre_bind_plugins.add("A")
    plugins = [answering("A", log, pre_bind=None), answering("B", log, pre_bind=None, bind=None)]
    assert ended(*plugins, state=state).status is None
    assert log == [("B", "pre_bind"), ("B", "bind")]


def test_what_post_bind_raises_is_a_remark() -> None:
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


def test_the_port_is_handed_to_those_who_write() -> None:
    port = Port()
    plugin = answering("A", bind=None)
    plugin.bind = lambda self, *args: binds(*args)
    assert ended(plugin, port=port).status is None
    assert port.bound == [("p", "n1")]
    failure = ended(plugin, port=Port(ConflictError("already bound"))).status
    assert failure is not None
    assert failure.message == 'running Bind plugin "A": ConflictError: already bound'


def test_its_points_are_timed() -> None:
    told: list[tuple[str, Code]] = []
    watch = Watch(
        lambda: 0.0, point=lambda point, code, _: lambda seconds: told.append((point, code))
    )
    framework = framework_of(answering("A", pre_bind=None, bind=unschedulable("no")), watch=watch)
    placed = pod("p", node="n1")
    cycle = BindingCycle(framework, CycleState(), placed, "n1", None, PodInPreBind())

    async def main() -> None:
        await cycle(Port(), start_task)

    asyncio.run(main())
    assert told == [("PreBind", Code.SUCCESS), ("Bind", Code.UNSCHEDULABLE)]


# ---- extenders -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Far:
    """An extender that binds."""

    name: str = "far"
    ignorable: bool = False
    verbs: frozenset[ExtenderVerb] = frozenset((ExtenderVerb.BIND,))
    weight: int = 1

    def is_interested(self, pod: PodInfo) -> bool:
        return True


def through(error: str, *, ignorable: bool = False) -> tuple[BindingOutcome, Calls]:
    """A binding that an extender is asked for, which answers so."""
    log: Calls = []

    async def ask(question: AskExtender) -> ExtenderAnswer:
        log.append((question.extender, "bind"))
        return ExtenderAnswer(error=error)

    extenders = Extenders((Far(ignorable=ignorable),))
    extenders.ask = ask
    asked = pod("p", node="n1")
    framework = framework_of(answering("A", log, pre_bind=None, bind=None, post_bind=None))
    binding = extenders.binding(asked)
    cycle = BindingCycle(framework, CycleState(), asked, "n1", binding, PodInPreBind())

    async def main() -> BindingOutcome:
        return await cycle(Port(), start_task)

    return asyncio.run(main()), log


def test_an_extender_binds_in_place_of_the_plugins() -> None:
    outcome, log = through("")
    assert outcome == BindingOutcome(UID, None)
    assert log == [("A", "pre_bind"), ("far", "bind"), ("A", "post_bind")]


def test_what_it_could_not_bind_nobody_binds() -> None:
    outcome, log = through("no licence")
    assert outcome.status == Status(Code.ERROR, ("no licence",))
    assert log == [("A", "pre_bind"), ("far", "bind")]


def test_unless_it_may_be_passed_over() -> None:
    outcome, log = through("no licence", ignorable=True)
    assert outcome.status is None
    assert log[1:] == [("far", "bind"), ("A", "bind"), ("A", "post_bind")]
