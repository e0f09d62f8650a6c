"""The names of the plugins of kube-scheduler, and its default profile.

The registry knows which of these plugins Bayplan has. Upstream:
pkg/scheduler/apis/config/v1/default_plugins.go and framework/plugins/registry.go.
"""

from collections.abc import Mapping

from bayplan.config.behaviour import Behaviour
from bayplan.config.feature_gates import GANGS, FeatureGates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.schema import PluginEntry

#: (name, weight, the gate it depends on) in the order of the default profile.
_DEFAULT_PROFILE = (
    ("SchedulingGates", 0, ""),
    ("PrioritySort", 0, ""),
    ("NodeName", 0, ""),
    ("NodeUnschedulable", 0, ""),
    ("TaintToleration", 3, ""),
    ("NodeAffinity", 2, ""),
    ("NodePorts", 0, ""),
    ("DeferredPodScheduling", 0, "InPlacePodVerticalScalingSchedulerPreemption"),
    ("NodeResourcesFit", 1, ""),
    ("VolumeRestrictions", 0, ""),
    ("NodeVolumeLimits", 0, ""),
    ("VolumeBinding", 0, ""),
    ("VolumeZone", 0, ""),
    ("PodTopologySpread", 2, ""),
    ("InterPodAffinity", 2, ""),
    ("DynamicResources", 2, "DynamicResourceAllocation"),
    ("DefaultPreemption", 0, ""),
    ("NodeResourcesBalancedAllocation", 1, ""),
    ("ImageLocality", 1, ""),
    ("DefaultBinder", 0, ""),
    ("NodeDeclaredFeatures", 0, "NodeDeclaredFeatures"),
    ("GangScheduling", 0, GANGS),
    ("TopologyPlacementGenerator", 0, "TopologyAwareWorkloadScheduling"),
    ("PodGroupPodsCount", 1, "TopologyAwareWorkloadScheduling"),
)

UPSTREAM_PLUGINS = tuple(name for name, _, _ in _DEFAULT_PROFILE)

#: Plugins that kube-scheduler removed, from 1.23 on, and that it refuses where they are enabled.
REMOVED_PLUGINS = frozenset(
    (
        "AzureDiskLimits",
        "CinderLimits",
        "EBSLimits",
        "GCEPDLimits",
        "NodeLabel",
        "NodePreferAvoidPods",
        "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated",
        "RequestedToCapacityRatio",
        "SelectorSpread",
        "ServiceAffinity",
    )
)


def default_plugins(gates: FeatureGates) -> tuple[PluginEntry, ...]:
    """The default profile's multiPoint list."""
    entries = [
        PluginEntry(name=name, weight=weight)
        for name, weight, gate in _DEFAULT_PROFILE
        if not gate or (gates.schedules_gangs if gate == GANGS else gates.enabled(gate))
    ]
    if not gates.behaviour.node_name_is_first:
        names = [entry.name for entry in entries]
        first, second = names.index("NodeName"), names.index("NodeUnschedulable")
        entries[first], entries[second] = entries[second], entries[first]
    return tuple(entries)


#: Plugins that are new → the first version.
_NEW_PLUGINS = {
    "DeferredPodScheduling": KubernetesVersion.V1_37_0,
    "GangScheduling": KubernetesVersion.V1_35,
    "NodeDeclaredFeatures": KubernetesVersion.V1_35,
    "PodGroupPodsCount": KubernetesVersion.V1_36,
    "TopologyPlacementGenerator": KubernetesVersion.V1_36,
}


def plugins_absent(version: KubernetesVersion) -> frozenset[str]:
    """The plugins that kube-scheduler of a version does not have yet."""
    return frozenset(n for n, since in _NEW_PLUGINS.items() if since.position > version.position)


def points_absent(behaviour: Behaviour) -> Mapping[str, frozenset[str]]:
    """Plugin → the extension points that it does not have yet."""
    absent: dict[str, frozenset[str]] = {}
    if not behaviour.node_checks_have_pre_filter:
        checks = ("NodeName", "NodeUnschedulable", "TaintToleration")
        absent |= dict.fromkeys(checks, frozenset(("preFilter",)))
    if not behaviour.devices_have_score:
        absent["DynamicResources"] = frozenset(("score",))
    if not behaviour.has_placement_points:
        absent["NodeResourcesFit"] = frozenset(("placementScore",))
    if not behaviour.gangs_have_permit:
        absent["GangScheduling"] = frozenset(("permit",))
    return absent
