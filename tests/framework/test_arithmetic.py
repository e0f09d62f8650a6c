"""Go's division on arrays, compared with Python's integers."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.arithmetic import (
    FLOAT_EXACT_BELOW,
    divide,
    highest,
    in_score_range,
    lowest,
    mean,
    normalized,
    percent,
    round_half_away,
    uniform,
    uniform_score,
)
from bayplan.framework.types import Normalizer
from bayplan.state.resources import EXACT_BELOW

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def array(*numbers: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(numbers, np.int64)


def wrapped(number: int) -> int:
    """The value as an int64 with overflow."""
    return (number - INT64_MIN) % 2**64 + INT64_MIN


def go_quotient(numerator: int, denominator: int) -> int:
    if denominator == 0:
        return 0
    magnitude = abs(numerator) // abs(denominator)
    return wrapped(magnitude if (numerator < 0) == (denominator < 0) else -magnitude)


#: Small numbers, numbers around the limit of exact float64, and the ends of int64.
INT64S = st.one_of(
    st.integers(-20, 20),
    st.integers(-3, 3).map(lambda n: FLOAT_EXACT_BELOW + n),
    st.integers(-3, 3).map(lambda n: n - FLOAT_EXACT_BELOW),
    st.integers(INT64_MIN, INT64_MAX),
    st.sampled_from([INT64_MIN, INT64_MAX]),
)
SMALL = st.integers(-FLOAT_EXACT_BELOW + 1, FLOAT_EXACT_BELOW - 1)


@given(st.lists(st.tuples(INT64S, INT64S)) | st.lists(st.tuples(SMALL, SMALL)))
def test_arrays_are_divided_as_go_divides(pairs: list[tuple[int, int]]) -> None:
    numerators, denominators = array(*(n for n, _ in pairs)), array(*(d for _, d in pairs))
    result = divide(numerators, denominators)
    assert result.dtype == np.int64
    assert result.tolist() == [go_quotient(n, d) for n, d in pairs]


@given(st.lists(INT64S) | st.lists(SMALL), INT64S)
def test_an_array_is_divided_by_a_number_as_go_divides(numbers: list[int], by: int) -> None:
    result = divide(array(*numbers), by)
    assert result.dtype == np.int64
    assert result.tolist() == [go_quotient(n, by) for n in numbers]


@given(
    st.lists(SMALL, min_size=1),
    st.integers(1, 2**20),
)
def test_a_quotient_just_below_a_whole_number_is_truncated(wholes: list[int], by: int) -> None:
    """At the first numbers where a rounded quotient would be too large by one."""
    numerators = [n for n in (w // by * by - 1 for w in wholes) if abs(n) < FLOAT_EXACT_BELOW]
    assert divide(array(*numerators), by).tolist() == [go_quotient(n, by) for n in numerators]


WHOLES = st.one_of(
    st.integers(1, 200),
    st.integers(-3, 3).map(lambda n: EXACT_BELOW + n),
    st.integers(1, 2**56),
)
SHARES = WHOLES.flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole)))


@given(st.lists(SHARES))
def test_percents_are_truncated(shares: list[tuple[int, int]]) -> None:
    result = percent(array(*(part for part, _ in shares)), array(*(whole for _, whole in shares)))
    assert result.dtype == np.int64
    assert result.tolist() == [100 * part // whole for part, whole in shares]


@given(st.lists(SHARES.filter(lambda share: share[1] < EXACT_BELOW)))
def test_percents_of_floats_equal_integer_division(shares: list[tuple[int, int]]) -> None:
    parts, wholes = (np.array(numbers, np.float64) for numbers in zip((0, 1), *shares, strict=True))
    assert percent(parts, wholes).tolist() == [0, *(100 * part // whole for part, whole in shares)]


@given(st.lists(st.integers(0, 10**6)), st.integers(1, 300))
def test_means_are_truncated(sums: list[int], weight_sum: int) -> None:
    expected = [total // weight_sum for total in sums]
    assert mean(array(*sums), weight_sum).tolist() == expected
    assert mean(array(*sums).astype(np.float64), weight_sum).tolist() == expected


@given(st.lists(INT64S, min_size=1))
def test_extremes(numbers: list[int]) -> None:
    assert (lowest(array(*numbers)), highest(array(*numbers))) == (min(numbers), max(numbers))


# ---- normalisers ---------------------------------------------------------------------------


def by_max(scores: list[int]) -> list[int]:
    most = max(scores)
    return [go_quotient(100 * score, most) for score in scores] if most > 0 else scores


def by_max_reversed(scores: list[int]) -> list[int]:
    return [100 - score for score in by_max(scores)] if max(scores) > 0 else [100] * len(scores)


def by_min_max(scores: list[int]) -> list[int]:
    least, span = min(scores), max(scores) - min(scores)
    return [int(100.0 * ((score - least) / span)) if span else 0 for score in scores]


RULES: dict[Normalizer, Callable[[list[int]], list[int]]] = {
    Normalizer.NONE: lambda scores: scores,
    Normalizer.MAX: by_max,
    Normalizer.MAX_REVERSED: by_max_reversed,
    Normalizer.MIN_MAX: by_min_max,
}


@pytest.mark.parametrize("normalizer", Normalizer)
@given(scores=st.lists(st.integers(-1000, 10**12) | st.integers(0, 60), min_size=1))
def test_each_normaliser_follows_its_rule(normalizer: Normalizer, scores: list[int]) -> None:
    result = normalized(normalizer, array(*scores))
    assert result.dtype == np.int64
    assert result.tolist() == RULES[normalizer](scores)


@pytest.mark.parametrize("normalizer", Normalizer)
def test_empty_scores_stay_empty(normalizer: Normalizer) -> None:
    assert normalized(normalizer, array()).tolist() == []


def test_equal_scores_normalize_to_0_or_100() -> None:
    zeros = array(0, 0)
    assert normalized(Normalizer.MAX, zeros).tolist() == [0, 0]
    assert normalized(Normalizer.MAX_REVERSED, zeros).tolist() == [100, 100]
    assert normalized(Normalizer.MIN_MAX, array(7, 7)).tolist() == [0, 0]


def test_min_max_rounds_the_quotient_before_it_is_scaled() -> None:
    """As in InterPodAffinity. In whole numbers the second score would be 58."""
    assert normalized(Normalizer.MIN_MAX, array(0, 29, 50)).tolist() == [0, 57, 100]


# ---- ranges and rounding -------------------------------------------------------------------


@given(st.lists(st.integers(-2, 102) | INT64S))
def test_scores_are_in_0_to_100(scores: list[int]) -> None:
    assert in_score_range(array(*scores)) is all(0 <= score <= 100 for score in scores)


def half_away(value: float) -> int:
    exact = Fraction(value)
    magnitude = int(abs(exact) + Fraction(1, 2))
    return magnitude if exact >= 0 else -magnitude


@given(st.lists(st.floats(-(2.0**60), 2.0**60) | st.integers(-50, 50).map(lambda n: n / 2)))
def test_halves_are_rounded_away_from_zero(values: list[float]) -> None:
    assert round_half_away(np.array(values, np.float64)).tolist() == [half_away(v) for v in values]


def test_a_value_just_below_a_half_is_rounded_down() -> None:
    assert round_half_away(np.array([0.49999999999999994, -0.49999999999999994])).tolist() == [0, 0]


# ---- one score for all ---------------------------------------------------------------------


@pytest.mark.parametrize("normalizer", Normalizer)
@given(score=st.integers(-5, 300), count=st.integers(1, 5))
def test_one_score_for_all_nodes_is_normalised_like_an_array_of_that_score(
    normalizer: Normalizer, score: int, count: int
) -> None:
    scores = uniform(score, count)
    written_out = np.full(count, score, np.int64)
    assert uniform_score(scores) == score
    assert normalized(normalizer, scores).tolist() == normalized(normalizer, written_out).tolist()
    assert in_score_range(scores) == in_score_range(written_out)


def test_one_score_for_all_nodes_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        uniform(7, 3)[0] = 8


def test_an_array_of_equal_scores_is_not_searched_for_equal_values() -> None:
    assert uniform_score(array(5, 5, 5)) is None
