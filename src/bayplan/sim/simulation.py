"""One run = f(configuration, seed, workload): everything wired to virtual time.

The scheduler and its runner are those of a live cluster. Only the API server behind the port and
the clock differ.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol, final

from msgspec.structs import replace

from bayplan.adapters.embedded.api_features import api_features
from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import NODE, POD, Pod
from bayplan.clock import ManualClock, wall_seconds
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import for_cluster
from bayplan.engine.attempt_record import OnAttempt
from bayplan.engine.scheduler import Scheduler
from bayplan.history.entries import Entry
from bayplan.history.state_log import SimulatedStateLog
from bayplan.journal import DigestSink, Journal, Sink
from bayplan.lazy_loader import load
from bayplan.objects.keys import key_of
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.registry import Registry
from bayplan.ports import Ask
from bayplan.runner import Runner
from bayplan.sim.input.workload import ExpansionMode, Workload
from bayplan.sim.loop import run, running_loop, settled
from bayplan.sim.output.collectors import (
    AttemptCounts,
    group_results,
    reasons_to_wait,
    signature_results,
)
from bayplan.sim.output.lost_pods import LossLog, PodLog, is_gated_by_api
from bayplan.sim.output.pod_counts import PodEnd, PodResult, counts_of
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.world.checkers import (
    CapacityChecker,
    DeviceChecker,
    GangChecker,
    InvariantBroken,
    differences,
)
from bayplan.sim.world.driver import Driver
from bayplan.sim.world.occupancy import OCCUPANCY_KINDS, Occupancy
from bayplan.sim.world.retry_outlook import RetryOutlook

#: Called with (done, total) each time one more is done: a pod is created, or a run has ended.
OnProgress = Callable[[int, int], None]


@final
class Simulation:
    """One run of one workload. Use it once."""

    def __init__(
        self,
        workload: Workload,
        config: SchedulerConfig,
        registry: Registry,
        *,
        seed: int = 0,
        on_attempt: OnAttempt | None = None,
        put_entry: Callable[[Entry], None] | None = None,
    ) -> None:
        """``put_entry``: stores the entries of the log of states; None: there is no log.

        Raises ConfigError, also when a plugin cannot start."""
        self.workload = workload
        #: In the version of the cluster, unless the configuration names one.
        config, self._version_note = for_cluster(config, workload.reported)
        self._extenders = _extenders(config)
        self._seed = seed
        self._clock = ManualClock()
        self._state_log = None if put_entry is None else SimulatedStateLog(put_entry, self._clock)
        self._digest = DigestSink()
        self._attempts = AttemptCounts()
        self._retry_outlook = RetryOutlook(self._clock)
        self._journal = Journal([self._digest, self._attempts, self._retry_outlook])
        self.scheduler = Scheduler(
            config,
            registry,
            self._clock,
            seed=seed,
            journal=self._journal,
            on_attempt=on_attempt,
            state_log=self._state_log,
            raise_bugs=True,
        )
        self.gangs = GangChecker(self.scheduler)
        self.cluster = EmbeddedCluster(
            self._clock,
            self.scheduler.declared_fields,
            pod_gc=workload.pod_gc,
            admission=workload.admission,
            features=api_features(config.gates),
        )
        self._pods = PodLog(self._clock)
        self._occupancy = Occupancy()
        once = workload.expansion is ExpansionMode.ONCE
        self._losses = LossLog(_follower_names(workload) if once else ())
        self.cluster.observe(self._pods.observe, ignored_kinds=(EVENT,))
        self.cluster.observe(
            self._losses.observe, ignored_kinds=(EVENT,), ignored_changes=(PodChange.IS_BOUND,)
        )
        self.cluster.observe(
            self._occupancy.observe, OCCUPANCY_KINDS, ignored_changes=(PodChange.ARRIVES,)
        )
        self.cluster.observe(DeviceChecker().observe, (RESOURCE_CLAIM,))
        if _respects_resources(self.scheduler, config):
            checker = CapacityChecker(self.cluster, self._occupancy)
            self.cluster.observe(checker.observe, (POD,), ignored_changes=(PodChange.ARRIVES,))
        self._retry_outlook.follow(self.cluster)
        #: Until the run begins: None.
        self._runner: Runner | None = None
        self._driver = Driver(
            workload,
            self.cluster,
            self._clock,
            settle=settled,
            only_retries_wait=self._waits_in_vain,
            on_end=self._losses.end,
            arrive=self._arrive,
        )

    def _arrive(self, steps: Iterator[object]) -> bool:
        return self._runner is not None and self._runner.arrive(steps)

    def _waits_in_vain(self) -> bool:
        if self.scheduler.only_retries_wait and not self._retry_outlook.retry_may_succeed(
            self.scheduler
        ):
            return True
        return self._retry_outlook.retries_are_futile(self.scheduler)

    def keep_journal(self, sink: Sink) -> None:
        """Write the journal to a further sink, too."""
        self._journal.add(sink)

    def on_progress(self, tell: OnProgress) -> None:
        """Call ``tell``, too, each time a pod is created."""
        progress = _Progress(self.workload.pod_count, tell)
        self.cluster.observe(progress.observe, (POD,), ignored_changes=(PodChange.IS_BOUND,))

    def run(self) -> SimulationResult:
        """Play the workload to its end. An invariant that breaks, or a bug of ours, raises."""
        start = wall_seconds()
        if self._state_log is not None:
            self._state_log.begin(self.scheduler, self.cluster)
        try:
            if self._extenders is None:
                run(self._main({}), self._clock)
            else:
                self._extenders.run(self._main, self._clock, self.cluster)
        finally:
            self.scheduler.close()
        return self._result(wall_seconds() - start)

    async def _main(self, asks: Mapping[str, Ask]) -> None:
        runner = Runner(self.scheduler, self.cluster, asks, turns=running_loop().turns)
        self._runner = runner
        running = asyncio.get_running_loop().create_task(runner.run(), name="scheduler")
        await self._driver.play()
        wrong = differences(self.scheduler, self.cluster)
        if wrong:
            # A Bind plugin that reports a success without a binding is one cause.
            raise InvariantBroken(f"cache and API differ at the end: {'; '.join(wrong[:5])}")
        running.cancel()

    # ---- the result -----------------------------------------------------------------------

    def _result(self, seconds: float) -> SimulationResult:
        reasons = reasons_to_wait(self.scheduler)
        pods = {
            name: self._with_end(
                result, pod, result.message if result.node else self._message(result, pod, reasons)
            )
            for name, (pod, result) in self._pods.last_results(self._attempts.by_uid).items()
        }
        earlier_pods = {
            name: tuple(self._with_end(result, pod, result.message) for pod, result in entries)
            for name, entries in self._pods.earlier_results(self._attempts.by_uid).items()
        }
        lost = self._losses.lost()
        counts = counts_of(
            chain(pods.values(), *earlier_pods.values()),
            completed=len(self.workload.ended_pods),
            not_recreated=sum(one.count for one in lost if one.workload),
        )
        return SimulationResult(
            nodes=len(self.cluster.objects(NODE)),
            counts=counts,
            placements={
                name: pod.node
                for name, pod in pods.items()
                if pod.end is PodEnd.PLACED and pod.bound_at is not None and pod.node is not None
            },
            unschedulable={
                name: pod.message or "" for name, pod in pods.items() if pod.end is PodEnd.WAITING
            },
            pods=pods,
            earlier_pods=earlier_pods,
            seed=self._seed,
            digest=self._digest.digest,
            simulated_seconds=self._clock.now(),
            wall_seconds=seconds,
            attempts=self._attempts.by_uid.total(),
            usage=self._occupancy.usage(),
            node_usage=self._occupancy.node_usage(),
            pod_groups=group_results(self.scheduler),
            signatures=signature_results(self.scheduler),
            lost=lost,
            ignored_kinds=self.workload.ignored_kinds,
            failures=self._attempts.failures(),
            notes=(
                *self.workload.all_notes(self._driver.further_count),
                *self._driver.refused,
                *filter(None, (self._version_note,)),
            ),
        )

    def _with_end(self, result: PodResult, pod: Pod, message: str | None) -> PodResult:
        """The result with what became of the pod."""
        end = self._losses.end_of(
            pod,
            is_deleted=result.deleted_at is not None,
            is_ours=self.scheduler.is_responsible_for(pod.spec.scheduler_name),
        )
        is_replaced = pod.metadata.uid in self._losses.replaced_uids and not end.is_there
        return replace(result, message=message, end=end, replaced=is_replaced)

    def _message(
        self, result: PodResult, pod: Pod, reasons_to_wait: Mapping[str, str]
    ) -> str | None:
        """``reasons_to_wait``: by uid, for pods without a message in their status."""
        uid = pod.metadata.uid or ""
        if not result.message and uid in reasons_to_wait:
            return reasons_to_wait[uid]
        queued = self.scheduler.queue.find(uid)
        if queued is None or not queued.gated or is_gated_by_api(pod):
            return result.message
        # Upstream writes no condition for a pod that PreEnqueue holds back.
        return f"held back at PreEnqueue by plugin {queued.gating_plugin}: {queued.gating_message}"


def _follower_names(workload: Workload) -> frozenset[str]:
    keys = (key_of(pod) for pods in workload.followers.values() for pod in pods)
    return frozenset(f"{key.namespace}/{key.name}" for key in keys)


def _respects_resources(scheduler: Scheduler, config: SchedulerConfig) -> bool:
    """Whether the Filter of each profile checks all resources: then a full node is a bug."""
    for profile in config.spec.profiles:
        plugins = scheduler.framework(profile.scheduler_name or "").plugins
        fits = [p for p in plugins.filter if isinstance(p, NodeResourcesFit)]
        if not fits or any(
            p.args.ignored_resources or p.args.ignored_resource_groups for p in fits
        ):
            return False
    return True


class _Extenders(Protocol):
    """See bayplan.sim.world.real_time_bridge."""

    def run(
        self,
        main: Callable[[Mapping[str, Ask]], Coroutine[Any, Any, None]],
        clock: ManualClock,
        cluster: EmbeddedCluster,
    ) -> None: ...


def _extenders(config: SchedulerConfig) -> _Extenders | None:
    """The extenders of a configuration; None: there are none. Raises ConfigError."""
    entries = config.spec.extenders
    if not entries:
        return None
    # Loading an HTTP client takes time; only simulations with extenders need one.
    return load("bayplan.sim.world.real_time_bridge:RealTimeExtenders")(entries)


@final
class _Progress:
    """An observer: the number of the workload's pods that have been created."""

    def __init__(self, pod_count: int, tell: OnProgress) -> None:
        self._pod_count = pod_count
        self._tell = tell
        self._seen = 0

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if before is None and after is not None and isinstance(after.object, Pod):
            self._seen += 1
            if self._seen > self._pod_count:  # controllers create more pods than expected
                self._pod_count = self._seen
            self._tell(self._seen, self._pod_count)
