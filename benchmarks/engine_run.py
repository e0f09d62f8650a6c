"""One measured run of the engine: from the queue's pop to the bind effect, nothing behind it."""

import gc
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from bayplan.config import default_config
from bayplan.plugins.registry import default_registry

from bayplan.api.objects import NAMESPACE, NODE, POD, decode
from bayplan.clock import ManualClock
from bayplan.engine.scheduler import Scheduler
from bayplan.ports import BindPod, EventType, WatchEvent
from benchmarks import shapes
from benchmarks.shapes import Shape


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured."""

    attempts: int
    bound: int
    seconds: float

    @property
    def rate(self) -> float:
        """Pods (attempts) per second."""
        return self.attempts / self.seconds


def loaded(shape: Shape, pod_count: int) -> Scheduler:
    """A scheduler that knows the shape's cluster and has its pods queued."""
    scheduler = Scheduler(default_config(), default_registry(), ManualClock(), raise_bugs=True)

    def add(kind: str, content: dict[str, Any]) -> None:
        scheduler.handle(WatchEvent(EventType.ADDED, kind, decode(kind, content)))

    for namespace in ("sched-0", "sched-1"):
        add(NAMESPACE, {"metadata": {"name": namespace}})
    for found in shapes.nodes(shape):
        add(NODE, found)
    for found in shapes.init_pods(shape):
        add(POD, found)
    for found in shapes.pods(shape, pod_count):
        add(POD, found)
    return scheduler


def run(shape: Shape, pod_count: int, limit_seconds: float) -> Run:
    """Schedule until the pods or the time are used up."""
    scheduler = loaded(shape, pod_count)
    gc.collect()
    gc.freeze()
    attempts = bound = 0
    start = perf_counter()
    end = start + limit_seconds
    while perf_counter() < end and scheduler.schedule_one():
        attempts += 1
        bound += sum(isinstance(effect, BindPod) for effect in scheduler.take_effects())
    seconds = perf_counter() - start
    gc.unfreeze()
    assert attempts, "nothing was scheduled, so nothing was measured"
    return Run(attempts, bound, seconds)
