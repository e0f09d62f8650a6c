"""Bayplan, a Kubernetes scheduler in Python: what a plugin author imports.

A name is loaded when it is first used (docs/decisions/0016): `import bayplan` loads no other
module of the project. Type checkers read the names from `__init__.pyi`.
"""

from bayplan.lazy_loader import load

__version__ = "0.1.0"

#: Module → the public names that it defines.
_NAMES = {
    "bayplan.api.objects": "Node Pod",
    "bayplan.comparison.comparing": "compare",
    "bayplan.example_files": "examples_folder",
    "bayplan.framework.cycle_state": "Cloneable CycleState StateNotFound",
    "bayplan.framework.events": """
        ALL EVENT_ASSIGNED_POD_ADD EVENT_ASSIGNED_POD_DELETE EVENT_ASSIGNED_POD_UPDATE
        EVENT_FORCE_ACTIVATE EVENT_UNSCHEDULABLE_TIMEOUT EVENT_UNSCHEDULED_POD_ADD
        EVENT_UNSCHEDULED_POD_DELETE EVENT_UNSCHEDULED_POD_UPDATE UPDATE ActionType
        ClusterEvent ClusterEventWithHint EventResource QueueingHint
    """,
    "bayplan.framework.handle": """
        DeviceClassLister Extender FilterKey FilterRunner Handle Objects PodInPreBind
        PodNominator ResourceClaimTracker ResourceSliceLister SharedDRAManager Verdicts
        WaitingPod
    """,
    "bayplan.framework.in_process_extender": "InProcessExtender",
    "bayplan.framework.plugin": """
        BindPlugin Caching EnqueueExtensions FilterPlugin GroupPlacement
        NormalizeScorePlugin PermitPlugin PlacementAssignments PlacementGeneratePlugin
        JointPlacementScore PlacementScorePlugin Plugin PluginArgs PodGroupPostFilterPlugin
        PostBindPlugin PostFilterPlugin PreBindPlugin PreEnqueuePlugin PreFilterExtensions
        PreFilterPlugin PreScorePlugin Repetition
        QueueSortPlugin ReservePlugin RowFilter RowScore ScalarFilterPlugin
        ScalarScorePlugin ScorePlugin SignPlugin
    """,
    "bayplan.framework.placements": "Placement",
    "bayplan.framework.score_sources": "Over Source Stage",
    "bayplan.framework.scoring": "normalize_scores",
    "bayplan.framework.status": """
        SKIP Code NodeToStatus Rejection Status as_error code_of is_success unresolvable
        unschedulable
    """,
    "bayplan.framework.tie_break": "TieBreakPlugin",
    "bayplan.framework.types": """
        MAX_NODE_SCORE MIN_NODE_SCORE NominatingMode Nomination Normalizer PreFilterResult
        QueuedPodInfo Verdict
    """,
    "bayplan.ports": "BindPort",
    "bayplan.sim.simulate": "Result simulate",
    "bayplan.sim.input.what_if": "NewNodes Scaling WhatIf",
    "bayplan.state.change_log": "Facet",
    "bayplan.state.columns": "NodeMask NodeScores",
    "bayplan.state.nodes": "NodeInfo NodeView",
    "bayplan.state.pods": "PodInfo",
    "bayplan.whatif.cluster": "Cluster",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll] - it reads the stub


def __getattr__(name: str) -> object:
    """A public name, loaded at its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = load(f"{_MODULES[name]}:{name}")
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
