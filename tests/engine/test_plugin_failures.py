"""An exception of a plugin, anywhere and of any type, fails its pod's attempt and nothing else."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from bayplan.config import ConfigError
from bayplan.framework.events import QueueingHint
from bayplan.framework.status import Code, unschedulable
from bayplan.plugins.registry import Registry
from bayplan.ports import BindPod, Perform
from bayplan.testing import node
from tests.engine.kit import Engine, no_extenders, performed, start_task, waiting_pod
from tests.framework.answering import answering
from tests.kit.ports import RecordingPort


class Outrage(BaseException):
    """Derived from BaseException, like the exceptions of pytest and trio."""


RAISED = [
    pytest.param(ValueError("boom"), id="Exception"),
    pytest.param(SystemExit(7), id="sys.exit"),
    pytest.param(Outrage("boom"), id="BaseException"),
    pytest.param(asyncio.CancelledError(), id="a cancellation without a request"),
    pytest.param(GeneratorExit(), id="GeneratorExit"),
]

#: Extension point → answers that lead the attempt to it.
POINTS: dict[str, dict[str, Any]] = {
    "pre_filter": {},
    "filter": {},
    "filter_node": {},
    "post_filter": {"filter_node": unschedulable("no")},
    "pre_score": {"score_node": 1},
    "score": {},
    "score_node": {},
    "normalize": {"score_node": 1},
    "reserve": {},
    "permit": {},
    "pre_bind_preflight": {"pre_bind": None},
}


@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize("point", POINTS)
def test_an_exception_in_a_cycle_fails_the_attempt_and_names_the_plugin(
    point: str, raised: BaseException
) -> None:
    plugin = answering("A", **{point: raised}, **POINTS[point])
    scores = "score_node" in vars(plugin) or "score" in vars(plugin)
    engine = Engine(plugins=[("A", 1) if scores else "A"], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod())
    (note,) = engine.notes()
    assert 'plugin "A"' in note
    assert type(raised).__name__ in note
    assert engine.metric(
        "scheduler_schedule_attempts_total", result="error", profile="bayplan"
    ) == (
        # As in upstream, PostFilter's failure ends the message of a pod that was rejected before.
        0 if point == "post_filter" else 1
    )


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
@pytest.mark.parametrize("raised", [each for each in RAISED if each.id != "GeneratorExit"])
def test_an_exception_in_a_binding_fails_the_binding(point: str, raised: BaseException) -> None:
    answers = {"bind": None, point: raised}
    engine = Engine(plugins=["A"], classes=[answering("A", **answers)], binders=[])
    engine.add(node("n1"), waiting_pod())
    (effect,) = engine.run_for(BindPod)
    outcome = performed(effect)
    (status,) = outcome.remarks if point == "post_bind" else [outcome.status]
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")
    assert type(raised).__name__ in status.message


async def test_a_binding_cancelled_from_outside_is_cancelled() -> None:
    async def waits(*_: Any) -> None:
        await asyncio.get_running_loop().create_future()

    plugin = answering("A", bind=None)
    plugin.bind = lambda self, *args: waits(*args)
    engine = Engine(plugins=["A"], classes=[plugin], binders=[])
    engine.add(node("n1"), waiting_pod())
    (effect,) = engine.run_for(BindPod)
    task = asyncio.ensure_future(effect.run(RecordingPort(), start_task, no_extenders))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_ctrl_c_in_a_plugin_ends_the_run() -> None:
    engine = Engine(plugins=[("A", 1)], classes=[answering("A", score_node=KeyboardInterrupt())])
    engine.add(node("n1"), node("n2"), waiting_pod())
    with pytest.raises(KeyboardInterrupt):
        engine.run()


@pytest.mark.parametrize("raised", RAISED)
def test_an_exception_outside_of_an_attempt_is_noted(raised: BaseException) -> None:
    def fails(*_: Any) -> QueueingHint:
        raise raised

    plugin = answering("A", unreserve=raised, reserve=unschedulable("no"), close=raised)
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    engine.scheduler.close()
    assert sum(type(raised).__name__ in text for text in engine.texts()) == 2
    assert engine.metric("bayplan_plugin_failures_total", plugin="A") == 2


@pytest.mark.parametrize("raised", RAISED)
def test_an_exception_in_concerns_fails_the_attempts_at_such_pods(raised: BaseException) -> None:
    def concerns(self: Any, shape: Any) -> bool:
        raise raised

    engine = Engine(plugins=[("A", 1)], classes=[answering("A", score_node=1, concerns=concerns)])
    engine.add(node("n1"), node("n2"), waiting_pod())
    engine.run()
    (record,) = engine.attempts()
    assert (record.result, record.plugin) == ("error", "A")
    assert type(raised).__name__ in record.message


@pytest.mark.parametrize("raised", [each for each in RAISED if each.id != "GeneratorExit"])
def test_an_exception_in_a_write_of_a_plugin_is_noted(raised: BaseException) -> None:
    async def write(port: Any) -> None:
        raise raised

    engine = Engine(plugins=[("A", 1)], classes=[answering("A", score_node=1)])
    engine.plugin("A").handle.perform("default/p", write)
    (effect,) = engine.run_for(Perform)
    asyncio.run(effect.run(RecordingPort()))
    assert any('plugin "A"' in text for text in engine.texts())
    assert engine.metric("bayplan_plugin_failures_total", plugin="A") == 1


def test_a_plugin_that_exits_during_setup_is_named() -> None:
    def setup(self: Any) -> None:
        sys.exit(7)

    with pytest.raises(ConfigError, match="plugin A cannot start: SystemExit: 7"):
        Engine(plugins=[("A", 1)], classes=[answering("A", score_node=1, setup=setup)])


def test_a_plugin_file_that_exits_is_named(tmp_path: Path) -> None:
    file = tmp_path / "policy.py"
    file.write_text("import sys\nsys.exit(7)\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"policy\.py.*line 2: SystemExit: 7"):
        Registry().load_file(file)


@pytest.mark.parametrize("mapping", ["labels", "annotations", "requests"])
def test_a_plugin_that_mutates_its_arguments_gets_advice_to_copy(mapping: str) -> None:
    def changes(state: Any, pod_info: Any, info: Any) -> None:
        getattr(pod_info, mapping)["x"] = "y"

    engine = Engine(plugins=["A"], classes=[answering("A", filter_node=changes)])
    pod = waiting_pod("p", cpu=1, labels={"a": "b"}, annotations={"a": "b"})
    engine.add(node("n1"), pod)
    (note,) = engine.notes()
    assert 'running Filter plugin "A"' in note
    assert "read-only; change a copy" in note
