"""What a version of kube-scheduler counts: rules of the cluster's state, from its gates."""

from bayplan.api.pod_requests import NEWEST_POD_RULES, PodRules
from bayplan.config.feature_gates import GANGS, FeatureGates
from bayplan.config.gate_effects import has_effect
from bayplan.state.device_table import DeviceRules
from bayplan.state.pod_group_trees import GroupRules


def pod_rules(gates: FeatureGates) -> PodRules:
    """What of a pod counts."""
    rules = PodRules(
        has_pod_level=gates.enabled("PodLevelResources"),
        reads_resizes=gates.enabled("InPlacePodVerticalScaling"),
        compares_sums=gates.behaviour.resizes_add_up_whole,
        has_pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        large_requests_saturate=gates.behaviour.large_requests_saturate,
        compares_taints=gates.enabled("TaintTolerationComparisonOperators"),
        counts_claims=has_effect(gates, "DRANodeAllocatableResources"),
    )
    return NEWEST_POD_RULES if rules == NEWEST_POD_RULES else rules


def device_rules(gates: FeatureGates) -> DeviceRules:
    """What counts as a device, and as a taint of one."""
    return DeviceRules(
        has_taint_rules=gates.enabled("DRADeviceTaintRules"),
        rule_without_selector_matches=gates.behaviour.rule_without_selector_matches,
        has_extended_resources=gates.enabled("DRAExtendedResource"),
        every_class_has_own_resource=gates.behaviour.every_class_has_own_resource,
    )


def group_rules(gates: FeatureGates) -> GroupRules:
    """What counts of groups."""
    return GroupRules(
        has_trees=gates.enabled("CompositePodGroup"),
        members_outrank=gates.enabled(GANGS) and gates.behaviour.members_outrank_pods,
        gated_pods_hold=gates.enabled(GANGS) and gates.behaviour.gated_members_hold_groups,
    )
