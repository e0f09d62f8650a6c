"""Quantities: every form Kubernetes accepts, against exact fractions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api import quantity

#: How much each suffix is, written out.
SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 1_000_000_000),
    "u": Fraction(1, 1_000_000),
    "m": Fraction(1, 1_000),
    "k": Fraction(1_000),
    "M": Fraction(1_000_000),
    "G": Fraction(1_000_000_000),
    "T": Fraction(1_000_000_000_000),
    "P": Fraction(1_000_000_000_000_000),
    "E": Fraction(1_000_000_000_000_000_000),
    "Ki": Fraction(1_024),
    "Mi": Fraction(1_048_576),
    "Gi": Fraction(1_073_741_824),
    "Ti": Fraction(1_099_511_627_776),
    "Pi": Fraction(1_125_899_906_842_624),
    "Ei": Fraction(1_152_921_504_606_846_976),
}


def rounded_away(value: Fraction) -> int:
    return math.ceil(value) if value >= 0 else math.floor(value)


def clamped(number: int) -> int:
    """Limited to the symmetric range of an int64."""
    return max(-quantity.INT64_MAX, min(number, quantity.INT64_MAX))


DIGITS = st.text("0123456789", min_size=1, max_size=12)
NUMBERS = st.one_of(
    DIGITS,
    st.builds("{}.".format, DIGITS),
    st.builds(".{}".format, DIGITS),
    st.builds("{}.{}".format, DIGITS, DIGITS),
)
SIGNS = st.sampled_from(["", "+", "-"])
EXPONENTS = st.integers(-30, 30)


def reads_exactly(text: str, value: Fraction) -> bool:
    """Whether every function that reads ``text`` returns ``value``."""
    return (
        quantity.parse(text) == value
        and quantity.nanos(text) == rounded_away(value * 10**9)
        and quantity.units(text) == clamped(rounded_away(value))
        and quantity.thousandths(text) == clamped(rounded_away(value * 1000))
    )


@given(SIGNS, NUMBERS, st.sampled_from(sorted(SUFFIXES)))
def test_a_number_with_a_suffix_is_their_product_up_to_the_limit_of_binary_ones(
    sign: str, number: str, suffix: str
) -> None:
    value = Fraction(number.removesuffix(".")) * SUFFIXES[suffix]
    if suffix.endswith("i"):
        value = min(value, Fraction(quantity.INT64_MAX))
    assert reads_exactly(f"{sign}{number}{suffix}", -value if sign == "-" else value)


@given(NUMBERS, st.sampled_from("eE"), st.sampled_from(["", "0", "00"]), EXPONENTS)
def test_an_exponent_is_a_power_of_ten(number: str, e: str, zeros: str, exponent: int) -> None:
    value = Fraction(number.removesuffix(".")) * Fraction(10) ** exponent
    sign = "-" if exponent < 0 else ""
    assert reads_exactly(f"{number}{e}{sign}{zeros}{abs(exponent)}", value)


@given(st.integers() | st.floats(-1e30, 1e30))
def test_a_bare_number_is_read_as_it_would_be_written(number: float) -> None:
    assert quantity.parse(number) == Fraction(repr(number))


@given(st.integers(-(2**70), 2**70))
def test_billionths_are_rounded_once_away_from_zero(amount: int) -> None:
    assert quantity.units_of(amount) == clamped(rounded_away(Fraction(amount, 10**9)))
    assert quantity.thousandths_of(amount) == clamped(rounded_away(Fraction(amount, 10**6)))


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        pytest.param("500m", 1, 500, id="half a core is one whole unit"),
        pytest.param("0.1", 1, 100, id="a decimal fraction"),
        pytest.param("1Gi", 1073741824, 1073741824000, id="binary"),
        pytest.param("1e3", 1000, 1000000, id="an exponent"),
        pytest.param("1E", 10**18, quantity.INT64_MAX, id="E without digits means exa"),
        pytest.param("1n", 1, 1, id="a small amount is rounded up"),
        pytest.param("0.0000000001", 1, 1, id="less than a billionth, too"),
        pytest.param("16Ei", quantity.INT64_MAX, quantity.INT64_MAX, id="beyond int64"),
        pytest.param("-1.5", -2, -1500, id="negative"),
        pytest.param(" 2 ", 2, 2000, id="spaces around"),
        pytest.param("0" * 900 + "7", 7, 7000, id="zeros ahead"),
    ],
)
def test_a_quantity_has_a_value_in_units_and_one_in_thousandths(
    text: str, whole: int, milli: int
) -> None:
    assert (quantity.units(text), quantity.thousandths(text)) == (whole, milli)


#: Between the bars, spaces included.
NO_QUANTITIES = "|.|-|m|Ki|1 Gi|1K|1ki|1e|1e+|1mm|1m2|0x1|1,5|inf|nan|1_000|٣|--1|1e5000"


@pytest.mark.parametrize("text", [*NO_QUANTITIES.split("|"), "9" * 5000])
def test_an_invalid_quantity_is_refused(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match="wanted a quantity"):
        quantity.units(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True])
def test_a_value_that_is_not_a_number_is_refused(number: float) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(number)
