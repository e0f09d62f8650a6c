"""Kubernetes quantities as integers.

A quantity is a decimal number with a binary (Ki), decimal (k, m) or exponent (e3) suffix, and never
finer than a billionth: what is smaller is rounded away from zero when it is read. So whole numbers
of billionths add and compare exactly; only a final amount is rounded, away from zero, to whole
units or to thousandths, as ``Quantity.Value`` and ``Quantity.MilliValue`` do upstream
(apimachinery, resource/quantity.go). An amount beyond int64 stays at the limit, as in Kubernetes
1.38, or becomes 0 or wraps, as before it. One that is written with a binary suffix is never more
than 2^63-1.
"""

import re
from fractions import Fraction
from functools import lru_cache

Quantity = str | int | float
#: What is wanted in place of a text that is no quantity.
QUANTITY = "a quantity such as 500m, 2 or 1Gi"

INT64_MAX = 2**63 - 1

#: Billionths in a unit and in a thousandth of one.
NANOS = 10**9
NANOS_PER_MILLI = 10**6

_PATTERN = re.compile(
    r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?:[eE]([+-]?)0*([0-9]{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)"
)
_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", 1)},
}
#: A canonical text has no more than this many digits before its exponent if upstream stores both.
_STORED_DIGITS_END = 10**18
#: From n to E: the suffixes of decimal quantities, each a thousand times the one before.
_CANONICAL_STEPS = 9
#: A limit of digits: Python refuses to read thousands of digits.
_LENGTH_MAX = 1000


class QuantityError(ValueError):
    """Text that is no quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f"found {text!r}, wanted {QUANTITY}")


# Typed: True is no quantity, though it equals 1.
@lru_cache(maxsize=4096, typed=True)
def parse(quantity: Quantity) -> Fraction:
    """The exact value of a text. Raises QuantityError."""
    if isinstance(quantity, bool):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return Fraction(quantity)
    text = str(quantity).strip()
    match = _PATTERN.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None:
        raise QuantityError(quantity)
    sign, digits, exponent_sign, exponent, suffix = match.groups()
    value = Fraction(digits.removesuffix("."))
    if exponent:
        value *= Fraction(10) ** int(exponent_sign + exponent)
    elif suffix:
        value *= _SUFFIXES[suffix]
        if suffix.endswith("i"):
            value = min(value, Fraction(INT64_MAX))
    return -value if sign == "-" else value


@lru_cache(maxsize=4096)
def is_quantity(value: Quantity) -> bool:
    try:
        parse(value)
    except (QuantityError, ArithmeticError):
        return False
    return True


def nanos(quantity: Quantity) -> int:
    """Billionths, rounded away from zero, for sums and comparisons. Raises QuantityError."""
    value = parse(quantity) * NANOS
    return _away_from_zero(value.numerator, value.denominator)


def units(quantity: Quantity) -> int:
    """Whole units, rounded away from zero, at most 2^63-1. Raises QuantityError."""
    return units_of(nanos(quantity))


def thousandths(quantity: Quantity) -> int:
    """Thousandths (millicores for cpu), rounded away from zero. Raises QuantityError."""
    return thousandths_of(nanos(quantity))


def units_of(amount_nanos: int, *, saturates: bool = True) -> int:
    """Billionths as whole units, rounded away from zero, at most 2^63-1. Unless it ``saturates``,
    a larger amount becomes 0 or wraps."""
    return _as_int64(amount_nanos, NANOS, saturates=saturates)


def thousandths_of(amount_nanos: int, *, saturates: bool = True) -> int:
    """Billionths as thousandths, rounded away from zero, at most 2^63-1. Unless it ``saturates``,
    a larger amount becomes 0 or wraps."""
    return _as_int64(amount_nanos, NANOS_PER_MILLI, saturates=saturates)


def _as_int64(amount_nanos: int, part: int, *, saturates: bool) -> int:
    amount = _away_from_zero(amount_nanos, part)
    if -INT64_MAX <= amount <= INT64_MAX:
        return amount
    return _saturated(amount) if saturates else _overflowed(amount_nanos, amount)


def _overflowed(amount_nanos: int, amount: int) -> int:
    """Upstream stores few digits and an exponent as such, and such an amount becomes 0; any other
    amount is a decimal number of any length, of which the lowest 64 bits count."""
    digits = abs(amount_nanos)
    for _ in range(_CANONICAL_STEPS):
        if digits % 1000:
            break
        digits //= 1000
    return 0 if digits < _STORED_DIGITS_END else wrapped_int64(amount)


def wrapped_int64(amount: int) -> int:
    """An amount as Go's int64 has it: its lowest 64 bits."""
    return (amount + 2**63) % 2**64 - 2**63


def _away_from_zero(amount: int, part: int) -> int:
    return -(-amount // part) if amount >= 0 else amount // part


def _saturated(amount: int) -> int:
    return max(-INT64_MAX, min(amount, INT64_MAX))
