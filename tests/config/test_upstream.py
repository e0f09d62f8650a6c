"""kube-scheduler's default profile."""

import pytest

from bayplan.config.feature_gates import default_gates, resolve_gates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.upstream import default_plugins


def names(**gates: bool) -> list[str]:
    return [entry.name for entry in default_plugins(resolve_gates(("", gates))[0])]


def test_the_default_profile_has_upstreams_plugins_in_upstreams_order() -> None:
    assert " ".join(names()) == (
        "SchedulingGates PrioritySort NodeName NodeUnschedulable TaintToleration NodeAffinity "
        "NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources DefaultPreemption "
        "NodeResourcesBalancedAllocation ImageLocality DefaultBinder NodeDeclaredFeatures"
    )


def test_the_default_weights_are_upstreams() -> None:
    weights = {entry.name: entry.weight for entry in default_plugins(default_gates())}
    assert {name: weight for name, weight in weights.items() if weight} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_feature_gates_add_plugins_at_their_positions() -> None:
    assert names(GenericWorkload=True)[-1] == "GangScheduling"
    with_topology = names(GenericWorkload=True, TopologyAwareWorkloadScheduling=True)
    assert with_topology[-2:] == ["TopologyPlacementGenerator", "PodGroupPodsCount"]
    deferred = names(InPlacePodVerticalScalingSchedulerPreemption=True)
    assert deferred.index("DeferredPodScheduling") + 1 == deferred.index("NodeResourcesFit")


def test_without_the_gate_of_1_34_the_default_profile_has_no_devices() -> None:
    values = {"DynamicResourceAllocation": False, "DRAAdminAccess": False}
    values |= {"DRAPrioritizedList": False, "DRASchedulerFilterTimeout": False}
    gates, problems = resolve_gates(("featureGates", values), version=KubernetesVersion.V1_34)
    assert not problems
    assert "DynamicResources" not in {entry.name for entry in default_plugins(gates)}


@pytest.mark.parametrize("version", [KubernetesVersion.V1_35, KubernetesVersion.V1_36])
def test_before_1_37_the_plugin_of_gangs_has_a_gate_of_its_own(version: KubernetesVersion) -> None:
    def has_gangs(**values: bool) -> bool:
        gates, problems = resolve_gates(("featureGates", values), version=version)
        assert not problems
        return "GangScheduling" in {entry.name for entry in default_plugins(gates)}

    assert not has_gangs(GenericWorkload=True)
    assert has_gangs(GenericWorkload=True, GangScheduling=True)
