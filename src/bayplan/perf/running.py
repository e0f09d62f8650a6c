"""Runs one workload: a scheduler on an embedded cluster, as in a simulation, in real time.

Engine, runner and API server are those of `bayplan simulate`; only the clock differs. Under virtual
time nothing takes time, so only a real clock can measure the scheduler.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from bayplan.adapters.embedded.api_features import api_features
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import NODE, POD
from bayplan.clock import Clock
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import Journal, MemorySink
from bayplan.metrics import SchedulerMetrics
from bayplan.perf.data_items import Measurement
from bayplan.perf.operations import Operations
from bayplan.perf.planning import Plan
from bayplan.perf.world import WorkloadFailed, World
from bayplan.plugins.registry import Registry
from bayplan.runner import Runner

TIMEOUT_SECONDS = 600.0
#: The number of changes that the embedded API server keeps for watches. The largest workload makes
#: fewer changes before the scheduler runs, so no watch must list again.
_HISTORY_LENGTH = 500_000
#: Records in memory, as in `bayplan run`: recording is a part of what is measured.
_RECORDS_MAX = 4000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOutcome:
    """The outcome of a workload."""

    name: str
    nodes: int
    pods: int
    measured: tuple[Measurement, ...] = ()
    threshold: float = 0.0
    #: Why the workload failed before its end; "": it did not.
    failure: str = ""
    #: Attempts that failed by an error, and how often each plugin failed.
    error_count: int = 0
    plugin_failures: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def has_failed(self) -> bool:
        """Whether the workload failed before its end, or an attempt failed with an error."""
        return bool(self.failure or self.error_count or self.plugin_failures)


@final
class WorkloadRun:
    """One run of one plan. Use it once, on a loop whose time is ``clock``'s."""

    def __init__(
        self,
        plan: Plan,
        registry: Registry,
        clock: Clock,
        *,
        seed: int = 0,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Starts the plugins. Raises ConfigError."""
        self._plan = plan
        self._scheduler = Scheduler(
            plan.config,
            registry,
            clock,
            seed=seed,
            journal=Journal([MemorySink(_RECORDS_MAX)]),
            raise_bugs=True,
        )
        declared = self._scheduler.declared_fields
        self._cluster = EmbeddedCluster(
            clock,
            declared,
            _HISTORY_LENGTH,
            features=api_features(plan.config.gates),
        )
        self._world = World(self._scheduler, self._cluster, clock, timeout_seconds)
        self._operations = Operations(plan, self._world, self._fail)
        self._background_failure: BaseException | None = None

    async def play(self) -> WorkloadOutcome:
        """Perform all operations. A bug of Bayplan raises."""
        loop = asyncio.get_running_loop()
        running = loop.create_task(Runner(self._scheduler, self._cluster).run(), name="scheduler")
        working = loop.create_task(self._operations.perform(), name="operations")
        try:
            await asyncio.wait((running, working), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            failure = await _failure_of(working)
        finally:
            for task in (working, running):
                task.cancel()
            await asyncio.gather(working, running, return_exceptions=True)
            await self._world.end()
            self._scheduler.close()
        if self._background_failure is not None:
            raise self._background_failure
        return self._outcome(failure)

    def _fail(self, problem: BaseException) -> None:
        self._background_failure = problem

    def _outcome(self, failure: str) -> WorkloadOutcome:
        threshold = self._plan.workload.threshold
        return WorkloadOutcome(
            name=self._plan.name,
            nodes=len(self._cluster.objects(NODE)),
            pods=len(self._cluster.objects(POD)),
            measured=tuple(self._operations.measured),
            threshold=threshold if isinstance(threshold, int | float) else 0.0,
            failure=failure,
            error_count=_error_count(self._scheduler.metrics),
            plugin_failures=_plugin_failures(self._scheduler.metrics),
        )


def _error_count(metrics: SchedulerMetrics) -> int:
    attempts = metrics.schedule_attempts.counts()
    return sum(count for (result, _profile), count in attempts.items() if result == "error")


def _plugin_failures(metrics: SchedulerMetrics) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for tally in (metrics.plugin_failures, metrics.hint_failures):
        for (plugin,), count in tally.counts().items():
            counts[str(plugin)] += count
    return counts


async def _failure_of(working: "asyncio.Task[None]") -> str:
    try:
        await working
    except WorkloadFailed as problem:
        return str(problem)
    return ""
