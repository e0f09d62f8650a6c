"""Combine: several plugins' scores made into one. Ours.

The profile's own sum adds scores that each have their weight; this is for what a sum cannot say:
the worst of several views of a node, or one that counts only as far as another does.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Annotated, Literal, final

import msgspec
import numpy as np
from msgspec import Meta

from bayplan.framework.arithmetic import divide
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, PluginArgs, ScorePlugin
from bayplan.framework.score_sources import Source, Stage
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

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
        found = self.score_from
        return (found,) if isinstance(found, str) else found

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
class Combine(ScorePlugin):
    """weightedSum and mean are divided by the sum of weights, so that 100 stays the best;
    product counts scores as hundredths."""

    name = "Combine"
    args_type = CombineArgs

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
