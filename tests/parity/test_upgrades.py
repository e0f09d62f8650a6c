"""`bayplan upgrade` names the pods whose answers differ between two real kube-schedulers.

$BAYPLAN_UPGRADE_FROM and $BAYPLAN_UPGRADE_TO: folders with recorders of two versions; see
`upgrades`, which prints the differences of one seed. $BAYPLAN_UPGRADE_SEEDS: as in 0-99.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from bayplan.config.behaviour import changes_between
from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.upgrades import gate_changes
from tests.parity.upgrade_clusters import FAMILIES, draw_cluster
from tests.parity.upgrades import Peer, compare, peer_of, recorded, upgraded

FIRST, LAST = map(int, os.environ.get("BAYPLAN_UPGRADE_SEEDS", "0-99").split("-"))
#: Rows that no attempt at one pod shows: what wakes pods, what binding and events say, what an
#: allocation contains, the configuration, random orders, and pods that name their own node.
INVISIBLE = frozenset(
    (
        "any_anti_affinity_term_counts",
        "bound_pods_end_nominations",
        "changed_groups_are_events",
        "config_for_all_is_unnamed",
        "deleted_anti_affinity_counts",
        "deleted_claims_are_events",
        "events_name_preempting_pod",
        "filter_timeout_is_error",
        "gangs_are_pod_groups",
        "has_binding_timeout",
        "has_placement_points",
        "has_pod_group_post_filter",
        "has_pod_resources",
        "has_scale_up",
        "node_checks_have_pre_filter",
        "node_name_is_first",
        "nominated_pods_are_assigned",
        "own_labels_are_events",
        "pools_are_sorted",
        "ratio_shape_is_own_field",
        "results_have_tolerations",
        "taints_concern_everyone",
        "terminating_victims_are_left",
        "memory_victims_activate",
        "bindings_are_retried",
        "waiting_victims_back_off",
        "bindings_of_victims_end",
        "events_tell_of_memory",
        "pre_bind_is_parallel",
    )
)

#: Rows that no family shows: rules without a selector differ where both versions have the gate of
#: rules, and counters and shares where several devices of one pool are allocated.
NOT_DRAWN = frozenset(
    (
        "all_mode_ignores_shares",
        "counters_are_of_drivers",
        "rule_without_selector_matches",
        "shares_without_amounts_count",
    )
)


@pytest.fixture
def peers() -> tuple[Peer, Peer]:
    folders = [os.environ.get(f"BAYPLAN_UPGRADE_{each}") for each in ("FROM", "TO")]
    if not all(folders):
        pytest.skip("needs recorders in BAYPLAN_UPGRADE_FROM and BAYPLAN_UPGRADE_TO")
    old, new = (peer_of(Path(folder or "")) for folder in folders)
    return old, new


@pytest.mark.timeout(3000)
def test_upgrade_names_the_pods_whose_answers_differ(peers: tuple[Peer, Peer]) -> None:
    wrong: list[str] = []
    causes: Counter[str] = Counter()
    for seed in range(FIRST, LAST + 1):
        comparison = compare(seed, *peers)
        wrong += comparison.wrong
        causes += comparison.causes
    assert not wrong, "\n".join(wrong)
    if LAST - FIRST >= 99:
        missing = [title for title in visible_changes(*peers) if not _is_named(title, causes)]
        assert not missing, f"no pod of {LAST - FIRST + 1} clusters shows {missing}"


def visible_changes(old: Peer, new: Peer) -> list[str]:
    """The titles of the changes that an attempt at one pod can show."""
    titles = [
        change.title
        for change in changes_between(old.version, new.version)
        if change.field not in INVISIBLE | NOT_DRAWN
    ]
    gates = gate_changes(default_gates(old.version), default_gates(new.version))
    return [*titles, *(f"feature gate {gate.name} " for gate in gates)]


def _is_named(title: str, causes: Counter[str]) -> bool:
    return any(title in cause for cause in causes)


@pytest.mark.timeout(3000)
def test_a_wrong_answer_is_noticed(peers: tuple[Peer, Peer]) -> None:
    """The comparison can fail: the answers of one version are not those of another one."""
    old, new = peers
    impostor = old._replace(version=new.version)
    lists, _ = draw_cluster(FIRST)
    assert recorded(old, lists) != recorded(new, lists)
    assert compare(FIRST, impostor, new).wrong


def test_a_seed_draws_one_cluster_and_seeds_draw_all_families() -> None:
    assert draw_cluster(3) == draw_cluster(3)
    drawn = Counter(family for seed in range(100) for family in draw_cluster(seed)[1])
    assert set(drawn) == set(FAMILIES)
    assert min(drawn.values()) > 5


def test_drawn_clusters_show_changes_without_recorders() -> None:
    lists, families = draw_cluster(0)
    answer = upgraded(lists, KubernetesVersion.V1_35, KubernetesVersion.V1_37)
    assert families
    assert answer.pods_tried == len(lists["pods"])
    assert {"moves", "message"} & {pod.what for pod in answer.pods}
