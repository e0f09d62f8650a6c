"""Throughput as upstream samples it, from the times of the bindings.

Each second, upstream counts the pods that were bound in it (throughputCollector in scheduler_perf's
util.go). The first second with bindings only starts the counting. A second without bindings is no
sample of zero: it lengthens the next sample, which then counts once for each second that it covers.
All times are known here, so the seconds are exact. Fewer than three samples mean nothing. The
throughput of a short run is its pods divided by the time between the first and the last binding.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import count

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
