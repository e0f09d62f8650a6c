"""Attempts that end when their victims were told to go: gate SchedulerAsyncPreemption off.

PostFilter has decided, and what is left of the attempt waits for the API. Other pods are placed
meanwhile, which upstream's are not; so the room is kept from the decision on. If a victim could not
be told to go, a pod's nomination is what it was before. Groups wait here as well; who was not told
ends their attempt with an error. Upstream: actuatePodPreemption, actuatePodGroupPreemption.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import final

import msgspec

from bayplan.engine.attempt_record import CycleEnd
from bayplan.engine.core import EngineCore
from bayplan.engine.cycle import Cycle
from bayplan.engine.failures import Failure, FailureHandler
from bayplan.framework.preemption import Evicting
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord

#: Does a step of an attempt; see Placements.attempt.
Step = Callable[[Cycle, Callable[[], None]], None]


@final
class SyncPreemptions:
    """Attempts between PostFilter and their end."""

    def __init__(
        self, engine: EngineCore, failures: FailureHandler, end: CycleEnd, step: Step
    ) -> None:
        self._engine = engine
        self._failures = failures
        self._end = end
        self._step = step
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def wait(self, subject: str, evicting: Evicting, then: Callable[[str], None]) -> None:
        """Begin; ``then`` has a turn of its own, and is told what went wrong, "" for nothing."""
        engine = self._engine
        self._count += 1

        def done(problem: str) -> None:
            self._count -= 1
            then(problem)

        def ended(problem: str) -> None:
            engine.executor.run(subject, lambda: done(problem))
            engine.outbox.wake()

        evicting.start(ended)

    def hold(self, cycle: Cycle, status: Status, failure: Failure, evicting: Evicting) -> None:
        """``failure``: how it ends if all victims can be told to go."""
        engine, nomination = self._engine, failure.nomination
        message = failure.message
        record = self._end.observe(cycle, "unschedulable", status, message, nomination=nomination)
        engine.cluster.take_back()
        engine.nominator.add_nominated_pod(cycle.pod, nomination)

        def then(problem: str) -> None:
            self._step(cycle, partial(self._done, cycle, failure, record, problem))

        self.wait(cycle.pod.key, evicting, then)

    def _done(
        self, cycle: Cycle, failure: Failure, record: AttemptRecord | None, problem: str
    ) -> None:
        engine = self._engine
        if problem:
            failure = _failed(failure, problem)
        if record is not None:
            nominated = failure.nomination.node_name if failure.nomination is not None else ""
            at_seconds, message = engine.clock.now(), failure.message
            engine.telemetry.journal.write(
                msgspec.structs.replace(
                    record, at_seconds=at_seconds, message=message, nominated_node=nominated
                )
            )
        self._failures.handle(cycle.queued, cycle.started_seconds, failure)


def _failed(failure: Failure, problem: str) -> Failure:
    """No room was made: the problem ends the pod's message, and the nomination stays."""
    assert failure.diagnosis is not None
    before = failure.message.removesuffix(failure.diagnosis.post_filter_msg)
    return replace(failure, message=f"{before}{problem}", nomination=None)
