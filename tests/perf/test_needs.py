"""Workloads that hang on plugins which are not here are named with them."""

from typing import Any

import pytest

from bayplan.config.feature_gates import default_gates, resolve_gates
from bayplan.framework.interface import CycleState, ScalarScorePlugin
from bayplan.perf.needs import features_missing, missing_for
from bayplan.plugins.registry import Registry
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
DEVICES = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
NO_PLUGINS = Registry([])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pod(resourceClaims=[{"name": "a"}]), "pods with resource claims need DynamicResources"),
        (pod(schedulingGroup={"podGroupName": "a"}), "pods of a group need GangScheduling"),
        (
            pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            "pods with volume claims need VolumeBinding, ",
        ),
        (
            {**NODE, "status": {"declaredFeatures": ["A"]}},
            "nodes that declare features need NodeDeclaredFeatures, which is not here yet",
        ),
        (
            {**DEVICES, "spec": {"extendedResourceName": "example.com/gpu"}},
            "extended resources of devices need DynamicResources",
        ),
    ],
)
def test_what_is_needed_is_named(content: dict[str, Any], said: str) -> None:
    (found,) = missing_for([content], NO_PLUGINS)
    assert found.startswith(said)


@pytest.mark.parametrize(
    "content",
    [
        pod(volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
        NODE,
        {**DEVICES, "spec": {}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}},
    ],
)
def test_what_no_plugin_looks_at_needs_none(content: dict[str, Any]) -> None:
    assert not list(missing_for([content], NO_PLUGINS))


class Gang(ScalarScorePlugin):
    name = "GangScheduling"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


def test_a_plugin_that_is_here_is_not_missing() -> None:
    grouped = pod(schedulingGroup={"podGroupName": "a"})
    assert not list(missing_for([grouped], Registry([Gang])))


def test_features_that_no_plugin_knows_are_named() -> None:
    gates, _ = resolve_gates(("", {"DRAListTypeAttributes": True, "DRADeviceTaints": True}))
    found = list(features_missing(gates, Registry()))
    assert found == ["the feature DRAListTypeAttributes is not here yet"]
    assert not list(features_missing(default_gates(), Registry()))
