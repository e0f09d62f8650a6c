"""Numbers with the precision that readers expect."""

import pytest

from bayplan.comparison.statistics import PairedDifference, difference, figure, spread, summary


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (0.0, "0"), (27.0, "27"), (10850.0, "10,850"), (9.376, "9.38"),
        (1234.56, "1,235"), (0.00123, "0.0012"), (-0.5, "-0.50"),
    ],
)  # fmt: skip
def test_a_number_is_printed_with_a_fitting_precision(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_a_spread_is_mean_and_deviation() -> None:
    assert spread(summary([2.0, 4.0, 6.0])) == "4 ± 2"
    assert spread(summary([2.5])) == "2.50"
    # Three sums of the same numbers in different orders.
    assert spread(summary([3.25, 3.25 + 5e-16, 3.25 - 5e-16])) == "3.25 ± 0"
    assert spread(None) == "–"


def test_a_difference_has_its_sign_and_its_interval() -> None:
    assert (
        difference(PairedDifference(mean=1.5, low=-0.25, high=3.25, pairs=3))
        == "+1.50 [-0.25, +3.25]"
    )
    assert difference(PairedDifference(mean=-1.5, low=None, high=None, pairs=1)) == "-1.50"
    assert difference(None) == "–"
