"""Durations as a scenario writes them: Go's way (1m30s, 250ms, 1.5h), or bare seconds."""

import math
import re
from decimal import Decimal
from typing import Any

WANTED = "a duration such as 30s, 1m30s, 250ms or a number of seconds"

_UNITS = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
}
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PART = re.compile(rf"({_NUMBER})({'|'.join(sorted(_UNITS, key=len, reverse=True))})")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_BARE = re.compile(_NUMBER)

#: Ten thousand years: what is beyond is a mistake.
_SECONDS_MAX = 3.2e11


class DurationError(ValueError):
    """What is no duration."""


def parse_duration(value: Any) -> float:
    """Seconds, not negative. Raises DurationError."""
    seconds = _seconds(value)
    if not 0 <= seconds <= _SECONDS_MAX:
        raise DurationError(f"{value!r} is no duration")
    return seconds


def _seconds(value: Any) -> float:
    """Seconds, or a number out of every range for what is none."""
    if isinstance(value, bool):
        return math.inf
    if isinstance(value, int | float):
        return value if math.isfinite(value) else math.inf
    if not isinstance(value, str) or len(value) > 100:
        return math.inf
    if _BARE.fullmatch(value):
        return float(value)
    if not _WHOLE.fullmatch(value):
        return math.inf
    return float(sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(value)))
