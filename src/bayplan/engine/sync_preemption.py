"""Attempts that end after the deletion of their victims: gate SchedulerAsyncPreemption off.

After PostFilter, the attempt waits for the API server. Bayplan places other pods meanwhile;
upstream does not. The nomination therefore counts from the decision of PostFilter. If the deletion
of a victim fails, the pod gets its previous nomination back, and a group's attempt ends with an
error. Upstream: actuatePodPreemption, actuatePodGroupPreemption.
"""

from collections.abc import Callable
from functools import partial
from typing import final

import msgspec
from msgspec.structs import replace

from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.core import SerialExecutor
from bayplan.engine.cycle import Cycle
from bayplan.engine.failures import Failure, FailureHandler
from bayplan.engine.outbox import Outbox
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.preemption import PendingEvictions
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord
from bayplan.queue.nominator import Nominator
from bayplan.state.cache import ClusterView

#: Runs a step of an attempt; see `AttemptBoundary`.
Step = Callable[[Cycle, Callable[[], None]], None]


@final
class SyncPreemptions:
    """Attempts between PostFilter and their end."""

    def __init__(
        self,
        cluster: ClusterView,
        nominator: Nominator,
        executor: SerialExecutor,
        outbox: Outbox,
        *,
        telemetry: Telemetry,
        failures: FailureHandler,
        end: CycleEnd,
        step: Step,
    ) -> None:
        self._clock = telemetry.clock
        self._cluster = cluster
        self._nominator = nominator
        self._executor = executor
        self._outbox = outbox
        self._telemetry = telemetry
        self._failures = failures
        self._end = end
        self._step = step
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def wait(self, subject: str, evicting: PendingEvictions, then: Callable[[str], None]) -> None:
        """Start the deletions. ``then`` runs at the end, with the problem, or "" for success."""
        self._count += 1

        def done(problem: str) -> None:
            self._count -= 1
            then(problem)

        def ended(problem: str) -> None:
            self._executor.run(subject, lambda: done(problem))
            self._outbox.wake()

        evicting.start(ended)

    def hold(
        self, cycle: Cycle, status: Status, failure: Failure, evicting: PendingEvictions
    ) -> None:
        """``failure``: the result of the attempt if all deletions succeed."""
        nomination = failure.nomination
        message = failure.message
        record = self._end.observe(cycle, "unschedulable", status, message, nomination=nomination)
        self._cluster.take_back()
        self._nominator.add_nominated_pod(cycle.pod, nomination)

        def then(problem: str) -> None:
            self._step(cycle, partial(self._done, cycle, failure, record, problem))

        self.wait(cycle.pod.key, evicting, then)

    def _done(
        self, cycle: Cycle, failure: Failure, record: AttemptRecord | None, problem: str
    ) -> None:
        if problem:
            failure = _failed(failure, problem)
        if record is not None:
            nominated = failure.nomination.node_name if failure.nomination is not None else ""
            at_seconds, message = self._clock.now(), failure.message
            self._telemetry.journal.write(
                msgspec.structs.replace(
                    record, at_seconds=at_seconds, message=message, nominated_node=nominated
                )
            )
        self._failures.handle(cycle.queued, cycle.started_seconds, failure)


def _failed(failure: Failure, problem: str) -> Failure:
    """End an attempt after a failed deletion. The message of the pod ends with the problem, and the
    nomination stays."""
    assert failure.diagnosis is not None
    before = failure.message.removesuffix(failure.diagnosis.post_filter_msg)
    return replace(failure, message=f"{before}{problem}", nomination=None)
