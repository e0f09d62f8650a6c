"""Durations as Go writes them: 15s, 1m30s, 1.5h, 100ms."""

import re
from typing import Annotated

from msgspec import Meta

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_UNIT = r"(?:ns|us|µs|μs|ms|s|m|h)"
_PART = re.compile(f"({_NUMBER})({_UNIT})")
_DURATION = f"^[-+]?(?:0|(?:{_NUMBER}{_UNIT})+)$"
_WHOLE = re.compile(_DURATION)

#: A field that holds one.
Duration = Annotated[
    str,
    Meta(
        pattern=_DURATION,
        description="a duration such as 15s or 1m30s",
    ),
]

_UNIT_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def duration_seconds(duration: str) -> float:
    """Seconds of a string that is a `Duration`. Upstream: time.ParseDuration."""
    total = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(duration))
    return -total if duration.startswith("-") else total


def is_duration(text: str) -> bool:
    """Whether ``text`` is a `Duration`."""
    return _WHOLE.fullmatch(text) is not None
