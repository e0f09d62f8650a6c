"""Which test shows the effect of each feature gate: a test, or a file of recorded answers."""

from collections.abc import Mapping

_FEATURES = "tests/plugins/dynamic_resources/test_features.py::test_each_gate_switches_one_feature"
_GATED = "tests/parity/gated"
_GATES = "tests/config/test_feature_gates.py"
_LOCKED = f"{_GATES}::test_a_locked_gate_cannot_be_changed"
_GROUPS = "tests/engine/podgroups"
_PROFILE = "tests/config/test_upstream.py"

TESTS: Mapping[str, str] = {
    "CompositePodGroup": "tests/scenarios/test_group_trees.py",
    "TopologyAwareWorkloadScheduling": "tests/parity/groups/placements.jsonl",
    "DRAAdminAccess": f"{_GATED}/admin-access.jsonl",
    "DRADerivedAttributes": f"{_GATED}/derived-attributes.jsonl",
    "DRADeviceCompatibilityGroups": f"{_GATED}/compatibility-groups.jsonl",
    "DRAFractionalCapacityRange": f"{_GATED}/fractions.jsonl",
    "DRAListTypeAttributes": f"{_GATED}/list-attributes.jsonl",
    "DRANodeAllocatableResources": f"{_GATED}/node-allocatable.jsonl",
    "DRAOptionalNodeOperations": f"{_GATED}/optional-operations.jsonl",
    "DRAWorkloadResourceClaims": "tests/parity/groups/claims.jsonl",
    "DRAConsumableCapacity": f"{_GATED}/shared-capacity.jsonl",
    "DRADeviceBindingConditions": f"{_GATED}/binding-conditions.jsonl",
    "DRADeviceTaintRules": f"{_GATED}/taint-rules.jsonl",
    "DRADeviceTaints": f"{_GATED}/device-taints.jsonl",
    "DRAExtendedResource": f"{_GATED}/extended-resources.jsonl",
    "DRAPartitionableDevices": f"{_GATED}/partitions.jsonl",
    "DRAPrioritizedList": f"{_GATED}/alternatives.jsonl",
    "DRAResourceClaimDeviceStatus": _FEATURES,
    "DRASchedulerFilterTimeout": _FEATURES,
    "DynamicResourceAllocation": (
        f"{_PROFILE}::test_without_the_gate_of_1_34_the_default_profile_has_no_devices"
    ),
    "GangScheduling": f"{_PROFILE}::test_before_1_37_the_plugin_of_gangs_has_a_gate_of_its_own",
    "GenericWorkload": f"{_PROFILE}::test_feature_gates_add_plugins_at_their_positions",
    "InPlacePodLevelResourcesVerticalScaling": f"{_GATED}/pod-level-resizes.jsonl",
    "InPlacePodVerticalScaling": f"{_GATED}/resizes.jsonl",
    "InPlacePodVerticalScalingSchedulerPreemption": (
        "tests/engine/test_resizes.py::"
        "test_less_important_pods_of_the_node_are_evicted_for_a_resize"
    ),
    "InterPodAffinityHostnameFastPath": f"{_GATED}/hostname-terms.jsonl",
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": f"{_GATED}/label-keys.jsonl",
    "NodeDeclaredFeatures": f"{_GATED}/declared-features.jsonl",
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": (
        "tests/engine/test_placements.py::"
        "test_without_the_gate_no_wait_and_no_binding_announces_a_node"
    ),
    "OpportunisticBatching": (
        "tests/engine/reuse/test_cache.py::test_without_the_gate_no_result_is_cached"
    ),
    "PodGroupPreemptionPolicy": (
        f"{_GROUPS}/test_refusals.py::test_with_the_gate_the_preemption_policy_of_the_group_counts"
    ),
    "PodLevelResources": f"{_GATED}/pod-level.jsonl",
    "SchedulerAsyncAPICalls": f"{_GATED}/calls-in-the-background.jsonl",
    "SchedulerAsyncPreemption": (
        "tests/engine/test_sync_preemption.py::test_the_attempt_ends_when_all_evictions_are_done"
    ),
    "SchedulerPopFromBackoffQ": (
        "tests/queue/test_scheduling_queue.py::"
        "test_without_the_gate_released_resources_are_used_after_the_delay"
    ),
    "SchedulerPreQueueingHints": f"{_GATED}/claim-events.jsonl",
    "SchedulerQueueingHints": _LOCKED,
    "StorageCapacityScoring": f"{_GATED}/storage-scores.jsonl",
    "TaintTolerationComparisonOperators": f"{_GATED}/compared-taints.jsonl",
    "VolumeAttributesClass": f"{_GATED}/attribute-classes.jsonl",
    "VolumeLimitScaling": f"{_GATED}/volume-limits.jsonl",
    "WorkloadAwarePreemption": (
        f"{_GROUPS}/test_refusals.py::"
        "test_victims_that_do_not_help_stay_and_the_message_counts_without_them"
    ),
}
