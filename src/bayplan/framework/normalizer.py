"""How raw scores become scores."""

from enum import Enum


class Normalizer(Enum):
    """How raw scores become 0..100, over the feasible nodes."""

    #: They are already.
    NONE = "none"
    #: 100 x score / highest; all zero stays zero.
    MAX = "max"
    #: 100 - that; all zero becomes 100: the fewest is the best.
    MAX_REVERSED = "maxReversed"
    #: 100 x (score - lowest) / (highest - lowest).
    MIN_MAX = "minMax"
