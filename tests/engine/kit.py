"""A scheduler without a shell: tests pass events, and read or perform effects.

engine = Engine(plugins=["NodeResourcesFit"])
engine.add(node("n1", cpu=4), api_pod("p", cpu=1))
assert engine.bound() == {"p": "n1"}
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, Journal, MemorySink, NoteRecord
from bayplan.plugins.registry import Registry
from bayplan.ports import (
    AskExtender,
    BindPod,
    Effect,
    EmitEvent,
    EventType,
    ExtenderAnswer,
    PatchPodStatus,
    WatchEvent,
)
from bayplan.queue.entry import State
from bayplan.testing import api_pod, node
from tests.framework.answering import answering
from tests.kit.extenders import FakeExtender
from tests.kit.ports import RecordingPort
from tests.scenarios.world import PROFILE, Setup, config_dict

E = TypeVar("E")


def uid(name: str) -> str:
    """The uid that the factories derive from a name."""
    return f"uid-default/{name}"


def waiting_pod(name: str = "p", **options: Any) -> Pod:
    """A pod of the engine's profile."""
    options.setdefault("scheduler_name", PROFILE)
    return api_pod(name, **options)


class Engine:
    """``options``: those of tests.scenarios.world.Setup."""

    def __init__(self, **options: Any) -> None:
        setup = Setup(**options)
        registry = Registry()
        for each in setup.classes:
            registry.add(each)
        self.clock = ManualClock()
        self.journal = MemorySink()
        self.scheduler = Scheduler(
            config_from(config_dict(setup), kubernetes=setup.kubernetes),
            registry,
            self.clock,
            seed=setup.seed,
            journal=Journal([self.journal]),
            extenders=setup.extenders,
            raise_bugs=setup.raise_bugs,
        )

    # ---- events in ------------------------------------------------------------------------

    def add(self, *objects: Node | Pod) -> None:
        self._tell(EventType.ADDED, objects)

    def update(self, *objects: Node | Pod) -> None:
        self._tell(EventType.MODIFIED, objects)

    def delete(self, *objects: Node | Pod) -> None:
        self._tell(EventType.DELETED, objects)

    def _tell(self, kind: EventType, objects: tuple[Node | Pod, ...]) -> None:
        for each in objects:
            what = POD if isinstance(each, Pod) else NODE
            self.scheduler.handle(WatchEvent(kind, what, each))

    def put(self, kind: str, content: dict[str, Any], event: EventType = EventType.ADDED) -> None:
        """Add an object of any other kind from a manifest."""
        self.scheduler.handle(WatchEvent(event, kind, decode(kind, content)))

    def until(self, seconds: float) -> None:
        """Advance the clock and run what is due."""
        self.clock.advance_to(seconds)
        self.scheduler.run_timers()

    # ---- effects out ----------------------------------------------------------------------

    def run(self) -> list[Effect]:
        """Try all pods that are ready. Returns the effects."""
        while self.scheduler.schedule_one():
            pass
        return self.scheduler.take_effects()

    def run_for(self, expected: type[E]) -> list[E]:
        """Like `run`, with effects of one type only."""
        return [effect for effect in self.run() if isinstance(effect, expected)]

    def bound(self) -> dict[str, str]:
        """Pod → node of the bindings among the effects."""
        return {effect.pod.name: effect.node_name for effect in self.run_for(BindPod)}

    def notes(self) -> list[str]:
        """Notes of the events about pods."""
        return [effect.note for effect in self.run_for(EmitEvent)]

    def patches(self) -> list[PatchPodStatus]:
        return self.run_for(PatchPodStatus)

    def finish(self, name: str, failure: Status | None = None) -> None:
        """Report the end of a pod's binding."""
        self.scheduler.binding_finished(BindingOutcome(uid(name), failure))

    # ---- looking in -----------------------------------------------------------------------

    def plugin(self, name: str) -> Any:
        instances = self.scheduler.framework(PROFILE).plugins.instances()
        return next(each for each in instances if each.instance_name == name)

    def state_of(self, name: str) -> State:
        return self.scheduler.queue.state_of(uid(name))

    def blamed(self, name: str) -> frozenset[str]:
        queued = self.scheduler.queue.find(uid(name))
        assert queued is not None
        return queued.unschedulable_plugins

    def placed_on(self, name: str) -> str:
        """The node on which the pod counts; "" for none."""
        pod = self.scheduler.cache.pod(uid(name))
        return "" if pod is None else pod.node_name

    def nominated_on(self, name: str) -> list[str]:
        nominator = self.plugin("PrioritySort").handle.nominator
        return [pods.name for pods in nominator.nominated_pods_for_node(name)]

    def attempts(self, name: str = "p") -> list[AttemptRecord]:
        records = self.journal.records
        key = f"default/{name}"
        return [r for r in records if isinstance(r, AttemptRecord) and r.pod == key]

    def texts(self) -> list[str]:
        """Texts of the notes in the journal."""
        return [r.text for r in self.journal.records if isinstance(r, NoteRecord)]

    def metric(self, name: str, **labels: str) -> float:
        return self.scheduler.metrics.value(name, **labels)


class TaskWork:
    """ports.Work as a task."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()

    async def wait(self) -> None:
        await asyncio.wait([self._task])


def start_task(work: Coroutine[Any, Any, None]) -> TaskWork:
    """ports.StartWork."""
    return TaskWork(asyncio.get_running_loop().create_task(work))


async def no_extenders(question: AskExtender) -> ExtenderAnswer:
    """ports.Ask without extenders."""
    raise AssertionError(f"no extender {question.extender}")


def performed(effect: BindPod, port: RecordingPort | None = None) -> BindingOutcome:
    """Run a binding cycle and return its status."""

    async def main() -> BindingOutcome:
        return await effect.run(port or RecordingPort(), start_task, no_extenders)

    return asyncio.run(main())


#: An extender for pods with its label.
Far = partial(FakeExtender, selects=lambda pod: "far" in pod.labels)
FAR: dict[str, Any] = {"labels": {"far": "yes"}}


def engine_with(**answers: Any) -> Engine:
    """An engine with one node and one plugin, A, that gives these answers."""
    plugin = answering("A", **{"events_to_register": [], **answers})
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"))
    return engine


def reuse_of(engine: Engine) -> ResultCache:
    return engine.scheduler.reuse(PROFILE)
