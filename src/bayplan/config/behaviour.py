"""What kube-scheduler of one version does, besides feature gates: switches and texts.

`behaviour_of` undoes the changes of `behaviour_table` that are newer than a version. Plugins are
made from a `Behaviour` at start; no other code asks for a version.
"""

from functools import cache

from msgspec import Struct, structs

from bayplan.config.behaviour_table import CHANGES, Change, ReleaseTexts
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion


class Behaviour(Struct, frozen=True):
    """The switches and texts of one version. The defaults are those of the newest version; see
    `CHANGES` for each field."""

    # ---- plugins and their extension points
    node_checks_have_pre_filter: bool = True
    node_name_is_first: bool = True
    devices_have_score: bool = True
    gangs_have_permit: bool = False

    # ---- filters and scores
    scores_change_of_balance: bool = True
    image_volumes_are_images: bool = True
    image_volumes_are_containers: bool = True
    selector_limits_namespaces: bool = True
    resizes_add_up_whole: bool = True
    large_requests_saturate: bool = True
    empty_spread_selector_counts_all: bool = True

    # ---- messages
    preemption_names_node: bool = True
    release_texts: ReleaseTexts = ReleaseTexts()
    declared_features_text: str = "node(s) didn't match Pod's required features"
    claim_owner_word: str = "Pod"
    group_messages_are_plain: bool = True

    # ---- preemption
    events_name_preempting_pod: bool = False
    terminating_victims_are_left: bool = True
    members_outrank_pods: bool = True
    waiting_victims_back_off: bool = True
    bindings_of_victims_end: bool = True
    events_tell_of_memory: bool = True
    memory_victims_activate: bool = True
    empty_budgets_protect: bool = True
    needless_nodes_are_reviewed: bool = True

    # ---- devices
    pools_are_sorted: bool = True
    incomplete_pools_are_skipped: bool = True
    invalid_pools_are_skipped: bool = True
    results_have_tolerations: bool = True
    taints_without_effect_are_ignored: bool = True
    has_basic_allocator: bool = True
    scores_allocated_claims: bool = True
    filter_timeout_is_error: bool = True
    selector_errors_name_devices: bool = True
    config_for_all_is_unnamed: bool = True
    wrong_capacity_is_error: bool = True
    rule_without_selector_matches: bool = False
    device_limit_names_request: bool = True
    counters_are_of_drivers: bool = True
    shares_without_amounts_count: bool = True
    all_mode_ignores_shares: bool = True
    all_mode_fails_for_node: bool = True
    shares_keep_device: bool = True
    capacity_names_have_domain: bool = True
    every_class_has_own_resource: bool = True
    amounts_name_created_claims: bool = True

    # ---- binding
    pre_bind_is_parallel: bool = True
    bindings_are_retried: bool = True

    # ---- configuration
    ratio_shape_is_own_field: bool = True
    has_binding_timeout: bool = True
    has_placement_points: bool = True
    has_pod_group_post_filter: bool = True

    # ---- events
    taints_concern_everyone: bool = False
    has_pod_resources: bool = True
    has_scale_up: bool = True
    deleted_claims_are_events: bool = True
    any_anti_affinity_term_counts: bool = True
    own_labels_are_events: bool = True
    deleted_anti_affinity_counts: bool = True
    nominated_pods_are_assigned: bool = True
    changed_groups_are_events: bool = True
    bound_pods_end_nominations: bool = False
    gangs_are_pod_groups: bool = True
    gated_members_hold_groups: bool = True


@cache
def behaviour_of(version: KubernetesVersion) -> Behaviour:
    """What kube-scheduler of a version does."""
    newer = {
        change.field: change.before
        for change in CHANGES
        if change.since.position > version.position
    }
    return structs.replace(Behaviour(), **newer)


NEWEST_BEHAVIOUR = behaviour_of(NEWEST)


def changes_between(old: KubernetesVersion, new: KubernetesVersion) -> tuple[Change, ...]:
    """The changes that an upgrade from one version to another brings, or that a way back undoes."""
    first, last = sorted((old.position, new.position))
    return tuple(change for change in CHANGES if first < change.since.position <= last)
