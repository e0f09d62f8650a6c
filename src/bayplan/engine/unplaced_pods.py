"""Pods without a node: what follows a cycle that chose none.

A cycle may stop for the call of an extender, and waits for its answer; each call has a token of its
own. If no node is feasible, PostFilter runs, and may start the deletion of victims. Then the
failure handler takes over. Upstream: schedule_one.go.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, final

from msgspec import Struct, field, structs

from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.core import SerialExecutor
from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Question
from bayplan.engine.extenders.round import ExtendersReview
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, FailureHandler, failure_by_error
from bayplan.engine.outbox import Outbox
from bayplan.engine.placements import AttemptBoundary
from bayplan.engine.schedule_one import CycleRunner
from bayplan.engine.sync_preemption import SyncPreemptions
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.plugin import Repetition
from bayplan.framework.preemption import EVICTING, REVIEW, PendingEvictions
from bayplan.framework.status import FitError, Status, is_rejected
from bayplan.framework.types import Nomination, QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.state.cache import ClusterView


class _PendingCall(Struct):
    cycle: Cycle
    question: Question
    #: The answers, one for each extender of the question, in the order of the question.
    tokens: list[int]
    answers: dict[int, ExtenderAnswer] = field(default_factory=dict[int, ExtenderAnswer])


class FailedAttempt(NamedTuple):
    """What an attempt without a node came to."""

    failure: Failure
    #: None: nobody reads the journal.
    record: AttemptRecord | None


@final
class PendingExtenderCalls:
    """The waiting cycles by token. A cycle waits until its last answer has come."""

    def __init__(self) -> None:
        self._calls: dict[int, _PendingCall] = {}
        self._cycle_count = 0
        self._next_token = 1

    def __len__(self) -> int:
        return self._cycle_count

    def add(self, cycle: Cycle, question: Question) -> list[AskExtender]:
        """Store the cycle; returns the calls to make."""
        first, count = self._next_token, len(question.extenders)
        pending = _PendingCall(cycle, question, list(range(first, first + count)))
        self._next_token += count
        self._cycle_count += 1
        self._calls |= dict.fromkeys(pending.tokens, pending)
        verb, names, victims = question.verb, question.node_names, question.victims
        return [
            AskExtender(token, extender.name, verb, cycle.pod, names, victims)
            for token, extender in zip(pending.tokens, question.extenders, strict=True)
        ]

    def answered(self, token: int, answer: ExtenderAnswer) -> tuple[Cycle, AnsweredQuestion] | None:
        """The cycle that has all its answers now; None: an answer is missing, or the token is
        unknown."""
        pending = self._calls.pop(token, None)
        if pending is None:
            return None
        pending.answers[token] = answer
        if len(pending.answers) < len(pending.tokens):
            return None
        self._cycle_count -= 1
        answers = tuple(pending.answers[each] for each in pending.tokens)
        return pending.cycle, AnsweredQuestion(pending.question, answers)


@final
class UnplacedPods:
    """Ends the attempts at pods whose cycle chose no node, or makes them wait."""

    def __init__(
        self,
        cluster: ClusterView,
        telemetry: Telemetry,
        executor: SerialExecutor,
        outbox: Outbox,
        *,
        runner: CycleRunner,
        failures: FailureHandler,
        end: CycleEnd,
        boundary: AttemptBoundary,
        begins: Callable[[QueuedPodInfo], None] | None,
    ) -> None:
        """``begins``: gets each pod of `repeat`, when the attempt at it begins."""
        self._begins = begins
        self._clock = telemetry.clock
        self._cluster = cluster
        self._outbox = outbox
        self._telemetry = telemetry
        self._extenders = runner.extenders
        self._failures = failures
        self._end = end
        self._boundary = boundary
        #: Takes how long a cycle took, in seconds.
        self.observe_seconds = telemetry.metrics.algorithm_duration.of()
        #: Cycles that wait for answers of extenders.
        self.pending_calls = PendingExtenderCalls()
        #: Attempts that wait for the deletion of their victims.
        self.evicting = SyncPreemptions(
            cluster,
            runner.nominator,
            executor,
            outbox,
            telemetry=telemetry,
            failures=failures,
            end=end,
            step=self._step,
        )

    def __len__(self) -> int:
        return len(self.pending_calls) + len(self.evicting)

    def call_extenders(self, cycle: Cycle, question: Question) -> None:
        """Store a cycle that stops for the call of an extender, and call it."""
        self._cluster.take_back()
        self._outbox.effects += self.pending_calls.add(cycle, question)

    def end(self, cycle: Cycle, status: Status) -> FailedAttempt | None:
        """End the attempt of a cycle that ended with this status. None: the attempt waits for an
        answer, or for evictions."""
        failure = self._failure(cycle, status)
        if isinstance(failure, Question):
            cycle.question = failure
            self.call_extenders(cycle, failure)
            return None
        if cycle.pod.node_name:
            # The pod counts on its node already, so it gets no nomination.
            failure = structs.replace(failure, nomination=None)
        evicting: PendingEvictions | None = cycle.state.get(EVICTING)
        if evicting is not None:
            self.evicting.hold(cycle, status, failure, evicting)
            return None
        self._measure(cycle)
        return self.fail(cycle, failure)

    def fail(self, cycle: Cycle, failure: Failure) -> FailedAttempt:
        """End the attempt with this failure."""
        status = failure.status
        result = "unschedulable" if is_rejected(status) else "error"
        record = self._end(cycle, result, status, failure.message, nomination=failure.nomination)
        self._failures.handle(cycle.queued, cycle.started_seconds, failure)
        return FailedAttempt(failure, record)

    def repetition(self, cycle: Cycle, failed: FailedAttempt) -> Repetition:
        """How long the attempts at equal pods fail as this one did."""
        nomination = failed.failure.nomination
        fails_alike = (
            failed.failure.is_rejected_by_plugins
            and (nomination is None or not nomination.node_name)
            and not self._end.is_observed
        )
        return cycle.framework.repetition(cycle.pod) if fails_alike else Repetition.NONE

    def repeat(
        self,
        failed: FailedAttempt,
        run: Sequence[QueuedPodInfo],
        seconds: float,
        begun: QueuedPodInfo,
    ) -> None:
        """End the attempts at equal pods as this one. ``seconds``: how long each took. ``begun``:
        the pod of the run, or before it, whose attempt has begun."""
        sinks, now = self._telemetry.journal.sinks, self._clock.now()
        for queued in run:
            if self._begins is not None and queued is not begun:
                self._begins(queued)
            if failed.record is not None:
                pod, attempt = queued.pod, queued.attempts
                record = structs.replace(
                    failed.record, at_seconds=now, pod=pod.key, uid=pod.uid, attempt=attempt
                )
                # As `Journal.write`, without a call for each pod.
                for sink in sinks:
                    sink.write(record)
        self._failures.handle_equal(run, seconds, failed.failure)

    def repeat_post_filter(self, cycle: Cycle) -> None:
        """Run PostFilter for a pod that `repeat` is called for next: its durations count."""
        cycle.framework.run_post_filter(cycle.state, cycle.pod, cycle.node_to_status())
        self._cluster.take_back()

    def _step(self, cycle: Cycle, step: Callable[[], None]) -> None:
        """Run the end of an attempt that waited for evictions."""
        self._measure(cycle)
        self._boundary.run_for_pod(cycle.queued, cycle.started_seconds, step)

    def _failure(self, cycle: Cycle, status: Status) -> Failure | Question:
        if not is_rejected(status):
            return failure_by_error(status, status.message)
        if not cycle.snapshot.node_count:
            return Failure(status, status.message, None, CLEAR_NOMINATION)
        fit_error = cycle.fit_error()
        nomination = self._post_filter(cycle, fit_error)
        if isinstance(nomination, Question):
            return nomination
        return Failure(status, fit_error.message, fit_error.diagnosis, nomination)

    def _measure(self, cycle: Cycle) -> None:
        self.observe_seconds(self._clock.now() - cycle.started_seconds)

    def _post_filter(self, cycle: Cycle, fit_error: FitError) -> Nomination | Question | None:
        """Run PostFilter: the new nomination, or the call of an extender that PostFilter needs. The
        messages of the plugins end the message of the pod."""
        framework, pod = cycle.framework, cycle.pod
        if not framework.plugins.post_filter:
            return CLEAR_NOMINATION
        node_to_status = cycle.node_to_status()
        fit_error.diagnosis.node_to_status = node_to_status
        review = self._review(cycle) if self._extenders else None
        nomination, status = framework.run_post_filter(cycle.state, pod, node_to_status)
        if review is not None:
            if review.question is not None:
                return review.question
            for text in review.passed_over:
                self._telemetry.note(pod.key, f"went on without {text}")
        if status is not None:
            fit_error.diagnosis.post_filter_msg = status.message
            fit_error.diagnosis.post_filter_code = status.code
        return nomination

    def _review(self, cycle: Cycle) -> ExtendersReview | None:
        """How extenders review the candidates of a preemption, which PostFilter finds in the state.
        None: no extender takes part for this pod."""
        extenders, state, nodes = self._extenders, cycle.state, cycle.snapshot.nodes
        if not extenders.interested(cycle.pod, ExtenderVerb.PREEMPT):
            return None
        review = state[REVIEW] = ExtendersReview(
            cycle.extender_round, extenders, cycle.pod, nodes, before=state.get(REVIEW)
        )
        return review
