"""Connectors: score plugins that change or combine the scores of other plugins. Bayplan's own.

Invert      100 minus the score.
Normalize   scores stretched over 0 to 100; for raw scores, and for scorers that do not normalize.
Scale       the score times a factor, at most 100. A weight multiplies after that limit, so it makes
            no difference between 50 and 90 that a factor of 2 removes.
Steps       the score along a line through given points. Between two points it is interpolated in
            whole numbers towards zero, as in RequestedToCapacityRatio; outside it is constant.
Combine     several scores become one, where a sum is not enough: the smallest of several views of a
            node, or one score that limits another.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, isfinite
from typing import Annotated, Literal, final

import msgspec
import numpy as np
from msgspec import Meta, Struct

from bayplan.framework.arithmetic import divide, normalized
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import NormalizeScorePlugin, PluginArgs, ScorePlugin
from bayplan.framework.score_sources import Source, Stage
from bayplan.framework.types import MAX_NODE_SCORE, MIN_NODE_SCORE, Normalizer
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

# ---- invert ---------------------------------------------------------------------------------


class InvertArgs(PluginArgs, frozen=True):
    score_from: Source
    stage: Stage = "normalized"


@final
class Invert(ScorePlugin[InvertArgs]):
    """100 - score: the worst node becomes the best."""

    name = "Invert"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return MAX_NODE_SCORE - state.scores(self.args.score_from, self.args.stage)


# ---- normalize ------------------------------------------------------------------------------


class NormalizeArgs(PluginArgs, frozen=True):
    score_from: Source
    #: max: the highest becomes 100, 0 stays 0. minMax: the lowest becomes 0, too.
    to: Literal["max", "minMax"] = "max"
    stage: Stage = "normalized"


@final
class Normalize(ScorePlugin[NormalizeArgs], NormalizeScorePlugin):
    """The best of the feasible nodes gets 100; where all are equal, see `Normalizer`."""

    name = "Normalize"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the source's, until normalised."""
        return state.scores(self.args.score_from, self.args.stage)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return normalized(Normalizer(self.args.to), scores)


# ---- scale ----------------------------------------------------------------------------------


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
class Scale(ScorePlugin[ScaleArgs]):
    """score x factor, towards zero, from 0 to 100."""

    name = "Scale"

    def setup(self) -> None:
        self._factor = Fraction(str(self.args.factor)).limit_denominator(_DENOMINATOR_MAX)
        #: Scores from this value on become 100.
        self._enough = ceil(MAX_NODE_SCORE / self._factor) if self._factor else 0

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        scores = state.scores(self.args.score_from, self.args.stage)
        counted = np.clip(scores, 0, self._enough) * self._factor.numerator
        scaled = divide(counted, self._factor.denominator)
        return np.clip(scaled, MIN_NODE_SCORE, MAX_NODE_SCORE)


# ---- steps ----------------------------------------------------------------------------------


_AT_MAX = 1_000_000_000


class StepPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the source scores ``at``, the score is ``score``."""

    at: Annotated[int, Meta(ge=-_AT_MAX, le=_AT_MAX)]
    score: Annotated[int, Meta(ge=0, le=100)]


class StepsArgs(PluginArgs, frozen=True):
    score_from: Source
    shape: tuple[StepPoint, ...]
    stage: Stage = "normalized"

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.shape:
            yield "shape", "no points; wanted one at least"
        for index, (one, other) in enumerate(pairwise(self.shape), 1):
            if other.at <= one.at:
                yield f"shape[{index}].at", f"{other.at}; wanted more than {one.at}, as before it"


@final
class Steps(ScorePlugin[StepsArgs]):
    """The source's score, mapped through the configured points."""

    name = "Steps"

    def setup(self) -> None:
        shape: tuple[StepPoint, ...] = self.args.shape
        self._at = np.array([point.at for point in shape], np.int64)
        self._scores = np.array([point.score for point in shape], np.int64)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        at, scores = self._at, self._scores
        source_scores = state.scores(self.args.score_from, self.args.stage)
        source_scores = np.clip(source_scores, at[0], at[-1])
        after = np.searchsorted(at, source_scores)  # the point at or after each
        before = np.maximum(after - 1, 0)
        rises, runs = scores[after] - scores[before], at[after] - at[before]
        return scores[before] + divide(rises * (source_scores - at[before]), runs)


# ---- combine --------------------------------------------------------------------------------


Weight = Annotated[int, Meta(ge=0, le=1_000_000)]


class CombineArgs(PluginArgs, frozen=True):
    score_from: Source | tuple[Source, ...]
    how: Literal["weightedSum", "min", "max", "mean", "product"] = msgspec.field(
        name="with", default="weightedSum"
    )
    #: Of weightedSum: by name, or in the order of the sources; 1 for those that are not named.
    weights: tuple[Weight, ...] | dict[str, Weight] = ()
    stage: Stage = "normalized"

    @property
    def sources(self) -> tuple[str, ...]:
        sources = self.score_from
        return (sources,) if isinstance(sources, str) else sources

    def problems(self) -> Iterator[tuple[str, str]]:
        sources = self.sources
        if not sources:
            yield "scoreFrom", "no sources; wanted one at least"
        if len(set(sources)) < len(sources):
            yield "scoreFrom", "the same source twice; wanted each once"
        if not self.weights:
            return
        if self.how != "weightedSum":
            yield "weights", f"with {self.how}; wanted none: they are for weightedSum"
        elif isinstance(self.weights, Mapping):
            unknown = sorted(set(self.weights) - set(sources))
            if unknown:
                yield f"weights.{unknown[0]}", "not in scoreFrom; wanted one of its sources"
        elif len(self.weights) != len(sources):
            count = len(self.weights)
            yield "weights", f"{count} for {len(sources)} sources; wanted one for each"
        if sources and not sum(weights_of(self)):
            yield "weights", "all 0; wanted one that is not"


def weights_of(args: CombineArgs) -> Sequence[int]:
    """One for each source."""
    if isinstance(args.weights, Mapping):
        return [args.weights.get(name, 1) for name in args.sources]
    return args.weights or [1] * len(args.sources)


@final
class Combine(ScorePlugin[CombineArgs]):
    """weightedSum and mean are divided by the sum of weights, so that 100 stays the best;
    product counts scores as hundredths."""

    name = "Combine"

    def setup(self) -> None:
        args: CombineArgs = self.args
        is_weighted = args.how == "weightedSum"
        self._weights = list(weights_of(args)) if is_weighted else [1] * len(args.sources)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        args: CombineArgs = self.args
        scores = [state.scores(name, args.stage) for name in args.sources]
        if args.how == "min":
            return reduce(np.minimum, scores)
        if args.how == "max":
            return reduce(np.maximum, scores)
        if args.how == "product":
            return reduce(_times, scores)
        weighted = [each * weight for each, weight in zip(scores, self._weights, strict=True)]
        return divide(reduce(np.add, weighted), sum(self._weights))


def _times(one: NodeScores, other: NodeScores) -> NodeScores:
    """As hundredths, towards zero."""
    return divide(one * other, MAX_NODE_SCORE)
