"""Results in the format of upstream's result files: DataItems v1.

perf-dash and other readers of scheduler_perf's files can read these. Two metrics have upstream's
names and meanings: SchedulingThroughput, which is sampled every second and needs at least three
samples, and SchedulingDuration, which includes the creation of the pods. BindingThroughput is our
own: the pods divided by the time between their first and last binding.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import final

from msgspec import Struct

from bayplan.perf.pod_watch import BindingLog

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


# ---- throughput -----------------------------------------------------------------------------
#
# Each second, upstream counts the pods that were bound in it (throughputCollector in
# scheduler_perf's util.go). The first second with bindings only starts the counting. A second
# without bindings is no sample of zero: it lengthens the next sample, which then counts once for
# each second that it covers. All times are known here, so the seconds are exact. Fewer than three
# samples mean nothing. The throughput of a short run is its pods divided by the time between the
# first and the last binding.

INTERVAL_SECONDS = 1.0
SAMPLES_MIN = 3
PERCENTILES = (50, 90, 95, 99)


def samples(times: Sequence[float], start_seconds: float, stop_seconds: float) -> list[float]:
    """Pods per second, one value per second. ``times``: the ascending times of the bindings."""
    samples: list[float] = []
    counted: int | None = None
    counted_at = 0.0
    for number in count(1):
        now = start_seconds + number * INTERVAL_SECONDS
        if now > stop_seconds:
            return samples
        bound = bisect_right(times, now)
        if not bound:
            continue
        if counted is None:
            counted, counted_at = bound, now
        elif bound > counted:
            seconds = now - counted_at
            rate = (bound - counted) / seconds
            samples += [rate] * round(seconds / INTERVAL_SECONDS)
            counted, counted_at = bound, now
    raise AssertionError("count() ends never")


def summarised(values: Sequence[float]) -> Mapping[str, float]:
    """Average and percentiles by the nearest rank, as upstream names them."""
    ordered = sorted(values)
    samples = {"Average": math.fsum(ordered) / len(ordered)}
    for percent in PERCENTILES:
        samples[f"Perc{percent}"] = ordered[math.ceil(len(ordered) * percent / 100) - 1]
    return samples


def rate(times: Sequence[float]) -> float | None:
    """Pods per second between the first and the last binding; None if both have the same time."""
    if not times or times[-1] <= times[0]:
        return None
    return len(times) / (times[-1] - times[0])
