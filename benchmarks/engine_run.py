"""One measured run of the engine: from the queue's pop to the bind effect, nothing behind it."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from bayplan.api.objects import NAMESPACE, NODE, POD, decode
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.schema import API_VERSION, KIND
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
    #: What it took to hand one pod's event over, on the average.
    event_seconds: float

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

    @property
    def rate_from_event(self) -> float:
        """The same, with the time it took to hand the pods' events over."""
        return self.attempts / (self.ends[-1] + self.attempts * self.event_seconds)

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


def config_of(shape: Shape, *, reuse: bool = True) -> SchedulerConfig:
    """The default profile, but for what the shape leaves out."""
    args = {"defaultingType": "List" if shape.no_spread else "System"}
    return config_from(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "featureGates": {"OpportunisticBatching": reuse},
            "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
        }
    )


def added(kind: str, content: dict[str, Any]) -> WatchEvent:
    return WatchEvent(EventType.ADDED, kind, decode(kind, content))


def with_cluster(shape: Shape, *, reuse: bool = True) -> Scheduler:
    """A scheduler that knows the shape's cluster."""
    config = config_of(shape, reuse=reuse)
    scheduler = Scheduler(config, default_registry(), ManualClock(), raise_bugs=True)
    for namespace in ("sched-0", "sched-1"):
        scheduler.handle(added(NAMESPACE, {"metadata": {"name": namespace}}))
    for found in shapes.nodes(shape):
        scheduler.handle(added(NODE, found))
    for found in shapes.init_pods(shape):
        scheduler.handle(added(POD, found))
    return scheduler


def loaded(shape: Shape, *, reuse: bool = True) -> Scheduler:
    """The same with the shape's pods queued."""
    scheduler = with_cluster(shape, reuse=reuse)
    for found in shapes.pods(shape):
        scheduler.handle(added(POD, found))
    return scheduler


def run(shape: Shape, limit_seconds: float, *, reuse: bool = True) -> Run:
    """Schedule until the pods or the time are used up."""
    scheduler = with_cluster(shape, reuse=reuse)
    events = [added(POD, found) for found in shapes.pods(shape)]
    gc.collect()
    gc.freeze()
    try:
        return _measured(shape, scheduler, events, limit_seconds)
    finally:
        gc.unfreeze()


def _measured(
    shape: Shape, scheduler: Scheduler, events: Sequence[WatchEvent], limit_seconds: float
) -> Run:
    start = perf_counter()
    for event in events:
        scheduler.handle(event)
    event_seconds = (perf_counter() - start) / len(events)
    ends: list[float] = []
    node_names: list[str] = []
    start, end = perf_counter(), 0.0
    while end < limit_seconds and scheduler.schedule_one():
        node_names += [e.node_name for e in scheduler.take_effects() if isinstance(e, BindPod)]
        end = perf_counter() - start
        ends.append(end)
    return Run(shape, ends, node_names, event_seconds)
