"""Scale: another plugin's scores times a factor, cut off at 100. Ours.

A weight multiplies too, but after the cut: a factor of 2 makes no difference between 50 and 90.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, isfinite
from typing import Annotated, final

import numpy as np
from msgspec import Meta

from bayplan.framework.arithmetic import divide
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    CycleState,
    PluginArgs,
    ScorePlugin,
)
from bayplan.framework.score_sources import Source, Stage
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

_FACTOR_MAX = 1_000_000
#: Factors are fractions of whole numbers up to this: 0.29 of 100 is 29, where float64 gives 28.
_DENOMINATOR_MAX = 1_000_000


class ScaleArgs(PluginArgs, frozen=True):
    score_from: Source
    factor: Annotated[float, Meta(ge=0, le=_FACTOR_MAX)]
    stage: Stage = "normalized"

    def problems(self) -> Iterator[tuple[str, str]]:
        if not isfinite(self.factor):
            yield "factor", f"{self.factor}; wanted a number"


@final
class Scale(ScorePlugin):
    """score x factor, towards zero, from 0 to 100."""

    name = "Scale"
    args_type = ScaleArgs

    def setup(self) -> None:
        self._factor = Fraction(str(self.args.factor)).limit_denominator(_DENOMINATOR_MAX)
        #: From here on every score comes to 100.
        self._enough = ceil(MAX_NODE_SCORE / self._factor) if self._factor else 0

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        scores = state.scores(self.args.score_from, self.args.stage)
        counted = np.clip(scores, 0, self._enough) * self._factor.numerator
        scaled = divide(counted, self._factor.denominator)
        return np.clip(scaled, MIN_NODE_SCORE, MAX_NODE_SCORE)
