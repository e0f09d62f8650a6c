"""Where each name of `bayplan` comes from, for type checkers; see `__init__.py`."""

__all__: list[str]
__version__: str

from bayplan.api.objects import (
    Node as Node,
    Pod as Pod,
)
from bayplan.comparison.comparing import (
    compare as compare,
)
from bayplan.example_files import (
    examples_folder as examples_folder,
)
from bayplan.framework.cycle_state import (
    Cloneable as Cloneable,
    CycleState as CycleState,
    StateNotFound as StateNotFound,
)
from bayplan.framework.events import (
    ALL as ALL,
    EVENT_ASSIGNED_POD_ADD as EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE as EVENT_ASSIGNED_POD_DELETE,
    EVENT_ASSIGNED_POD_UPDATE as EVENT_ASSIGNED_POD_UPDATE,
    EVENT_FORCE_ACTIVATE as EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT as EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD as EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_DELETE as EVENT_UNSCHEDULED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_UPDATE as EVENT_UNSCHEDULED_POD_UPDATE,
    UPDATE as UPDATE,
    ActionType as ActionType,
    ClusterEvent as ClusterEvent,
    ClusterEventWithHint as ClusterEventWithHint,
    EventResource as EventResource,
    QueueingHint as QueueingHint,
)
from bayplan.framework.handle import (
    DeviceClassLister as DeviceClassLister,
    Extender as Extender,
    FilterKey as FilterKey,
    FilterRunner as FilterRunner,
    Handle as Handle,
    Objects as Objects,
    PodInPreBind as PodInPreBind,
    PodNominator as PodNominator,
    ResourceClaimTracker as ResourceClaimTracker,
    ResourceSliceLister as ResourceSliceLister,
    SharedDRAManager as SharedDRAManager,
    Verdicts as Verdicts,
    WaitingPod as WaitingPod,
)
from bayplan.framework.in_process_extender import (
    InProcessExtender as InProcessExtender,
)
from bayplan.framework.plugin import (
    BindPlugin as BindPlugin,
    Caching as Caching,
    EnqueueExtensions as EnqueueExtensions,
    FilterPlugin as FilterPlugin,
    GroupPlacement as GroupPlacement,
    JointPlacementScore as JointPlacementScore,
    NormalizeScorePlugin as NormalizeScorePlugin,
    PermitPlugin as PermitPlugin,
    PlacementAssignments as PlacementAssignments,
    PlacementGeneratePlugin as PlacementGeneratePlugin,
    PlacementScorePlugin as PlacementScorePlugin,
    Plugin as Plugin,
    PluginArgs as PluginArgs,
    PodGroupPostFilterPlugin as PodGroupPostFilterPlugin,
    PostBindPlugin as PostBindPlugin,
    PostFilterPlugin as PostFilterPlugin,
    PreBindPlugin as PreBindPlugin,
    PreEnqueuePlugin as PreEnqueuePlugin,
    PreFilterExtensions as PreFilterExtensions,
    PreFilterPlugin as PreFilterPlugin,
    PreScorePlugin as PreScorePlugin,
    Repetition as Repetition,
    QueueSortPlugin as QueueSortPlugin,
    ReservePlugin as ReservePlugin,
    RowFilter as RowFilter,
    RowScore as RowScore,
    ScalarFilterPlugin as ScalarFilterPlugin,
    ScalarScorePlugin as ScalarScorePlugin,
    ScorePlugin as ScorePlugin,
    SignPlugin as SignPlugin,
)
from bayplan.framework.placements import Placement as Placement
from bayplan.framework.score_sources import (
    Over as Over,
    Source as Source,
    Stage as Stage,
)
from bayplan.framework.scoring import (
    normalize_scores as normalize_scores,
)
from bayplan.framework.status import (
    SKIP as SKIP,
    Code as Code,
    NodeToStatus as NodeToStatus,
    Rejection as Rejection,
    Status as Status,
    as_error as as_error,
    code_of as code_of,
    is_success as is_success,
    unresolvable as unresolvable,
    unschedulable as unschedulable,
)
from bayplan.framework.tie_break import (
    TieBreakPlugin as TieBreakPlugin,
)
from bayplan.framework.types import (
    MAX_NODE_SCORE as MAX_NODE_SCORE,
    MIN_NODE_SCORE as MIN_NODE_SCORE,
    NominatingMode as NominatingMode,
    Nomination as Nomination,
    Normalizer as Normalizer,
    PreFilterResult as PreFilterResult,
    QueuedPodInfo as QueuedPodInfo,
    Verdict as Verdict,
)
from bayplan.ports import (
    BindPort as BindPort,
)
from bayplan.sim.simulate import (
    Result as Result,
    simulate as simulate,
)
from bayplan.sim.input.what_if import (
    NewNodes as NewNodes,
    Scaling as Scaling,
    WhatIf as WhatIf,
)
from bayplan.state.change_log import (
    Facet as Facet,
)
from bayplan.state.columns import (
    NodeMask as NodeMask,
    NodeScores as NodeScores,
)
from bayplan.state.nodes import (
    NodeInfo as NodeInfo,
    NodeView as NodeView,
)
from bayplan.state.pods import (
    PodInfo as PodInfo,
)
from bayplan.whatif.cluster import (
    Cluster as Cluster,
)
