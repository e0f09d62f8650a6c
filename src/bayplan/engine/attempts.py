"""Attempts: from a popped pod to an effect.

A cycle that chose a node goes on: assume, Reserve, Permit, and the binding cycle as an effect. One
that did not goes through PostFilter to the failure handler. Upstream: schedule_one.go.
"""

from collections.abc import Callable, Sequence
from typing import final

from bayplan.engine.attempt_record import attempt_record
from bayplan.engine.binding import BindingCycle, BindingOutcome
from bayplan.engine.cycle import Cycle, CycleRunner, Extender, ExtenderAnswer, Question
from bayplan.engine.engine_state import EngineState
from bayplan.engine.failures import CLEAR_NOMINATION, FailureHandler
from bayplan.engine.waiting import HeldPod
from bayplan.framework.events import EVENT_ASSIGNED_POD_DELETE
from bayplan.framework.interface import (
    CycleState,
    Nomination,
    QueuedPodInfo,
)
from bayplan.framework.status import (
    Code,
    Diagnosis,
    FitError,
    NodeToStatus,
    Status,
    is_rejected,
    is_skip,
    is_success,
)
from bayplan.journal import BindingRecord
from bayplan.ports import AskExtender, BindPod, PatchPodStatus
from bayplan.rng import stream
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot

#: Which attempts record durations per plugin; upstream: pluginMetricsSamplePercent.
_METRICS_SAMPLE = 0.1

OnAttempt = Callable[[Cycle], None]


class Placed:
    """A pod between its cycle and the end of its binding."""

    __slots__ = ("node_name", "pod", "queued", "state")

    def __init__(self, queued: QueuedPodInfo, pod: PodInfo, state: CycleState) -> None:
        self.queued = queued
        self.pod = pod
        self.node_name = pod.node_name
        self.state = state


@final
class Attempts:
    """Runs attempts and what follows from them. One at a time, never waiting."""

    def __init__(
        self,
        engine: EngineState,
        extenders: Sequence[Extender] = (),
        on_attempt: OnAttempt | None = None,
    ) -> None:
        self._engine = engine
        self._failures = FailureHandler(engine)
        self._runner = CycleRunner(engine.nominator, engine.seed, extenders)
        self._on_attempt = on_attempt
        self._metrics_sample = stream(engine.seed, "plugin-metrics")
        self.lent: Snapshot | None = None
        self._placed: dict[str, Placed] = {}
        self._parked: dict[int, Cycle] = {}
        self._next_token = 1

    @property
    def unfinished_count(self) -> int:
        """Pods at Permit, at an extender or in a binding cycle."""
        return len(self._placed) + len(self._parked)

    # ---- the cycle ------------------------------------------------------------------------

    def start(self, queued: QueuedPodInfo) -> None:
        """One attempt at one pod that was popped."""
        framework = self._engine.frameworks[queued.pod.scheduler_name]
        self.lent = self._engine.cache.lend()
        cycle = Cycle(queued, framework, self.lent)
        cycle.state.record_plugin_metrics = self._metrics_sample.random() < _METRICS_SAMPLE
        try:
            self._go_on(cycle, self._runner.run(cycle))
        finally:
            self._take_back()

    def resume(self, token: int, answer: ExtenderAnswer) -> None:
        """Take a parked cycle up again; a token nobody waits for is ignored."""
        cycle = self._parked.pop(token, None)
        if cycle is None:
            return
        if cycle.pod.uid not in self._engine.known:
            self._engine.queue.done(cycle.pod.uid)
            return
        self.lent = self._engine.cache.lend()
        try:
            self._go_on(cycle, self._runner.resume(cycle, self.lent, answer))
        finally:
            self._take_back()

    def _go_on(self, cycle: Cycle, question: Question | None) -> None:
        if question is not None:
            token, self._next_token = self._next_token, self._next_token + 1
            self._parked[token] = cycle
            name = question.extender.name
            ask = AskExtender(token, name, "filter", cycle.pod, question.node_names)
            self._engine.effects.append(ask)
        elif cycle.choice is None:
            self._no_node(cycle)
        else:
            self._place(cycle, cycle.choice.node_name)

    def _take_back(self) -> None:
        if self.lent is not None:
            self.lent.end()
            self.lent = None

    # ---- a node was chosen ----------------------------------------------------------------

    def _place(self, cycle: Cycle, node_name: str) -> None:
        engine, framework = self._engine, cycle.framework
        pod = cycle.pod.on_node(node_name)
        engine.cache.assume(pod)
        engine.nominator.delete_nominated_pod_if_exists(pod)
        placed = self._placed[pod.uid] = Placed(cycle.queued, pod, cycle.state)
        status = framework.run_reserve(cycle.state, pod, node_name)
        waits: dict[str, float] = {}
        if is_success(status):
            status, waits = framework.run_permit(cycle.state, pod, node_name)
        if not is_success(status) and not waits:
            assert status is not None
            self._record(cycle, _result_of(status), status.message)
            self._give_back(placed)
            self._fail_placed(placed, status)
            return
        self._record(cycle, "waiting" if waits else "scheduled", "")
        self._activate(cycle.state)
        if waits:
            self._hold(placed, waits)
        else:
            self._bind(placed)

    def _hold(self, placed: Placed, waits: dict[str, float]) -> None:
        self._expect_node(placed)
        now = self._engine.clock.now()
        held = HeldPod(placed.pod, placed.node_name, now, dict(waits), self._wait_ended)
        self._engine.waiting.hold(held)

    def _wait_ended(self, held: HeldPod, status: Status | None) -> None:
        engine = self._engine
        engine.waiting.leave(held.pod.uid)
        waited = engine.clock.now() - held.since_seconds
        result = str(status.code if status is not None else Code.SUCCESS)
        engine.metrics.permit_wait_duration.labels(result).observe(waited)
        placed = self._placed[held.pod.uid]
        if status is None:
            self._bind(placed)
        else:
            self._binding_failed(placed, status)

    def _bind(self, placed: Placed) -> None:
        """Hand the binding cycle out; failures from here on are errors, not rejections."""
        engine, pod = self._engine, placed.pod
        engine.queue.done(pod.uid)
        plugins = engine.frameworks[pod.scheduler_name].plugins
        for plugin in plugins.pre_bind:
            if is_skip(plugin.pre_bind_preflight(placed.state, pod, placed.node_name)):
                placed.state.skip_pre_bind_plugins.add(plugin.instance_name)
        if len(placed.state.skip_pre_bind_plugins) < len(plugins.pre_bind):
            self._expect_node(placed)
        run = BindingCycle(plugins, placed.state, pod, placed.node_name)
        engine.effects.append(BindPod(pod, placed.node_name, run))

    def _expect_node(self, placed: Placed) -> None:
        """KEP-5278: what will take a while is announced in status.nominatedNodeName."""
        pod = placed.pod
        if pod.nominated_node_name == placed.node_name:
            return
        self._engine.effects.append(
            PatchPodStatus(pod.namespace, pod.name, pod.uid, None, placed.node_name)
        )

    # ---- the binding ended ----------------------------------------------------------------

    def binding_finished(self, outcome: BindingOutcome) -> None:
        placed = self._placed.get(outcome.uid)
        assert placed is not None, f"no binding under way for uid {outcome.uid}"
        for remark in outcome.remarks:
            self._engine.note(placed.pod.key, remark.message)
        if outcome.status is not None:
            self._binding_failed(placed, outcome.status)
            return
        del self._placed[outcome.uid]
        self._bound(placed)

    def _bound(self, placed: Placed) -> None:
        engine, pod, queued = self._engine, placed.pod, placed.queued
        now = engine.clock.now()
        since = queued.initial_attempt_seconds
        engine.metrics.attempt("scheduled", pod.scheduler_name)
        engine.metrics.scheduled(queued.attempts, now - (now if since is None else since))
        note = f"Successfully assigned {pod.key} to {placed.node_name}"
        engine.emit(pod.scheduler_name, pod, "Normal", "Scheduled", "Binding", note)
        self._record_binding(placed, "bound", "")
        self._activate(placed.state)

    def _binding_failed(self, placed: Placed, status: Status) -> None:
        """Upstream: handleBindingCycleError."""
        engine, pod = self._engine, placed.pod
        self._record_binding(placed, "failed", status.message)
        self._give_back(placed)
        rejected = is_rejected(status)
        if not rejected:
            engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None)
        self._fail_placed(placed, status)
        if rejected:
            others = _other_than(pod.uid)
            engine.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod, None, others)

    def _give_back(self, placed: Placed) -> None:
        """Unreserve and forget: the node's columns are as before."""
        del self._placed[placed.pod.uid]
        framework = self._engine.frameworks[placed.pod.scheduler_name]
        for failure in framework.run_unreserve(placed.state, placed.pod, placed.node_name):
            self._engine.note(placed.pod.key, failure.message)
        self._engine.cache.forget(placed.pod)

    def _fail_placed(self, placed: Placed, status: Status) -> None:
        """Reserve, Permit or a step of the binding said no."""
        if not is_rejected(status):
            self._failures.handle(placed.queued, status, status.message, None, CLEAR_NOMINATION)
            return
        diagnosis = Diagnosis(NodeToStatus({placed.node_name: status}))
        diagnosis.add_plugin_status(status)
        message = FitError(placed.pod.key, 1, diagnosis).message
        self._failures.handle(placed.queued, status, message, diagnosis, CLEAR_NOMINATION)

    def fail_by_bug(self, queued: QueuedPodInfo, problem: Exception) -> None:
        """A bug of ours ended an attempt, wherever it was: give everything back, try again."""
        placed = self._placed.get(queued.pod.uid)
        if placed is not None:
            self._engine.waiting.leave(queued.pod.uid)
            self._give_back(placed)
        text = f"bug in the scheduler: {type(problem).__name__}: {problem}"
        self._failures.handle(queued, Status(Code.ERROR, (text,)), text, None, None)

    def give_up(self, pod: PodInfo) -> None:
        """A pod was deleted while it waited at Permit."""
        held = self._engine.waiting.get(pod.uid)
        if held is not None:
            held.reject("", "the pod was deleted")

    # ---- no node was found ----------------------------------------------------------------

    def _no_node(self, cycle: Cycle) -> None:
        status = cycle.status
        assert status is not None
        if not is_rejected(status):
            self._record(cycle, "error", status.message)
            self._failures.handle(cycle.queued, status, status.message, None, None)
            return
        if not cycle.snapshot.node_count:
            self._record(cycle, "unschedulable", status.message)
            self._failures.handle(cycle.queued, status, status.message, None, CLEAR_NOMINATION)
            return
        fit_error = cycle.fit_error()
        nomination = self._post_filter(cycle, fit_error)
        message = fit_error.message
        self._record(cycle, "unschedulable", message, nomination)
        self._failures.handle(cycle.queued, status, message, fit_error.diagnosis, nomination)

    def _post_filter(self, cycle: Cycle, fit_error: FitError) -> Nomination | None:
        framework = cycle.framework
        if not framework.plugins.post_filter:
            return None
        node_to_status = cycle.node_to_status()
        fit_error.diagnosis.node_to_status = node_to_status
        nomination, status = framework.run_post_filter(cycle.state, cycle.pod, node_to_status)
        if status is not None:
            fit_error.diagnosis.post_filter_msg = status.message
        return nomination

    # ---- inside ---------------------------------------------------------------------------

    def _activate(self, state: CycleState) -> None:
        if state.pods_to_activate:
            pods = list(state.pods_to_activate.values())
            state.pods_to_activate.clear()
            self._engine.queue.activate(pods)

    def _record(
        self, cycle: Cycle, result: str, message: str, nomination: Nomination | None = None
    ) -> None:
        if self._on_attempt is not None:
            self._on_attempt(cycle)
        engine = self._engine
        if engine.journal.is_kept:
            node = nomination.node_name if nomination is not None else ""
            at_seconds = engine.clock.now()
            engine.journal.write(attempt_record(cycle, at_seconds, result, message, node))

    def _record_binding(self, placed: Placed, result: str, message: str) -> None:
        pod = placed.pod
        self._engine.journal.write(
            BindingRecord(
                at_seconds=self._engine.clock.now(),
                pod=pod.key,
                uid=pod.uid,
                node=placed.node_name,
                result=result,
                message=message,
            )
        )


def _result_of(status: Status) -> str:
    return "unschedulable" if is_rejected(status) else "error"


def _other_than(uid: str) -> Callable[[PodInfo], bool]:
    return lambda pod: pod.uid != uid
