"""Bayplan, a Kubernetes scheduler in Python: what a plugin author imports."""

import importlib
from typing import TYPE_CHECKING, Any

from bayplan.api.objects import Node, Pod
from bayplan.framework.cycle_state import Cloneable, CycleState
from bayplan.framework.events import (
    ALL,
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.handle import Handle
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.framework.plugin import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    Plugin,
    PluginArgs,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.score_sources import Over, Source, Stage
from bayplan.framework.scoring import normalize_scores
from bayplan.framework.status import (
    SKIP,
    Code,
    Rejection,
    Status,
    unresolvable,
    unschedulable,
)
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.framework.types import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NominatingMode,
    Nomination,
    Normalizer,
    PreFilterResult,
)
from bayplan.ports import BindPort
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

if TYPE_CHECKING:
    from bayplan.comparison.comparing import compare

__all__ = [
    "ALL",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "SKIP",
    "UPDATE",
    "ActionType",
    "BindPlugin",
    "BindPort",
    "Cloneable",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "EnqueueExtensions",
    "EventResource",
    "Facet",
    "FilterPlugin",
    "Handle",
    "InProcessExtender",
    "Node",
    "NodeInfo",
    "NodeMask",
    "NodeScores",
    "NodeView",
    "NominatingMode",
    "Nomination",
    "NormalizeScorePlugin",
    "Normalizer",
    "Over",
    "PermitPlugin",
    "Plugin",
    "PluginArgs",
    "Pod",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueueingHint",
    "Rejection",
    "ReservePlugin",
    "ScalarFilterPlugin",
    "ScalarScorePlugin",
    "ScorePlugin",
    "SignPlugin",
    "Source",
    "Stage",
    "Status",
    "TieBreakPlugin",
    "compare",
    "normalize_scores",
    "unresolvable",
    "unschedulable",
]


def __getattr__(name: str) -> Any:
    """`compare` brings all of simulation along: what a plugin author does not need is not loaded
    before it is asked for (PEP 562)."""
    if name == "compare":
        return importlib.import_module("bayplan.comparison.comparing").compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
