"""Go's integer arithmetic on arrays: the only place where scores are divided.

Go divides towards zero, numpy's // towards minus infinity. For numerators below 2^53, a float64
division that is cut to its integer part gives the same quotient at twice the speed: an exact
quotient that is not whole differs from the next whole number by at least 1/denominator, which is
more than the error of float64. Larger numerators use int64, which wraps as in Go.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bayplan.framework.types import MAX_NODE_SCORE, MIN_NODE_SCORE, Normalizer
from bayplan.state.columns import Int64s, NodeScores
from bayplan.state.resources import AmountArray

Integers = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

#: Integers below this are exact in float64.
FLOAT_EXACT_BELOW = 2**53

#: An array, because numpy converts a plain number to an array at every call.
_HIGHEST_SCORE = np.array(MAX_NODE_SCORE)


@lru_cache
def uniform(score: int, count: int) -> NodeScores:
    """int64[count], read-only: one score for all nodes, in the memory of a single score.

    Most plugins give every node the same score for most pods. Then no score is computed per node.
    """
    return np.ndarray((count,), np.int64, np.int64(score), strides=_NO_STEPS)


def uniform_score(scores: NodeScores) -> int | None:
    """The common score of an array made by `uniform`; None for any other array. The array must not
    be empty."""
    return scores.item(0) if scores.strides == _NO_STEPS else None


_NO_STEPS = (0,)


def divide(numerators: Int64s, denominators: Int64s | int) -> Int64s:
    """Elementwise Go quotient; a denominator of 0 gives 0."""
    if not numerators.size:
        return np.zeros(numerators.shape, np.int64)
    if isinstance(denominators, int):
        if denominators == 0:
            return np.zeros(numerators.shape, np.int64)
        return _quotients(numerators, denominators)
    if not denominators.all():
        quotients = divide(numerators, np.where(denominators == 0, 1, denominators))
        return np.where(denominators == 0, 0, quotients)
    return _quotients(numerators, denominators)


def percent(parts: AmountArray, wholes: AmountArray) -> AmountArray:
    """Elementwise Go quotient 100 x part / whole, for 0 <= part <= whole and 0 < whole.

    For float64 arrays of whole numbers below 2^46, the quotients are float64, too, and overwrite
    ``parts``: in memory that was just used, three steps take the time of two.
    """
    if parts.dtype != np.float64:
        return divide(parts * _HIGHEST_SCORE, wholes)
    parts *= _HIGHEST_SCORE
    parts /= wholes
    return np.trunc(parts, out=parts)


def mean(sums: AmountArray, weight_sum: int) -> Int64s:
    """int64: elementwise Go quotient of sums of scores. Such sums are exact in float64. A float64
    array is overwritten."""
    quotients = sums if sums.dtype == np.float64 else None
    if weight_sum & (weight_sum - 1) == 0:
        # A multiplication by 1/2^n is exact, and takes a third of the time of the division.
        quotients = np.multiply(sums, 1 / weight_sum, out=quotients)
    else:
        quotients = np.divide(sums, weight_sum, out=quotients)
    return quotients.astype(np.int64)


def lowest(numbers: Integers) -> int:
    """The smallest number of an array that is not empty; argmin is faster than min."""
    return numbers.item(numbers.argmin())


def highest(numbers: Integers) -> int:
    """The largest number of an array that is not empty."""
    return numbers.item(numbers.argmax())


def normalized(normalizer: Normalizer, scores: NodeScores) -> NodeScores:
    """int64[nodes] → int64[nodes] by a named normalizer."""
    if normalizer is Normalizer.NONE or not len(scores):
        return scores
    score = uniform_score(scores)
    if score is not None:
        return uniform(_normalized_score(normalizer, score), len(scores))
    if normalizer is Normalizer.MIN_MAX:
        return _min_max(scores)
    reverse = normalizer is Normalizer.MAX_REVERSED
    most = highest(scores)
    if most <= 0:
        return np.full(len(scores), MAX_NODE_SCORE, np.int64) if reverse else scores
    scaled = divide(scores * _HIGHEST_SCORE, most)
    return MAX_NODE_SCORE - scaled if reverse else scaled


@lru_cache
def _normalized_score(normalizer: Normalizer, score: int) -> int:
    """The normalized score of nodes that all have ``score``."""
    return normalized(normalizer, np.array([score])).item()


def in_score_range(scores: NodeScores) -> bool:
    """Whether all scores are in 0..100. As unsigned integers, negative scores are huge."""
    if not len(scores):
        return True
    score = uniform_score(scores)
    if score is not None:
        return MIN_NODE_SCORE <= score <= MAX_NODE_SCORE
    return highest(scores.view(np.uint64)) <= MAX_NODE_SCORE


def round_half_away(values: npt.NDArray[np.float64]) -> Int64s:
    """Go's math.Round, as int64."""
    whole = np.trunc(values)
    # Not trunc(value + 0.5): the sum of the largest double below 0.5 and 0.5 rounds to 1.
    beyond = np.abs(values - whole) >= 0.5
    return (whole + np.copysign(beyond, values)).astype(np.int64)


def _min_max(scores: NodeScores) -> NodeScores:
    """As upstream's InterPodAffinity: divide in float64, multiply the quotient by 100, cut it.

    So 29 of 50 is 57; a division of whole numbers would give 58.
    """
    least, most = lowest(scores), highest(scores)
    if most == least:
        return uniform(0, len(scores))
    return ((scores - least) / (most - least) * MAX_NODE_SCORE).astype(np.int64)


def _quotients(numerators: Int64s, denominators: Int64s | int) -> Int64s:
    """Go quotients; no denominator is 0. A denominator beyond float64's exact range gives 0."""
    if lowest(numerators) > -FLOAT_EXACT_BELOW and highest(numerators) < FLOAT_EXACT_BELOW:
        return (numerators / denominators).astype(np.int64)
    below = np.asarray(denominators, np.int64)
    with np.errstate(over="ignore"):  # -2^63 / -1 wraps, as in Go
        quotients = numerators // below
    has_remainder = quotients * below != numerators
    return quotients + (has_remainder & ((numerators < 0) != (below < 0)))
