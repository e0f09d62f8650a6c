"""Bayplan, a Kubernetes scheduler in Python: what a plugin author imports."""

import importlib
from typing import TYPE_CHECKING, Any

from bayplan.api.objects import Node, Pod
from bayplan.framework.caching import Caching
from bayplan.framework.cycle_state import Cloneable, CycleState, StateNotFound
from bayplan.framework.events import (
    ALL,
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_ASSIGNED_POD_UPDATE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_UPDATE,
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.handle import (
    DeviceClassLister,
    Extender,
    FilterKey,
    FilterRunner,
    Handle,
    Objects,
    PodInPreBind,
    PodNominator,
    ResourceClaimTracker,
    ResourceSliceLister,
    SharedDRAManager,
    Verdicts,
    WaitingPod,
)
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.framework.plugin import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    GroupPlacement,
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
    RowFilter,
    RowScore,
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
    NodeToStatus,
    Rejection,
    Status,
    as_error,
    code_of,
    is_success,
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
    QueuedPodInfo,
    Verdict,
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
    "EVENT_ASSIGNED_POD_ADD",
    "EVENT_ASSIGNED_POD_DELETE",
    "EVENT_ASSIGNED_POD_UPDATE",
    "EVENT_FORCE_ACTIVATE",
    "EVENT_UNSCHEDULABLE_TIMEOUT",
    "EVENT_UNSCHEDULED_POD_ADD",
    "EVENT_UNSCHEDULED_POD_DELETE",
    "EVENT_UNSCHEDULED_POD_UPDATE",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "SKIP",
    "UPDATE",
    "ActionType",
    "BindPlugin",
    "BindPort",
    "Caching",
    "Cloneable",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "DeviceClassLister",
    "EnqueueExtensions",
    "EventResource",
    "Extender",
    "Facet",
    "FilterKey",
    "FilterPlugin",
    "FilterRunner",
    "GroupPlacement",
    "Handle",
    "InProcessExtender",
    "Node",
    "NodeInfo",
    "NodeMask",
    "NodeScores",
    "NodeToStatus",
    "NodeView",
    "NominatingMode",
    "Nomination",
    "NormalizeScorePlugin",
    "Normalizer",
    "Objects",
    "Over",
    "PermitPlugin",
    "Plugin",
    "PluginArgs",
    "Pod",
    "PodInPreBind",
    "PodInfo",
    "PodNominator",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "QueueingHint",
    "Rejection",
    "ReservePlugin",
    "ResourceClaimTracker",
    "ResourceSliceLister",
    "RowFilter",
    "RowScore",
    "ScalarFilterPlugin",
    "ScalarScorePlugin",
    "ScorePlugin",
    "SharedDRAManager",
    "SignPlugin",
    "Source",
    "Stage",
    "StateNotFound",
    "Status",
    "TieBreakPlugin",
    "Verdict",
    "Verdicts",
    "WaitingPod",
    "as_error",
    "code_of",
    "compare",
    "is_success",
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
