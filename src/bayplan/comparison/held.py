"""What pods held while they waited: nodes that nobody else could use, and they did not yet."""

from collections import defaultdict
from collections.abc import Mapping
from typing import final

from bayplan.api.objects import Node
from bayplan.api.pod_requests import PODS
from bayplan.comparison.run_metric import RunMetric
from bayplan.journal import AttemptRecord, BindingRecord, Record
from bayplan.sim.result import SimulationResult
from bayplan.state.pods import PodInfo

SECONDS_PER_HOUR = 3600.0
CPU = "cpu"
MILLI_PER_CPU = 1000
_BYTES = ("memory", "ephemeral-storage")


@final
class Held(RunMetric):
    """Resource-hours from the moment a pod was made to wait at Permit, with its node, to the moment
    it was bound or gave the node back. Of cpu, and of all that is counted in pieces."""

    name = "held"

    def __init__(self) -> None:
        self._requests: dict[str, Mapping[str, int]] = {}
        #: Since when, by uid.
        self._waiting: dict[str, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._resources: set[str] = set()

    def node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._resources.update(new.status.allocatable or ())

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None:
            self._requests[new.uid] = new.requests

    def record(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result == "waiting":
            self._waiting[record.uid] = record.at_seconds
        elif isinstance(record, BindingRecord):
            self._end(record.uid, record.at_seconds)

    def _end(self, uid: str, at_seconds: float) -> None:
        since_seconds = self._waiting.pop(uid, at_seconds)
        for resource, amount in self._requests.get(uid, {}).items():
            self._seconds[resource] += amount * (at_seconds - since_seconds)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        for uid in list(self._waiting):
            self._end(uid, result.simulated_seconds)
        return {
            f"held_{resource}_hours": self._hours(resource)
            for resource in sorted(self._resources)
            if resource != PODS and not resource.startswith(_BYTES)
        }

    def _hours(self, resource: str) -> float:
        unit = MILLI_PER_CPU if resource == CPU else 1
        return self._seconds[resource] / unit / SECONDS_PER_HOUR
