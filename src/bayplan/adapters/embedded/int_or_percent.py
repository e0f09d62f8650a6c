"""Validation of numbers that may be percentages, such as maxUnavailable.

Upstream: apimachinery pkg/util/intstr, pkg/apis/apps/validation (ValidatePositiveIntOrPercent,
IsNotMoreThan100Percent).
"""

import re
from collections.abc import Iterator

from bayplan.adapters.embedded.field_errors import invalid
from bayplan.problems import Problem

IntOrPercent = int | str | None

NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_NOT_A_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)


def amount(value: IntOrPercent, path: str) -> Iterator[Problem]:
    """Check a value, which may be absent."""
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid(path, value, _NOT_A_PERCENT)
    elif isinstance(value, int) and value < 0:
        yield invalid(path, value, NEGATIVE)


def share(value: IntOrPercent, path: str) -> Iterator[Problem]:
    """Check that a percentage is 100 % at most."""
    is_percent = isinstance(value, str) and _PERCENT.fullmatch(value) is not None
    if is_percent and number(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def number(value: IntOrPercent) -> int:
    """The number, also of a percentage; 0 if it is none."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0
