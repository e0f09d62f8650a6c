"""Spans of time in four numbers."""

from collections.abc import Mapping, Sequence

import numpy as np


def told_spans(name: str, seconds: Sequence[float]) -> Mapping[str, float]:
    """``name`` with _mean, _p50, _p95 and _max; nothing of no spans."""
    if not seconds:
        return {}
    median, tail = np.percentile(seconds, (50, 95)).tolist()
    return {
        f"{name}_mean": float(np.mean(seconds)),
        f"{name}_p50": median,
        f"{name}_p95": tail,
        f"{name}_max": float(max(seconds)),
    }
