"""Kubernetes quantities as integers.

A quantity is a decimal number with a binary (Ki), decimal (k, m) or exponent (e3) suffix. A
scheduler needs two readings of it: whole units and thousandths, both rounded away from zero as
``Quantity.Value`` and ``Quantity.MilliValue`` do upstream (apimachinery, resource/quantity.go).
"""

import math
import re
from fractions import Fraction
from functools import lru_cache

Quantity = str | int | float

INT64_MAX = 2**63 - 1

_PATTERN = re.compile(
    r"([+-]?)(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)"
)
_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", 1)},
}


class QuantityError(ValueError):
    """Text that is no quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f"found {text!r}, wanted a quantity such as 500m, 2 or 1Gi")


def parse(quantity: Quantity) -> Fraction:
    """The exact value. Raises QuantityError."""
    if isinstance(quantity, bool):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return Fraction(quantity)
    found = _PATTERN.fullmatch(str(quantity))
    if found is None:
        raise QuantityError(quantity)
    sign, digits, exponent, suffix = found.groups()
    value = Fraction(digits if not digits.endswith(".") else digits[:-1])
    if exponent:
        value *= Fraction(10) ** int(exponent)
    elif suffix:
        value *= _SUFFIXES[suffix]
    return -value if sign == "-" else value


@lru_cache(maxsize=4096)
def units(quantity: Quantity) -> int:
    """Whole units, rounded away from zero, at most 2^63-1. Raises QuantityError."""
    return _round_away(parse(quantity))


@lru_cache(maxsize=4096)
def thousandths(quantity: Quantity) -> int:
    """Thousandths (millicores for cpu), rounded away from zero. Raises QuantityError."""
    return _round_away(parse(quantity) * 1000)


def _round_away(value: Fraction) -> int:
    magnitude = min(math.ceil(abs(value)), INT64_MAX)
    return magnitude if value >= 0 else -magnitude
