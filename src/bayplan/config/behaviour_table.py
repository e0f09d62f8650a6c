"""What kube-scheduler's versions do differently, besides feature gates: one table.

A row of `CHANGES` names one change: the switch or text in `behaviour.Behaviour`, what it was
before, the first version that has it, and upstream's change. `docs/kubernetes-changes.md` is
generated from the table.

Most rows were recorded from the binaries (`Change.is_recorded`); those of a preview were read in
merged pull requests.
"""

from typing import Any

from msgspec import Struct

from bayplan.config.kubernetes_versions import KubernetesVersion


class ReleaseTexts(Struct, frozen=True):
    """What PostFilter and PodGroupPostFilter of DynamicResources say; "": nothing."""

    #: The pod has no claims.
    without_claims: str = ""
    #: No claim of the pod can be released.
    nothing: str = ""
    #: The pods of a group do not fit.
    of_group: str = "deallocation and deletion of ResourceClaims completed"


class Change(Struct, frozen=True):
    """One change of behaviour."""

    #: The field of `Behaviour`.
    field: str
    #: Its value in versions before ``since``.
    before: Any
    since: KubernetesVersion
    #: The plugin or the part of kube-scheduler.
    part: str
    #: A short name, for a list of changes.
    title: str
    #: What is new, and what was before.
    text: str
    #: Upstream's pull request or file.
    source: str
    #: Whether answers that show the change were recorded from kube-scheduler. Otherwise it was read
    #: in the source.
    is_recorded: bool = True


_V1_35, _V1_36, _V1_37_0, _V1_37, _V1_38 = (
    KubernetesVersion.V1_35,
    KubernetesVersion.V1_36,
    KubernetesVersion.V1_37_0,
    KubernetesVersion.V1_37,
    KubernetesVersion.V1_38,
)

CHANGES: tuple[Change, ...] = (
    Change(
        "empty_spread_selector_counts_all",
        False,
        _V1_38,
        "PodTopologySpread",
        "empty labelSelector of a constraint",
        "A constraint with the selector {} counts all pods of the namespace; before, none.",
        "#141340",
        is_recorded=False,
    ),
    Change(
        "large_requests_saturate",
        False,
        _V1_38,
        "resources of pods",
        "requests beyond 2^63-1",
        "A request of more than 2^63-1 units, or thousandths of a CPU, counts as 2^63-1 and fits "
        "nowhere; before, it became 0 or wrapped, and the pod might fit.",
        "#141305",
        is_recorded=False,
    ),
    Change(
        "empty_budgets_protect",
        False,
        _V1_38,
        "DefaultPreemption",
        "budgets with an empty selector",
        "A budget with the selector {} protects all pods of its namespace, and budgets protect "
        "pods without labels; before, neither.",
        "#141785",
        is_recorded=False,
    ),
    Change(
        "needless_nodes_are_reviewed",
        False,
        _V1_38,
        "DefaultPreemption",
        "extenders get candidates without victims",
        "Extenders with the verb preempt also get the nodes that fit the pod but for extenders, "
        "with no victims, and may find some; without such an extender these nodes are no "
        "candidates. Before, such a node was an error.",
        "#135486",
        is_recorded=False,
    ),
    Change(
        "all_mode_fails_for_node",
        False,
        _V1_38,
        "DynamicResources",
        "allocationMode All and broken pools",
        "A request for all devices of a pool that is incomplete or invalid rejects the node; "
        "before, it ended the attempt with an error.",
        "#141898",
        is_recorded=False,
    ),
    Change(
        "shares_keep_device",
        False,
        _V1_38,
        "DynamicResources",
        "shared devices that became exclusive",
        "A device of which a claim has a share is not allocated as a whole, even if its slice does "
        "not allow several allocations any more; before, it was.",
        "#140798",
        is_recorded=False,
    ),
    Change(
        "capacity_names_have_domain",
        False,
        _V1_38,
        "DynamicResources",
        "names of capacities with and without the driver's domain",
        "The capacity memory is the same as gpu.example.com/memory of the driver gpu.example.com "
        "in requests, devices and allocations; before, names were compared as they are written.",
        "#142202",
        is_recorded=False,
    ),
    Change(
        "every_class_has_own_resource",
        False,
        _V1_38,
        "DynamicResources",
        "DeviceClasses that name the same extended resource",
        "Each class stands for deviceclass.resource.kubernetes.io/ and its name; before, a class "
        "did not whose extendedResourceName a newer class had, and the answer depended on the "
        "order of changes: Bayplan answers as a scheduler that has just started.",
        "#141110",
        is_recorded=False,
    ),
    Change(
        "amounts_name_created_claims",
        False,
        _V1_38,
        "DynamicResources",
        "claim of extended resources in the amounts of a pod",
        "With DRANodeAllocatableResources, the status of a pod whose extended resources are "
        "devices with such amounts names the claim that was created for them; before, it named "
        "<extended-resources>, which the API server refuses, and the binding failed.",
        "#141556",
        is_recorded=False,
    ),
    Change(
        "gangs_have_permit",
        True,
        _V1_38,
        "GangScheduling",
        "Permit of gangs",
        "GangScheduling has no Permit, and naming it there is an error; before, members waited "
        "there until enough of them had a node.",
        "#141182",
        is_recorded=False,
    ),
    Change(
        "group_messages_are_plain",
        False,
        _V1_38,
        "pod groups",
        "messages and reasons of groups that do not fit",
        'Messages do not begin with "pod group is unschedulable", and "no pods were schedulable" '
        "is said of a group whose minimum has nodes already. A group whose members differ in "
        "scheduler, priority or preemption policy has the reason PodGroupError (before, "
        "SchedulerError), and the message names the pods.",
        "#141253, #141930",
        is_recorded=False,
    ),
    Change(
        "rule_without_selector_matches",
        True,
        _V1_37,
        "DynamicResources",
        "DeviceTaintRule without a selector",
        "A DeviceTaintRule without deviceSelector matches no device; before, it matched all.",
        "resourceslice/tracker",
    ),
    Change(
        "device_limit_names_request",
        False,
        _V1_37,
        "DynamicResources",
        "text of claims with too many devices",
        "The error of a claim for more than 32 devices names the request; before, it gave the sum.",
        "structured/internal",
    ),
    Change(
        "node_checks_have_pre_filter",
        False,
        _V1_37_0,
        "NodeName, NodeUnschedulable, TaintToleration",
        "NodeName narrows the nodes in PreFilter",
        "These plugins have PreFilter, and NodeName narrows the nodes to the one that a pod names; "
        "before, NodeName's Filter rejected every other node with a reason of its own.",
        "plugins/nodename",
    ),
    Change(
        "node_name_is_first",
        False,
        _V1_37_0,
        "default profile",
        "order of the default plugins",
        "NodeName comes before NodeUnschedulable in the default profile; before, after it.",
        "apis/config/v1/default_plugins.go",
    ),
    Change(
        "release_texts",
        ReleaseTexts("no new claims to deallocate", "still not schedulable", of_group=""),
        _V1_37_0,
        "DynamicResources",
        "text of PostFilter without claims to release",
        "PostFilter gives no reason if it has nothing to release; before, messages of pods that "
        'fit nowhere had "no new claims to deallocate". The message of a group says that the '
        "deallocation completed; before, it did not.",
        "plugins/dynamicresources",
    ),
    Change(
        "preemption_names_node",
        False,
        _V1_37_0,
        "DefaultPreemption",
        "text of a successful preemption",
        "The message says where preemption makes room, and how many pods leave; before, it said "
        "nothing.",
        "#140180",
    ),
    Change(
        "image_volumes_are_containers",
        False,
        _V1_37_0,
        "ImageLocality",
        "image volumes in the divisor",
        "Image volumes count where the sum of sizes is divided; before, only containers did.",
        "#138951",
    ),
    Change(
        "selector_limits_namespaces",
        False,
        _V1_37_0,
        "InterPodAffinity",
        "namespaceSelector that accepts empty labels",
        "A namespaceSelector of the incoming pod that accepts empty labels (DoesNotExist, NotIn) "
        "matches the selected namespaces only; before, it matched all namespaces.",
        "plugins/interpodaffinity",
    ),
    Change(
        "resizes_add_up_whole",
        False,
        _V1_37_0,
        "resources of running pods",
        "requests of pods in a resize",
        "A pod in a resize takes the largest of three sums over its containers: spec, allocated, "
        "actual; before, the sum of each container's largest value, which is more.",
        "#140047",
    ),
    Change(
        "selector_errors_name_devices",
        False,
        _V1_37_0,
        "DynamicResources",
        "text of CEL errors",
        "The error of a CEL selector names the device and gives advice; before, it did neither.",
        "dynamic-resource-allocation/cel",
    ),
    Change(
        "config_for_all_is_unnamed",
        False,
        _V1_37_0,
        "DynamicResources",
        "claim configuration for all requests",
        "A configuration that names all requests stands once in the allocation, without names; "
        "before, once for each request.",
        "structured/internal",
    ),
    Change(
        "wrong_capacity_is_error",
        False,
        _V1_37_0,
        "DynamicResources",
        "capacity requests that cannot be represented",
        "A capacity request that cannot be represented is an error; before, the sum wrapped "
        "around, and the request fitted.",
        "structured/internal",
    ),
    Change(
        "counters_are_of_drivers",
        False,
        _V1_37_0,
        "DynamicResources",
        "counters of pools with the same name",
        "Pools of two drivers have counters of their own; before, pools of the same name shared "
        "those of the first one.",
        "#140435",
        is_recorded=False,
    ),
    Change(
        "shares_without_amounts_count",
        False,
        _V1_37_0,
        "DynamicResources",
        "counters of shared devices without capacity",
        "A further share of a device draws no counters; before, it did if no share consumed "
        "capacity.",
        "#140437",
        is_recorded=False,
    ),
    Change(
        "all_mode_ignores_shares",
        False,
        _V1_37_0,
        "DynamicResources",
        "allocationMode All and shared capacity",
        "A request for all devices includes those whose capacity others use, and fails if it does "
        "not get them; before, it left them out.",
        "structured/internal",
        is_recorded=False,
    ),
    Change(
        "memory_victims_activate",
        False,
        _V1_37_0,
        "DefaultPreemption",
        "preemptors whose last victim is not deleted",
        "A pod is tried again at once when its last victim gave up its wait or its binding; "
        "before, it waited for an event.",
        "framework/preemption",
        is_recorded=False,
    ),
    Change(
        "members_outrank_pods",
        False,
        _V1_37_0,
        "DefaultPreemption",
        "importance of pods of groups",
        "With GenericWorkload, a pod of a group has the priority of its group as a victim, and is "
        "more important than a plain pod of equal priority; before, only its own priority and its "
        "start counted.",
        "framework/preemption, MoreImportantVictim",
        is_recorded=False,
    ),
    Change(
        "gated_members_hold_groups",
        False,
        _V1_37_0,
        "pod groups",
        "groups with a gated pod",
        "With GenericWorkload, a pod with a scheduling gate holds all waiting pods of its group; "
        "before, enough pods without a gate were tried.",
        "scheduling_queue.go, runPreEnqueuePlugins",
        is_recorded=False,
    ),
    Change(
        "bindings_are_retried",
        False,
        _V1_37_0,
        "DefaultBinder",
        "bindings after errors of the API server",
        "A binding that the API server cannot handle (500, 503, no connection) is written up to "
        "four times within 0.3 seconds; before, the attempt ended.",
        "#138855",
        is_recorded=False,
    ),
    Change(
        "taints_concern_everyone",
        True,
        _V1_37_0,
        "events",
        "taints of nodes wake all pods",
        "A changed taint retries pods of plugins that register for it; before, pods of every "
        "plugin that registers for new nodes.",
        "scheduler.go, buildQueueingHintMap",
    ),
    Change(
        "has_pod_resources",
        False,
        _V1_37_0,
        "events",
        "events of pods by their kind",
        "Plugins register for AssignedPod, UnscheduledPod and TargetPod; before, for Pod.",
        "framework/events.go",
    ),
    Change(
        "has_scale_up",
        False,
        _V1_37_0,
        "events",
        "pods that grow",
        "An update that raises a pod's requests is UpdatePodScaleUp; before, Update.",
        "framework/events.go",
    ),
    Change(
        "deleted_claims_are_events",
        False,
        _V1_37_0,
        "DynamicResources",
        "deleted claims wake pods",
        "The deletion of a ResourceClaim retries pods; before, it did not.",
        "#140831",
    ),
    Change(
        "any_anti_affinity_term_counts",
        False,
        _V1_37_0,
        "InterPodAffinity",
        "hint of pods with several anti-affinity terms",
        "A pod that leaves helps if any anti-affinity term matches it; before, only if all did.",
        "#139161",
    ),
    Change(
        "changed_groups_are_events",
        False,
        _V1_37_0,
        "GangScheduling",
        "changed groups wake their pods",
        "A changed PodGroup retries its pods; before, only a new one did.",
        "plugins/gangscheduling",
    ),
    Change(
        "has_pod_group_post_filter",
        False,
        _V1_37_0,
        "configuration",
        "plugins.podGroupPostFilter",
        "The field exists, and its plugins help groups that do not fit. Before, it was unknown, "
        "and DefaultPreemption helped groups wherever a profile enabled it.",
        "kube-scheduler/config/v1",
    ),
    Change(
        "scores_change_of_balance",
        False,
        _V1_36,
        "NodeResourcesBalancedAllocation",
        "BalancedAllocation's formula",
        "The score is 50 + (50 + balance with the pod - balance without it) / 2; before, the "
        "balance with the pod.",
        "#135573",
    ),
    Change(
        "events_name_preempting_pod",
        True,
        _V1_36,
        "DefaultPreemption",
        "related object of the event Preempted",
        "The event Preempted has no related object; before, the preempting pod was it.",
        "framework/preemption",
        is_recorded=False,
    ),
    Change(
        "waiting_victims_back_off",
        False,
        _V1_36,
        "DefaultPreemption",
        "victims that wait at Permit",
        "A victim that waits at Permit is tried again after its backoff; before, it was rejected, "
        "and waited for an event.",
        "#135719",
        is_recorded=False,
    ),
    Change(
        "bindings_of_victims_end",
        False,
        _V1_36,
        "DefaultPreemption",
        "victims in PreBind",
        "The binding of a victim in PreBind is cancelled, and the victim stays; before, it was "
        "deleted.",
        "#135502",
        is_recorded=False,
    ),
    Change(
        "events_tell_of_memory",
        False,
        _V1_36,
        "DefaultPreemption",
        "text of the event Preempted",
        "The event Preempted of a victim that is not deleted ends in (in kube-scheduler memory).; "
        "before, it did not.",
        "#135502",
        is_recorded=False,
    ),
    Change(
        "pre_bind_is_parallel",
        False,
        _V1_36,
        "VolumeBinding, DynamicResources",
        "PreBind side by side",
        "PreBind of VolumeBinding and of DynamicResources run at the same time; before, one after "
        "the other.",
        "runtime/framework.go",
        is_recorded=False,
    ),
    Change(
        "image_volumes_are_images",
        False,
        _V1_36,
        "ImageLocality",
        "image volumes count",
        "The images of image volumes count; before, only those of containers did.",
        "#130231",
    ),
    Change(
        "claim_owner_word",
        "pod",
        _V1_36,
        "DynamicResources",
        "text of claims of other pods",
        'The message of a claim of another pod says "Pod"; before, "pod".',
        "dynamic-resource-allocation/resourceclaim",
    ),
    Change(
        "pools_are_sorted",
        False,
        _V1_36,
        "DynamicResources",
        "order of pools",
        "Pools are tried by driver and name, and slices by name; before, in Go's order of maps, "
        "which is random. Bayplan takes the order of their first slices.",
        "structured/internal",
    ),
    Change(
        "scores_allocated_claims",
        False,
        _V1_36,
        "DynamicResources",
        "score of allocated claims",
        "Score works for pods with allocated and unallocated claims; before, it failed.",
        "plugins/dynamicresources",
    ),
    Change(
        "filter_timeout_is_error",
        False,
        _V1_36,
        "DynamicResources",
        "time limit of the search for devices",
        "A search that takes too long is an error of the attempt; before, the node was rejected.",
        "plugins/dynamicresources",
    ),
    Change(
        "ratio_shape_is_own_field",
        False,
        _V1_36,
        "NodeResourcesFit",
        "requestedToCapacityRatio by strategy",
        "requestedToCapacityRatio is required by its strategy and refused by others; before, it "
        "was neither.",
        "#132120",
    ),
    Change(
        "has_placement_points",
        False,
        _V1_36,
        "configuration",
        "plugins.placementGenerate and placementScore",
        "The fields exist; before, they were unknown.",
        "kube-scheduler/config/v1",
    ),
    Change(
        "own_labels_are_events",
        False,
        _V1_36,
        "InterPodAffinity",
        "own labels wake a pod",
        "A change of a pod's own labels retries it; before, it did not.",
        "#135394",
    ),
    Change(
        "deleted_anti_affinity_counts",
        False,
        _V1_36,
        "InterPodAffinity",
        "hint of deleted pods with anti-affinity",
        "A pod that leaves helps if its own anti-affinity matches the waiting pod; before, that "
        "was not considered.",
        "#135325",
    ),
    Change(
        "nominated_pods_are_assigned",
        False,
        _V1_36,
        "InterPodAffinity, PodTopologySpread",
        "hints of nominated pods",
        "A nomination that is given up is the deletion of an assigned pod; before, hints took the "
        "pod for unscheduled.",
        "#135392",
    ),
    Change(
        "gangs_are_pod_groups",
        False,
        _V1_36,
        "GangScheduling",
        "kind of gangs",
        "A gang is a PodGroup; before, a Workload. Bayplan does not read Workloads.",
        "plugins/gangscheduling",
    ),
    Change(
        "declared_features_text",
        "node declared features check failed - unsatisfied requirements: {}",
        _V1_36,
        "NodeDeclaredFeatures",
        "text of missing node features",
        "The reason is one sentence; before, it listed the features.",
        "plugins/nodedeclaredfeatures",
        is_recorded=False,
    ),
    Change(
        "devices_have_score",
        False,
        _V1_35,
        "DynamicResources",
        "score of devices",
        "DynamicResources scores nodes by the alternatives of prioritized lists; before, it had "
        "no score, and a weight for it was an error.",
        "plugins/dynamicresources",
    ),
    Change(
        "terminating_victims_are_left",
        False,
        _V1_35,
        "DefaultPreemption",
        "victims that are terminating already",
        "A victim that is terminating gets no further condition, deletion and event; before, it "
        "did.",
        "#134730",
        is_recorded=False,
    ),
    Change(
        "bound_pods_end_nominations",
        True,
        _V1_35,
        "events",
        "bindings of nominated pods",
        "The binding of a pod with a nomination wakes pods as every binding does; before, it also "
        "was the end of the nomination, and pods of the same or a lower priority were tried again.",
        "#134157",
        is_recorded=False,
    ),
    Change(
        "incomplete_pools_are_skipped",
        False,
        _V1_35,
        "DynamicResources",
        "incomplete pools",
        "Incomplete pools are skipped; before, they were used.",
        "structured/internal",
    ),
    Change(
        "invalid_pools_are_skipped",
        False,
        _V1_35,
        "DynamicResources",
        "invalid pools",
        "Invalid pools are skipped, and reject the node if no other pool suffices; before, an "
        "attempt that came to one ended with an error.",
        "structured/internal",
        is_recorded=False,
    ),
    Change(
        "results_have_tolerations",
        False,
        _V1_35,
        "DynamicResources",
        "tolerations in allocations",
        "Tolerations of a request stand in its allocation; before, they did not.",
        "#134479",
    ),
    Change(
        "taints_without_effect_are_ignored",
        False,
        _V1_35,
        "DynamicResources",
        "taints with the effect None",
        "A taint with the effect None is ignored; before, it had to be tolerated.",
        "dynamicresources",
        is_recorded=False,
    ),
    Change(
        "has_basic_allocator",
        False,
        _V1_35,
        "DynamicResources",
        "capacity of devices with the gates off",
        "While DRAConsumableCapacity and DRADeviceBindingConditions are off, capacity requests are "
        "ignored and a constraint distinctAttribute is an error; before, the other way round.",
        "structured/allocator.go",
    ),
    Change(
        "has_binding_timeout",
        False,
        _V1_35,
        "DynamicResources",
        "DynamicResourcesArgs.bindingTimeout",
        "The field exists; before, it was unknown.",
        "kube-scheduler/config/v1",
    ),
)
