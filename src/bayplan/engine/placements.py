"""From a chosen node to a bound pod: assume, Reserve, Permit, and the binding cycle as an effect.

A pod is *placed* from the end of its cycle to the end of its binding. It counts on its node. After
any failure the pod gives everything back: Unreserve, forget, requeue. Upstream: schedule_one.go,
prepareForBindingCycle, bindingCycle and handleBindingCycleError.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ParamSpec, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bayplan.api.device_objects import ResourceClaim
from bayplan.config.feature_gates import FeatureGates
from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.binding import BindingCycle, BindingOutcome, PodInPreBind
from bayplan.engine.core import GroupController, SerialExecutor
from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import Extenders
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, FailureHandler, failure_by_error
from bayplan.engine.outbox import Outbox
from bayplan.engine.telemetry import Telemetry
from bayplan.engine.waiting import PodWaitingOnPermit, WaitingPods
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    UPDATE,
    ClusterEvent,
    EventResource,
)
from bayplan.framework.runtime import Framework, goes_straight_to_bind
from bayplan.framework.status import (
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    code_of,
    is_rejected,
    is_skip,
    is_success,
)
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import BUG_PREFIX, AttemptRecord, BindingRecord
from bayplan.ports import BindPod
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import TOGETHER_MIN, ClusterView
from bayplan.state.pods import PodInfo

_CLAIM_UPDATE = ClusterEvent(EventResource.RESOURCE_CLAIM, UPDATE)


P = ParamSpec("P")


class PlacedPod(Struct):
    """A pod between its cycle and the end of its binding."""

    queued: QueuedPodInfo
    framework: Framework
    #: The pod as it is on its node.
    pod: PodInfo
    state: CycleState
    started_seconds: float
    #: Whether a PreBind plugin has something to do.
    needs_pre_bind: bool = False

    @property
    def node_name(self) -> str:
        return self.pod.node_name


@final
class AttemptBoundary:
    """Where a bug of the scheduler ends: the attempt fails, and no pod is lost.

    Each step of an attempt at a pod, or at the pods of a group, runs inside this boundary.
    """

    def __init__(
        self,
        cluster: ClusterView,
        telemetry: Telemetry,
        failures: FailureHandler,
        drop: Callable[[PodInfo], None],
    ) -> None:
        """``drop``: gives back everything that a pod holds."""
        self._cluster = cluster
        self._telemetry = telemetry
        self._failures = failures
        self._drop = drop

    def run_for_pod(
        self,
        queued: QueuedPodInfo,
        started_seconds: float,
        step: Callable[P, None],
        *args: P.args,
        **options: P.kwargs,
    ) -> None:
        """Run a step of an attempt at one pod."""
        try:
            step(*args, **options)
        except Exception as problem:  # noqa: BLE001 - see `run`
            self.fail_for_pods((queued,), started_seconds, problem)

    def fail_for_pods(
        self, pods: Sequence[QueuedPodInfo], started_seconds: float, problem: Exception
    ) -> None:
        """End a step of an attempt at one pod, or at pods of a run, that raised an exception.
        Callers that each pod passes through catch the exception themselves, and call this."""
        failure = self._failure(pods[0].pod.key, pods, problem)
        for queued in pods:
            self._failures.handle(queued, started_seconds, failure)

    def run(
        self,
        subject: str,
        queued: Iterable[QueuedPodInfo],
        step: Callable[[], None],
        fail: Callable[[Failure], None],
    ) -> None:
        """Run a step of an attempt at these pods. If it raises an exception, the pods give back
        everything that they hold, and ``fail`` ends the attempt; where bugs end the run, the
        exception does."""
        try:
            step()
        except Exception as problem:  # noqa: BLE001 - the boundary of an attempt: no pod is lost
            fail(self._failure(subject, queued, problem))

    def _failure(
        self, subject: str, queued: Iterable[QueuedPodInfo], problem: Exception
    ) -> Failure:
        """Report the bug, and drop what the pods hold."""
        self._cluster.take_back()
        self._telemetry.bug(subject, problem)
        for each in queued:
            self._drop(each.pod)
        text = f"{BUG_PREFIX}: {type(problem).__name__}: {problem}"
        return failure_by_error(Status(Code.ERROR, (text,)), text)


@final
class PermitWaits:
    """The waits of pods, and of members of groups, whose Permit plugins returned Wait."""

    def __init__(
        self,
        waiting: WaitingPods,
        executor: SerialExecutor,
        telemetry: Telemetry,
        outbox: Outbox,
    ) -> None:
        self.waiting = waiting
        self._executor = executor
        self._clock = telemetry.clock
        self._metrics = telemetry.metrics
        self._outbox = outbox

    def hold(
        self,
        placed: PlacedPod,
        waits: Mapping[str, float],
        *,
        boundary: Callable[[Callable[[], None]], None],
        then: Callable[[Status | None], None],
    ) -> None:
        """``waits``: instance → seconds. ``then`` runs after the work during which the wait ends,
        inside ``boundary``: with None if all instances allowed the pod, else with the rejection."""

        def ended(waiting_pod: PodWaitingOnPermit, status: Status | None) -> None:
            def go_on() -> None:
                waited_seconds = self._clock.now() - waiting_pod.since_seconds
                self._metrics.permit_wait_duration.observe(waited_seconds, code_of(status))
                then(status)

            self.waiting.leave(waiting_pod.pod.uid)
            self._executor.run(waiting_pod.pod.key, partial(boundary, go_on))
            self._outbox.wake()

        now = self._clock.now()
        self.waiting.hold(PodWaitingOnPermit(placed.pod, placed.node_name, now, dict(waits), ended))


@final
class Placements:
    """Pods on their way to a node."""

    def __init__(
        self,
        cluster: ClusterView,
        queue: SchedulingQueue,
        nominator: Nominator,
        outbox: Outbox,
        *,
        telemetry: Telemetry,
        gates: FeatureGates,
        extenders: Extenders,
        group_controller: GroupController,
        permit_waits: PermitWaits,
        pods_in_pre_bind: dict[str, PodInPreBind],
        failures: FailureHandler,
        end: CycleEnd,
        begins: Callable[[QueuedPodInfo], None] | None,
    ) -> None:
        """``begins``: gets each pod of a run but the first, when the attempt at it begins."""
        self._begins = begins
        self._clock = telemetry.clock
        self._cluster = cluster
        self._group_controller = group_controller
        self._metrics = telemetry.metrics
        self._nominator = nominator
        self._outbox = outbox
        self._pods_in_pre_bind = pods_in_pre_bind
        self._queue = queue
        self._telemetry = telemetry
        #: Whether the node that a pod waits for is written before the wait (KEP-5278).
        self._nominates = gates.enabled("NominatedNodeNameForExpectation")
        self._failures = failures
        self._end = end
        #: Only this class writes.
        self.by_uid: dict[str, PlacedPod] = {}
        #: The log of what attempts depend on. None: there is none.
        self._extenders = extenders or None
        self.boundary = AttemptBoundary(cluster, telemetry, failures, self.drop)
        self.permit_waits = permit_waits

    def __len__(self) -> int:
        return len(self.by_uid)

    # ---- the end of the cycle -------------------------------------------------------------

    def place(self, cycle: Cycle, node_name: str) -> None:
        """Place the pod of a cycle that chose a node."""
        framework = cycle.framework
        pod = cycle.pod_on(node_name)
        placed = PlacedPod(cycle.queued, framework, pod, cycle.state, cycle.started_seconds)
        self.by_uid[pod.uid] = placed
        # A pod may wait for a long time: its cache entry may leave in the meantime.
        cycle.state.cached_results = None
        self._cluster.assume(pod)
        self._nominator.delete_nominated_pod_if_exists(pod)
        if goes_straight_to_bind(framework, framework.calls(cycle.state, pod)):
            self._end(cycle, "scheduled")
            self._activate(placed)
            self._bind(placed)
            return
        status = framework.run_reserve(cycle.state, pod, node_name)
        waits: dict[str, float] = {}
        if is_success(status):
            status, waits = framework.run_permit(cycle.state, pod, node_name)
        if status is None or waits:
            who = f"waits at Permit for {', '.join(sorted(waits))}" if waits else ""
            self._end(cycle, "waiting" if waits else "scheduled", message=who)
            self._activate(placed)
            self._begin_binding(placed, waits)
        else:
            self._end(cycle, _result_of(status), status, status.message)
            self.give_back(placed)
            self._fail(placed, _failure_at_permit(placed, status))

    def place_straight(self, run: Sequence[PlacedPod], records: Iterable[AttemptRecord]) -> None:
        """Place the pods of a run. Their nodes were chosen without a cycle, no plugin takes part
        before Bind, and the binding is one request. The pods are in no group, and no pod is
        nominated. The attempt at the first pod has begun."""
        cache, journal, effects = self._cluster.cache, self._telemetry.journal, self._outbox.effects
        ended = list[QueuedPodInfo]()
        for placed in run:
            self.by_uid[placed.pod.uid] = placed
            ended.append(placed.queued)
        if len(run) < TOGETHER_MIN:
            for placed in run:
                cache.assume(placed.pod)
        else:
            cache.assume_all([placed.pod for placed in run])
        for placed, record in zip(run, records, strict=False):
            if self._begins is not None and placed is not run[0]:
                self._begins(placed.queued)
            # As `Journal.write`, without a call for each pod.
            for sink in journal.sinks:
                sink.write(record)
        self._queue.done_all(ended)
        for placed in run:
            pod = placed.pod
            binding = BindingCycle(
                placed.framework, placed.state, pod, pod.node_name, is_one_request=True
            )
            effects.append(BindPod(pod, pod.node_name, binding))

    def adopt(self, cycle: Cycle, pod: PodInfo) -> PlacedPod:
        """Take over a member of a group, which is assumed and reserved already."""
        placed = PlacedPod(cycle.queued, cycle.framework, pod, cycle.state, cycle.started_seconds)
        self.by_uid[pod.uid] = placed
        self._nominator.delete_nominated_pod_if_exists(pod)
        return placed

    def go_on(self, placed: PlacedPod) -> None:
        """Go on after Permit: every plugin allows this pod and all other members of its group."""
        self._activate(placed)
        self._begin_binding(placed, {})

    def _begin_binding(self, placed: PlacedPod, waits: dict[str, float]) -> None:
        """Begin the wait at Permit or the binding."""
        node_name = placed.node_name
        status = placed.framework.run_pre_bind_pre_flights(placed.state, placed.pod, node_name)
        if not is_success(status) and not is_skip(status):
            assert status is not None
            self._binding_failed(placed, _failure(status))
            return
        placed.needs_pre_bind = not is_skip(status)
        if self._nominates and (waits or placed.needs_pre_bind):
            current = self._cluster.pods.get(placed.pod.uid, placed.pod)
            self._outbox.patch_status(current, None, node_name)
        if waits:
            self.permit_waits.hold(
                placed,
                waits,
                boundary=partial(self.boundary.run_for_pod, placed.queued, placed.started_seconds),
                then=partial(self._after_wait, placed),
            )
        else:
            self._bind(placed)

    def _bind(self, placed: PlacedPod) -> None:
        """Emit the binding cycle as an effect. Failures from here on are errors, not rejections."""
        pod = placed.pod
        self._queue.done(pod.uid)
        extenders = self._extenders
        binding = None if extenders is None else extenders.binding(pod)
        in_pre_bind: PodInPreBind | None = None
        if placed.needs_pre_bind:
            in_pre_bind = PodInPreBind()
            self._pods_in_pre_bind[pod.uid] = in_pre_bind
        placed.state.cached_results = None
        run = BindingCycle(
            placed.framework,
            placed.state,
            pod,
            pod.node_name,
            extender_binding=binding,
            in_pre_bind=in_pre_bind,
            is_one_request=(
                binding is None and in_pre_bind is None and placed.framework.binds_with_one_request
            ),
        )
        self._outbox.effects.append(BindPod(pod, pod.node_name, run))

    # ---- Permit ---------------------------------------------------------------------------

    def _after_wait(self, placed: PlacedPod, status: Status | None) -> None:
        if self.by_uid.get(placed.pod.uid) is not placed:
            # A bug in another step gave the pod back before this one ran.
            return
        if status is None:
            self._bind(placed)
        else:
            self._binding_failed(placed, _failure_at_permit(placed, status))

    def give_up(self, pod: PodInfo, why: str) -> bool:
        """Reject a placed pod at Permit, because it is being deleted or another program bound it.
        False: it is not at Permit."""
        if pod.uid not in self.by_uid:
            return False
        waiting_pod = self.permit_waits.waiting.get(pod.uid)
        if waiting_pod is not None:
            waiting_pod.reject("", why)
        return waiting_pod is not None

    # ---- the binding ended ----------------------------------------------------------------

    def binding_finished(self, outcome: BindingOutcome) -> None:
        placed = self.by_uid.get(outcome.uid)
        if placed is None:
            # A bug gave the pod back; the watch will say where the pod is.
            self._telemetry.note(outcome.uid, "a binding ended that was given up")
            return
        try:
            for remark in outcome.remarks:
                self._telemetry.plugin_failed(placed.pod.key, remark.plugin, remark.message)
            if outcome.status is not None:
                self._binding_failed(placed, _failure(outcome.status))
                return
            # The pod is bound.
            pod, queued, profile = placed.pod, placed.queued, placed.framework.profile_name
            del self.by_uid[pod.uid]
            if placed.needs_pre_bind:
                del self._pods_in_pre_bind[pod.uid]
            now = self._clock.now()
            since = queued.initial_attempt_seconds
            self._metrics.attempt("scheduled", profile, now - placed.started_seconds)
            self._metrics.scheduled(queued.attempts, now - (now if since is None else since))
            if queued.was_flushed:
                self._metrics.pod_scheduled_after_flush.add()
            note = f"Successfully assigned {pod.key} to {pod.node_name}"
            self._outbox.emit(profile, pod, "Normal", "Scheduled", "Binding", note)
            if self._telemetry.journal.is_recording:
                node, result = pod.node_name, "bound"
                record = BindingRecord(
                    at_seconds=now, pod=pod.key, uid=pod.uid, node=node, result=result
                )
                # As `Journal.write`, without a call for each pod.
                for sink in self._telemetry.journal.sinks:
                    sink.write(record)
            if placed.state.pods_to_activate:
                self._activate(placed)
        except Exception as problem:  # noqa: BLE001 - see `AttemptBoundary`
            self.boundary.fail_for_pods((placed.queued,), placed.started_seconds, problem)

    def _binding_failed(self, placed: PlacedPod, failure: Failure) -> None:
        """End a binding that failed. Upstream: handleBindingCycleError."""
        pod, claims = placed.pod, self._cluster.devices.resource_claims
        self._record_failed(placed, failure)
        before = claims.in_flight
        self.give_back(placed)
        after = claims.in_flight
        free = [claim for uid, claim in before.items() if uid not in after]
        rejected = is_rejected(failure.status)
        if not rejected:
            _wake_by_release(self._queue, pod, free)
        self._fail(placed, failure)
        if rejected:
            # The pod left its node, which does not help the pod itself.
            _wake_by_release(self._queue, pod, free, _other_than(pod.uid))

    # ---- giving back ----------------------------------------------------------------------

    def give_back(self, placed: PlacedPod) -> None:
        """Unreserve and forget: the node's columns are as before."""
        pod = placed.pod
        self._leave(pod.uid)
        for failure in placed.framework.run_unreserve(placed.state, pod, placed.node_name):
            self._telemetry.plugin_failed(pod.key, failure.plugin, failure.message)
        self._cluster.forget(pod)

    def _fail(self, placed: PlacedPod, failure: Failure) -> None:
        """Fail an attempt because Reserve, Permit or a step of the binding failed."""
        # The members of a group wait for this pod: it is tried again at once.
        at_once = placed.pod.group_key is not None and not placed.queued.consecutive_errors_count
        if at_once and not is_rejected(failure.status):
            self._metrics.group_members_retried.add()
            failure = replace(failure, at_once=True)
        self._failures.handle(placed.queued, placed.started_seconds, failure)
        if placed.pod.group_key is not None:
            self._group_controller.changed_by([placed.pod])

    # ---- bugs ---------------------------------------------------------------------

    def drop(self, pod: PodInfo) -> None:
        placed = self.by_uid.get(pod.uid)
        if placed is None:
            return
        try:
            self.permit_waits.waiting.leave(pod.uid)
            self.give_back(placed)
        except Exception as problem:  # noqa: BLE001 - what it held may be lost, the pod is not
            self._telemetry.bug(pod.key, problem)

    # ---- inside ---------------------------------------------------------------------------

    def _leave(self, uid: str) -> None:
        del self.by_uid[uid]
        self._pods_in_pre_bind.pop(uid, None)

    def _activate(self, placed: PlacedPod) -> None:
        """Try the pods that plugins of this cycle want activated."""
        stash = placed.state.pods_to_activate
        if stash:
            pods = list(stash.values())
            stash.clear()
            self._queue.activate(pods)

    def _record_failed(self, placed: PlacedPod, failure: Failure) -> None:
        pod = placed.pod
        if not self._telemetry.journal.is_recording:
            return
        record = BindingRecord(
            at_seconds=self._clock.now(),
            pod=pod.key,
            uid=pod.uid,
            node=pod.node_name,
            result="failed",
            message=failure.message,
            plugin=failure.status.plugin,
            code=str(failure.status.code),
            is_rejected=failure.diagnosis is not None,
        )
        self._telemetry.journal.write(record)


def _failure_at_permit(placed: PlacedPod, status: Status) -> Failure:
    """The failure for a result of Reserve or Permit. A rejection means that the chosen node does
    not fit."""
    if not is_rejected(status):
        return _failure(status)
    diagnosis = Diagnosis(NodeToStatus({placed.node_name: status}))
    diagnosis.add_plugin_status(status)
    message = FitError(placed.pod.key, 1, diagnosis).message
    return Failure(status, message, diagnosis, CLEAR_NOMINATION)


def _failure(status: Status) -> Failure:
    """The failure for a result after Permit. No plugin is registered as its cause: the pod is tried
    again after a backoff."""
    return Failure(status, status.message, None, CLEAR_NOMINATION)


def _result_of(status: Status) -> str:
    return "unschedulable" if is_rejected(status) else "error"


def _other_than(uid: str) -> Callable[[PodInfo], bool]:
    return lambda pod: pod.uid != uid


def _wake_by_release(
    queue: SchedulingQueue,
    pod: PodInfo,
    claims: Iterable[ResourceClaim],
    pre_check: Callable[[PodInfo], bool] | None = None,
) -> None:
    """Send the queue the events of a pod that left its node, and of claims that do not get the
    devices that were allocated in memory. The API server never had these placements and
    allocations, so no watch brings an event."""
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None, pre_check)
    for claim in claims:
        status = msgspec.structs.replace(claim.status, allocation=None)
        without = msgspec.structs.replace(claim, status=status)
        queue.move_all(_CLAIM_UPDATE, claim, without, pre_check)
