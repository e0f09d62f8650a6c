"""Go's integer arithmetic on arrays: the only place where scores are divided.

Go divides towards zero, numpy's // towards minus infinity. For numerators below 2^53 a float64
division cut to its integer part gives the same quotient, twice as fast; beyond, int64 is used.
"""

import numpy as np
import numpy.typing as npt

from bayplan.framework.interface import MAX_NODE_SCORE, Normalizer
from bayplan.state.columns import Int64s, NodeScores

#: Integers below this are exact in float64.
FLOAT_EXACT_BELOW = 2**53

#: Amounts below this stay exact when multiplied by the highest score.
PERCENT_EXACT_BELOW = 2**46


def divide(numerators: Int64s, denominators: Int64s | int) -> Int64s:
    """Elementwise Go quotient; a denominator of 0 gives 0."""
    if not len(numerators):
        return numerators
    exact = abs(int(numerators.max())) < FLOAT_EXACT_BELOW > abs(int(numerators.min()))
    below = np.asarray(denominators)
    if exact and (not below.size or int(np.abs(below).max()) < FLOAT_EXACT_BELOW):
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = np.trunc(numerators / below)
        return np.nan_to_num(quotients, nan=0.0, posinf=0.0, neginf=0.0).astype(np.int64)
    safe = np.where(below == 0, 1, below)
    quotients = np.abs(numerators) // np.abs(safe)
    signed = np.where((numerators < 0) != (safe < 0), -quotients, quotients)
    return np.where(below == 0, 0, signed).astype(np.int64)


def normalized(normalizer: Normalizer, scores: NodeScores) -> NodeScores:
    """int64[nodes] → int64[nodes] by a named normaliser; over no nodes nothing changes."""
    if normalizer is Normalizer.NONE or not len(scores):
        return scores
    if normalizer is Normalizer.MIN_MAX:
        lowest, highest = int(scores.min()), int(scores.max())
        if highest == lowest:
            return np.zeros(len(scores), np.int64)
        return divide((scores - lowest) * MAX_NODE_SCORE, highest - lowest)
    reverse = normalizer is Normalizer.MAX_REVERSED
    highest = int(scores.max())
    if highest == 0:
        return np.full(len(scores), MAX_NODE_SCORE, np.int64) if reverse else scores
    scaled = divide(scores * MAX_NODE_SCORE, highest)
    return MAX_NODE_SCORE - scaled if reverse else scaled


def in_score_range(scores: NodeScores) -> bool:
    """Whether all are in 0..100: seen as unsigned, negative ones are huge."""
    return not len(scores) or int(scores.view(np.uint64).max()) <= MAX_NODE_SCORE


def round_half_away(values: npt.NDArray[np.float64]) -> Int64s:
    """Go's math.Round, as int64."""
    return np.trunc(values + np.copysign(0.5, values)).astype(np.int64)
