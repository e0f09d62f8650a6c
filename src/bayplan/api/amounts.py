"""Amounts as the API server computes and prints them.

An amount is an exact number of billionths and the form in which it was written: with a decimal
suffix (500m, 2k), a binary suffix (1Gi) or an exponent (2e3). A sum has the form of its first
addend that is not zero. The text of an amount is the canonical one: the largest suffix without a
fraction. Upstream: apimachinery, resource/quantity.go (Add, CanonicalizeBytes).
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bayplan.api.quantity import NANOS, Quantity, nanos

DECIMAL, BINARY, EXPONENT = "decimal", "binary", "exponent"

_DECIMAL_SUFFIXES = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
_DECIMAL_SUFFIXES[18] = "E"
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_HAS_EXPONENT = re.compile(r"[eE][+-]?\d+$")
#: Below this, a binary amount is printed as a decimal one.
_BINARY_MIN = 1024


class Amount(NamedTuple):
    """An exact amount; see the module."""

    nanos: int
    form: str = DECIMAL

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.nanos + other.nanos, self.form if self.nanos else other.form)

    def __str__(self) -> str:
        """The canonical text, for example 1500m or 2Gi."""
        if not self.nanos:
            return "0"
        units, rest = divmod(abs(self.nanos), NANOS)
        sign = "-" if self.nanos < 0 else ""
        if self.form == BINARY and not rest and units >= _BINARY_MIN:
            return sign + _binary_text(units)
        return sign + _decimal_text(abs(self.nanos), self.form)


def _binary_text(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power + 1 < len(_BINARY_SUFFIXES):
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


def _decimal_text(amount_nanos: int, form: str) -> str:
    exponent = -9
    while amount_nanos % 1000 == 0 and exponent < 18:
        amount_nanos //= 1000
        exponent += 3
    if form == EXPONENT:
        return f"{amount_nanos}e{exponent}" if exponent else str(amount_nanos)
    return f"{amount_nanos}{_DECIMAL_SUFFIXES[exponent]}"


def amount_of(quantity: Quantity) -> Amount:
    """The amount of a text or a number. Raises QuantityError."""
    text = str(quantity).strip()
    form = DECIMAL
    if text.endswith("i"):
        form = BINARY
    elif _HAS_EXPONENT.search(text):
        form = EXPONENT
    return Amount(nanos(quantity), form)


def canonical(quantity: Quantity) -> str:
    """The canonical text of a quantity. Raises QuantityError."""
    return str(amount_of(quantity))


# ---- lists of resources ---------------------------------------------------------------------


#: Resource → amount.
AmountsByResource = dict[str, Amount]


def amounts_of(quantities: Mapping[str, Quantity] | None) -> AmountsByResource:
    """Raises QuantityError."""
    return {name: amount_of(quantity) for name, quantity in (quantities or {}).items()}


def total(parts: Iterable[Mapping[str, Amount]]) -> AmountsByResource:
    """The sum of each resource."""
    sums: AmountsByResource = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums[name].plus(amount) if name in sums else amount
    return sums


def largest(parts: Iterable[Mapping[str, Amount]]) -> AmountsByResource:
    """The maximum of each resource."""
    maxima: AmountsByResource = {}
    for part in parts:
        for name, amount in part.items():
            if name not in maxima or amount.nanos > maxima[name].nanos:
                maxima[name] = amount
    return maxima
