"""One measured run of the engine: from the queue's pop to the bind effect, nothing behind it."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from bayplan.api.objects import NAMESPACE, NODE, POD, decode
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, EventType, WatchEvent
from benchmarks import shapes
from benchmarks.shapes import Shape


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured."""

    shape: Shape
    #: When each attempt ended, in seconds from the start.
    ends: Sequence[float]
    #: The node of each pod that found one, in order.
    node_names: Sequence[str]

    @property
    def attempts(self) -> int:
        return len(self.ends)

    @property
    def bound(self) -> int:
        return len(self.node_names)

    @property
    def rate(self) -> float:
        """Pods (attempts) per second."""
        return self.attempts / self.ends[-1]

    def micros(self, percentile: float) -> float:
        """What an attempt took."""
        return float(np.percentile(np.diff(self.ends, prepend=0.0), percentile)) * 1e6

    def nodes_used(self, bound: int) -> int:
        """How many nodes the first so many pods went to: what speed must not be paid with."""
        return len(set(self.node_names[:bound]))

    @property
    def problem(self) -> str:
        """Empty where as many pods found a node as must."""
        return problem_of(self.shape, self.attempts, self.bound)


def problem_of(shape: Shape, attempts: int, bound: int) -> str:
    """What is wrong with a measurement: it should be one of successes, and not of no work."""
    expected = shape.expected_bound(attempts)
    if not attempts:
        return "nothing was scheduled"
    return "" if bound == expected else f"{bound:,} of {attempts:,} bound, expected {expected:,}"


def loaded(shape: Shape) -> Scheduler:
    """A scheduler that knows the shape's cluster and has its pods queued."""
    scheduler = Scheduler(SchedulerConfig(), default_registry(), ManualClock(), raise_bugs=True)

    def add(kind: str, content: dict[str, Any]) -> None:
        scheduler.handle(WatchEvent(EventType.ADDED, kind, decode(kind, content)))

    for namespace in ("sched-0", "sched-1"):
        add(NAMESPACE, {"metadata": {"name": namespace}})
    for found in shapes.nodes(shape):
        add(NODE, found)
    for found in shapes.init_pods(shape):
        add(POD, found)
    for found in shapes.pods(shape):
        add(POD, found)
    return scheduler


def run(shape: Shape, limit_seconds: float) -> Run:
    """Schedule until the pods or the time are used up."""
    scheduler = loaded(shape)
    gc.collect()
    gc.freeze()
    try:
        return _measured(shape, scheduler, limit_seconds)
    finally:
        gc.unfreeze()


def _measured(shape: Shape, scheduler: Scheduler, limit_seconds: float) -> Run:
    ends: list[float] = []
    node_names: list[str] = []
    start, end = perf_counter(), 0.0
    while end < limit_seconds and scheduler.schedule_one():
        node_names += [e.node_name for e in scheduler.take_effects() if isinstance(e, BindPod)]
        end = perf_counter() - start
        ends.append(end)
    return Run(shape, ends, node_names)
