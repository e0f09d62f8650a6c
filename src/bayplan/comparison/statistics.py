"""Means, deviations, percentiles and paired differences, and how they are written.

Runs with one seed and one input are pairs: they have the same pods in the same order. So
configurations are compared by the differences within pairs, with Student's interval for their mean.
The distribution comes from SciPy, which the extra `compare` installs. Without SciPy there are means
and deviations, and no intervals.

Numbers for readers have a sensible number of digits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from bayplan.lazy_loader import load

# ---- spans ----------------------------------------------------------------------------------


def span_metrics(name: str, seconds: Sequence[float]) -> Mapping[str, float]:
    """``name`` with _mean, _p50, _p95 and _max; {} without spans."""
    if not seconds:
        return {}
    median, tail = np.percentile(seconds, (50, 95)).tolist()
    return {
        f"{name}_mean": float(np.mean(seconds)),
        f"{name}_p50": median,
        f"{name}_p95": tail,
        f"{name}_max": float(max(seconds)),
    }


# ---- statistics -----------------------------------------------------------------------------


#: The share of such intervals that contain the true difference.
CONFIDENCE = 0.95
#: Sums of floats in another order differ by less than this share of their size.
_ROUNDING = 1e-12


class Summary(Struct, frozen=True, kw_only=True):
    """One metric of one configuration over its seeds."""

    mean: float
    #: Of a sample (n - 1); None for a single value.
    sd: float | None
    #: In the order of the seeds.
    values: tuple[float, ...]


class PairedDifference(Struct, frozen=True, kw_only=True):
    """The difference of a configuration from the baseline, pair by pair."""

    mean: float
    #: None: fewer than two pairs, or SciPy is not installed.
    low: float | None
    high: float | None
    pairs: int
    #: Whether both runs of each pair have the same number.
    is_nothing: bool = False


def summary(values: Sequence[float]) -> Summary:
    assert values, "a metric without a value has no mean"
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    if deviation is not None and _is_noise(float(np.ptp(values)), values):
        deviation = 0.0
    return Summary(mean=float(np.mean(values)), sd=deviation, values=tuple(values))


def paired(ones: Mapping[int, float], baseline: Mapping[int, float]) -> PairedDifference | None:
    """Both map seed → value. None: no seed has both values."""
    seeds = [seed for seed in ones if seed in baseline]
    if not seeds:
        return None
    differences = np.array(
        [_difference(ones[seed], baseline[seed]) for seed in seeds], dtype=np.float64
    )
    low, high = _interval(differences)
    return PairedDifference(
        mean=float(differences.mean()),
        low=low,
        high=high,
        pairs=len(seeds),
        is_nothing=not differences.any(),
    )


def _is_noise(difference: float, values: Sequence[float]) -> bool:
    """Whether numbers differ by no more than the rounding of floats."""
    return abs(difference) <= _ROUNDING * max(map(abs, values))


def _difference(one: float, other: float) -> float:
    return 0.0 if _is_noise(one - other, (one, other)) else one - other


def _interval(differences: "np.ndarray[Any, np.dtype[np.float64]]") -> tuple[Any, Any]:
    if len(differences) < 2:
        return None, None
    if np.ptp(differences) == 0:
        # Every pair has the same difference: nothing is uncertain.
        return float(differences[0]), float(differences[0])
    stats = _scipy_stats()
    if stats is None:
        return None, None
    interval = stats.ttest_1samp(differences, 0.0).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)


def has_intervals() -> bool:
    """Whether intervals can be computed here."""
    return _scipy_stats() is not None


def _scipy_stats() -> Any:
    try:
        return load("scipy.stats")
    except ImportError:
        return None


# ---- numbers for readers --------------------------------------------------------------------


#: Larger numbers are shown without decimals.
_WHOLE_FROM = 1000
_NONE = "–"


def figure(value: float | None) -> str:
    if value is None:
        return _NONE
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    if abs(value) >= 0.01:
        return f"{value:,.2f}"
    return f"{value:.2g}"


def spread(value: Summary | None) -> str:
    """Mean and deviation: `9.38 ± 0.19`."""
    if value is None:
        return _NONE
    return figure(value.mean) if value.sd is None else f"{figure(value.mean)} ± {figure(value.sd)}"


def difference(value: PairedDifference | None) -> str:
    """`-1.20 [-1.40, -1.00]`; without an interval if there is none."""
    if value is None:
        return _NONE
    mean = signed(value.mean)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} [{signed(value.low)}, {signed(value.high)}]"


def signed(value: float) -> str:
    return figure(value) if value <= 0 else f"+{figure(value)}"
