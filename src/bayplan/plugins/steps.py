"""Steps: another plugin's scores along a line through given points. Ours.

Between two points the score follows the straight line, in whole numbers towards zero as in the
shapes of kube-scheduler's RequestedToCapacityRatio; before the first and after the last point it
stays what it is there. Two points one apart make a step.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, final

import numpy as np
from msgspec import Meta, Struct

from bayplan.framework.arithmetic import divide
from bayplan.framework.interface import CycleState, PluginArgs, ScorePlugin
from bayplan.framework.score_sources import Source, Stage
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

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
class Steps(ScorePlugin):
    """What the shape says of the source's score."""

    name = "Steps"
    args_type = StepsArgs

    def setup(self) -> None:
        shape: tuple[StepPoint, ...] = self.args.shape
        self._at = np.array([point.at for point in shape], np.int64)
        self._scores = np.array([point.score for point in shape], np.int64)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        at, scores = self._at, self._scores
        found = state.scores(self.args.score_from, self.args.stage)
        found = np.clip(found, at[0], at[-1])
        after = np.searchsorted(at, found)  # the point at or after each
        before = np.maximum(after - 1, 0)
        rises, runs = scores[after] - scores[before], at[after] - at[before]
        return scores[before] + divide(rises * (found - at[before]), runs)
