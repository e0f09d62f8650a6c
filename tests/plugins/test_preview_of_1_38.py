"""What merged pull requests change in 1.38: nothing of it is recorded yet."""

from typing import cast

import pytest

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import POD, Pod, decode
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.pod_topology_spread.constraints import PodTopologySpreadArgs, SpreadRules
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.state.pods import pod_info
from bayplan.testing.clusters import SampleCluster, handle_for
from bayplan.testing.factories import pod


@pytest.mark.parametrize(("version", "counts"), [(NEWEST, False), (KubernetesVersion.V1_38, True)])
def test_an_empty_spread_selector_counts_all_pods(version: KubernetesVersion, counts: bool) -> None:
    handle = handle_for(SampleCluster(kubernetes=version), PodTopologySpread, "PodTopologySpread")
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    meta = {"name": "w", "namespace": "default", "uid": "w"}
    content = {"metadata": meta, "spec": {"topologySpreadConstraints": [constraint]}}
    waiting = pod_info(cast(Pod, decode(POD, content)))
    [hard] = SpreadRules(PodTopologySpreadArgs(), handle).hard(waiting).constraints
    assert (hard.pods is not None) is counts


def test_an_empty_budget_protects_all_pods() -> None:
    content = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 0},
    }
    budget = cast(PodDisruptionBudget, decode(POD_DISRUPTION_BUDGET, content))
    unlabelled = pod("a", node="n1")
    assert Budgets([budget]).violated_by([unlabelled]) == [False]
    assert Budgets([budget], protect_all=True).violated_by([unlabelled]) == [True]
