"""Plugins, each of which breaks one promise of the contract."""

from collections.abc import Hashable
from typing import Any, final

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    Plugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import Status, unschedulable
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, check_plugin


@final
class RanksNodes(ScorePlugin):
    """Scores a node by its position in the view."""

    name = "RanksNodes"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return np.arange(len(nodes), dtype=np.int64)


@final
class WritesColumns(ScorePlugin):
    """Writes to a column of the table."""

    name = "WritesColumns"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        scores = nodes.allocatable("cpu")
        scores //= 1000
        return scores


@final
class SignsTooLittle(ScalarFilterPlugin, SignPlugin):
    """Signs the number of tolerations and reads their keys."""

    name = "SignsTooLittle"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        keys = {toleration.key for toleration in pod.shape.tolerations}
        return unschedulable("spot only") if "spot" in keys else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return len(pod.shape.tolerations)


@final
class CountsDownTwice(ReservePlugin):
    """Counts down at every Unreserve, also at the second one for a pod, but never below zero."""

    name = "CountsDownTwice"

    def setup(self) -> None:
        self._total = 0

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self._total += 1
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._total = max(0, self._total - 1)


def failure_of(plugin_class: type[Plugin], **options: Any) -> str:
    """The message of the check that refuses a plugin. ``options``: those of check_plugin."""
    with pytest.raises(CheckFailed) as failed:
        check_plugin(plugin_class, **options)
    return str(failed.value)
