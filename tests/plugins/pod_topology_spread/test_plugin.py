"""The plugin in the framework: skips, failures, signatures."""

from typing import Any

import numpy as np
import pytest

from bayplan.api.objects import SERVICE, ZONE_LABEL
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import SKIP, Code, Status
from bayplan.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.constraints import HARD, SOFT, DefaultConstraint
from bayplan.state.cache import Snapshot
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import (
    SpreadCluster,
    app_pod,
    constraint,
    spreading,
    zoned,
)

SYSTEM = PodTopologySpreadArgs()
WEB_SERVICE = {"app": "a"}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Foo"}]}


def rejected(plugin: PodTopologySpread, state: CycleState, waiting: PodInfo, on: Snapshot) -> Any:
    """Names of the nodes that Filter rejects."""
    nodes = on.nodes
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    outcome.add(plugin.name, plugin.filter(state, waiting, nodes, outcome.feasible))
    return [name for name, _ in outcome.node_to_status(outcome.nodes).for_each_explicit_node()]


# ---- when it has nothing to say --------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "filters", "scores"),
    [
        pytest.param(app_pod(), False, False, id="no constraints"),
        pytest.param(app_pod(spread=[constraint()]), True, False, id="hard"),
        pytest.param(app_pod(spread=[constraint(action=SOFT)]), False, True, id="soft"),
    ],
)
def test_the_plugin_skips_pods_without_constraints(
    waiting: PodInfo, filters: bool, scores: bool
) -> None:
    plugin, nodes = spreading(), zoned(a=0).nodes
    assert (plugin.pre_filter(CycleState(), waiting, nodes) is SKIP) is not filters
    assert (plugin.pre_score(CycleState(), waiting, nodes) is SKIP) is not scores


def test_by_the_systems_defaults_a_pod_of_a_service_is_scored() -> None:
    world, nodes = SpreadCluster(), zoned(a=1, b=0).nodes
    plugin = spreading(SYSTEM, world)
    assert plugin.pre_score(CycleState(), app_pod(), nodes) is SKIP
    world.put(SERVICE, "web", WEB_SERVICE)
    assert plugin.pre_score(CycleState(), app_pod(), nodes) is None
    assert plugin.pre_filter(CycleState(), app_pod(), nodes) is SKIP


def test_hard_defaults_reject_nodes() -> None:
    default = DefaultConstraint(max_skew=1, topology_key=ZONE_LABEL, when_unsatisfiable=HARD)
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default,))
    plugin = spreading(args, SpreadCluster().put(SERVICE, "web", WEB_SERVICE))
    state, snapshot = CycleState(), zoned(a=1, b=0)
    assert plugin.pre_filter(state, app_pod(), snapshot.nodes) is None
    assert rejected(plugin, state, app_pod(), snapshot) == ["in-a"]


def test_without_args_the_systems_defaults_apply() -> None:
    plugin = PodTopologySpread(None, spreading().handle)
    assert plugin.sign_pod(app_pod()) is None


# ---- what fails ------------------------------------------------------------------------------


def test_a_hard_selector_that_does_not_parse_ends_the_attempt_in_pre_filter() -> None:
    waiting, nodes = app_pod(spread=[constraint(labelSelector=BROKEN)]), zoned(a=0).nodes
    status = spreading().pre_filter(CycleState(), waiting, nodes)
    assert isinstance(status, Status)
    assert status.code is Code.ERROR
    assert status.message == (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Foo" is not a valid label selector operator'
    )


def test_a_soft_selector_that_does_not_parse_ends_the_attempt_in_pre_score() -> None:
    spread = [constraint(action=SOFT, labelSelector=BROKEN)]
    plugin, nodes = spreading(), zoned(a=0).nodes
    assert plugin.pre_filter(CycleState(), app_pod(spread=spread), nodes) is SKIP
    status = plugin.pre_score(CycleState(), app_pod(spread=spread), nodes)
    assert status.code is Code.ERROR
    assert status.message.startswith("calculating preScoreState: obtaining pod's soft")


# ---- a cycle ---------------------------------------------------------------------------------


def test_what_ifs_change_a_clone_of_the_state() -> None:
    plugin, snapshot, waiting = spreading(), zoned(a=1, b=0), app_pod(spread=[constraint()])
    state = CycleState()
    plugin.pre_filter(state, waiting, snapshot.nodes)
    without, node_a = state.clone(), snapshot.node("in-a")
    (victim,) = node_a.pods
    assert plugin.remove_pod(without, waiting, victim, node_a) is None
    assert rejected(plugin, without, waiting, snapshot) == []
    assert plugin.add_pod(without, waiting, victim, node_a) is None
    assert rejected(plugin, without, waiting, snapshot) == ["in-a"]
    assert rejected(plugin, state, waiting, snapshot) == ["in-a"]


def test_the_plugin_normalises_its_scores() -> None:
    plugin, state, nodes = spreading(), CycleState(), zoned(a=2, b=1, c=0).nodes
    waiting = app_pod(spread=[constraint(action=SOFT)])
    assert plugin.pre_score(state, waiting, nodes) is None
    raw = plugin.score(state, waiting, nodes)
    assert raw.tolist() == [3, 2, 0]
    assert plugin.normalize(state, waiting, raw).tolist() == [0, 33, 100]


# ---- signature -------------------------------------------------------------------------------


def test_with_defaults_nothing_is_signed_because_a_service_may_be_added() -> None:
    assert spreading(SYSTEM).sign_pod(app_pod()) is None


def test_the_plugin_reads_only_the_kinds_it_declares() -> None:
    assert PodTopologySpread.kinds == (
        "v1 Service",
        "v1 ReplicationController",
        "apps/v1 ReplicaSet",
        "apps/v1 StatefulSet",
    )
    assert PodTopologySpread.scope == "cluster"
