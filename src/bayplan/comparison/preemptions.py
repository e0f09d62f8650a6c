"""How often pods made room for others."""

from collections.abc import Mapping
from typing import final

from bayplan.comparison.run_metric import RunMetric
from bayplan.journal import AttemptRecord, Record
from bayplan.sim.result import SimulationResult
from bayplan.state.pods import PodInfo

#: What a victim is told before it is deleted: its condition's type and reason, upstream's words.
_DISRUPTION_TARGET = "DisruptionTarget"
_BY_SCHEDULER = "PreemptionByScheduler"


@final
class Preemptions(RunMetric):
    """Attempts that ended with a node nominated, and the pods that had to go."""

    name = "preemptions"

    def __init__(self) -> None:
        self._count = 0
        self._victims: set[str] = set()

    def record(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.nominated_node:
            self._count += 1

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None and any(
            condition.type == _DISRUPTION_TARGET and condition.reason == _BY_SCHEDULER
            for condition in new.pod.status.conditions or ()
        ):
            self._victims.add(new.uid)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        return {
            "preemptions": float(self._count),
            "preemption_victims": float(len(self._victims)),
        }
