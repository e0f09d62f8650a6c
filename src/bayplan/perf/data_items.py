"""Results in the format of upstream's result files: DataItems v1.

perf-dash and other readers of scheduler_perf's files can read these. Two metrics have upstream's
names and meanings: SchedulingThroughput, which is sampled every second and needs at least three
samples, and SchedulingDuration, which includes the creation of the pods. BindingThroughput is our
own: the pods divided by the time between their first and last binding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from msgspec import Struct

from bayplan.perf.pod_watch import BindingLog
from bayplan.perf.sampling import SAMPLES_MIN, rate, samples, summarised

VERSION = "v1"
THROUGHPUT = "SchedulingThroughput"
DURATION = "SchedulingDuration"
BINDING_THROUGHPUT = "BindingThroughput"
PODS_PER_SECOND = "pods/s"


@final
class DataItem(Struct, frozen=True, kw_only=True):
    data: dict[str, float]
    unit: str
    labels: dict[str, str]


@final
class DataItems(Struct, frozen=True, rename="camel"):
    version: str
    data_items: list[DataItem]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured part of a workload."""

    #: "TestCase/Workload/name"
    name: str
    pods: int
    #: The number of nodes to which the pods were bound.
    nodes: int
    #: The duration of the measurement.
    seconds: float
    pods_per_second: float | None
    samples: tuple[float, ...]

    @property
    def sampled(self) -> dict[str, float]:
        """Upstream's figures; empty below three samples."""
        return dict(summarised(self.samples)) if len(self.samples) >= SAMPLES_MIN else {}


def measurement(name: str, log: BindingLog, stop_seconds: float) -> Measurement:
    return Measurement(
        name=name,
        pods=len(log.times),
        nodes=len(log.nodes),
        seconds=stop_seconds - log.start_seconds,
        pods_per_second=rate(log.times),
        samples=tuple(samples(log.times, log.start_seconds, stop_seconds)),
    )


def data_items(measured: Iterable[tuple[Measurement, float]]) -> DataItems:
    """``measured``: (measurement, the threshold of its workload, or 0)."""
    items: list[DataItem] = []
    for one, threshold in measured:
        limit = {"AverageThreshold": threshold} if threshold else {}
        if one.sampled:
            items.append(_item(one, THROUGHPUT, {**one.sampled, **limit}, PODS_PER_SECOND))
        if one.pods_per_second is not None:
            average = {"Average": one.pods_per_second}
            items.append(_item(one, BINDING_THROUGHPUT, average, PODS_PER_SECOND))
        items.append(_item(one, DURATION, {"Duration": one.seconds}, "s"))
    return DataItems(VERSION, items)


def _item(of: Measurement, metric: str, data: dict[str, float], unit: str) -> DataItem:
    return DataItem(data=data, unit=unit, labels={"Name": of.name, "Metric": metric})
