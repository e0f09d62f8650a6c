"""Durations in Go's syntax: 15s, 1m30s, 1.5h, .5h, 100ms. The only reader of durations.

Configuration fields have the type `Duration`, which accepts Go's syntax only (upstream:
time.ParseDuration). Scenarios, annotations and the command line also accept a bare number of
seconds, and no negative value: `parse_duration`.
"""

import math
import re
from decimal import Decimal
from typing import Annotated, Any, Final

from msgspec import Meta

DESCRIPTION: Final = "a duration such as 30s, 1m30s, 250ms or a number of seconds"
#: The annotation of the time that a pod runs once it is bound: 90, 30s, 1m30s.
DURATION_ANNOTATION: Final = "bayplan.dev/duration"

_UNITS: Final = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),  # the micro sign
    "μs": Decimal("1e-6"),  # the Greek letter
    "ns": Decimal("1e-9"),
}
_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_UNIT: Final = f"(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})"
_GO: Final = f"[-+]?(?:0|(?:{_NUMBER}{_UNIT})+)"
_PART: Final = re.compile(f"({_NUMBER})({_UNIT})")
#: Seconds, with or without their unit: most durations, and each pod of a trace has one of its own.
_SECONDS: Final = re.compile(f"({_NUMBER})s?")

#: The type of a configuration field that holds a duration.
Duration = Annotated[str, Meta(pattern=f"^{_GO}$", description="a duration such as 15s or 1m30s")]

#: Ten thousand years; a longer duration is a mistake.
_SECONDS_MAX: Final = 3.2e11
_LENGTH_MAX: Final = 100


class DurationError(ValueError):
    """A value that is not a duration."""


def is_duration(text: str) -> bool:
    """Whether ``text`` is a `Duration`."""
    return re.fullmatch(_GO, text) is not None


def duration_seconds(duration: str) -> float:
    """Seconds of a string that is a `Duration`. The result may be negative."""
    total = float(sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(duration)))
    return -total if duration.startswith("-") else total


def parse_duration(value: Any) -> float:
    """Seconds, 0 or more, from Go's syntax or a number of seconds. Raises DurationError."""
    seconds = _seconds(value)
    if not 0 <= seconds <= _SECONDS_MAX:
        raise DurationError(f"{value!r} is no duration")
    return seconds


def _seconds(value: Any) -> float:
    """Seconds; infinity for a value that is not a duration."""
    if isinstance(value, bool):
        return math.inf
    if isinstance(value, int | float):
        return value if math.isfinite(value) else math.inf
    if not isinstance(value, str) or len(value) > _LENGTH_MAX:
        return math.inf
    if seconds := _SECONDS.fullmatch(value):
        return float(seconds[1])
    return duration_seconds(value) if is_duration(value) else math.inf
