"""NodeDeclaredFeatures: features that a pod's spec needs and a node declares."""

from typing import Any

import pytest

from bayplan.config.behaviour import NEWEST_BEHAVIOUR
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType
from bayplan.framework.status import SKIP, Code
from bayplan.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    VOLUME_BIND_MOUNT_OPTIONS,
    NodeDeclaredFeatures,
    required,
)
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, check_plugin, node, plugin, pod
from tests.plugins.row_kit import hint
from tests.seeded import depth

RULE = {"action": "RestartAllContainers"}
MOUNT = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
RESTARTING = pod("p", containers=[{"name": "a", "restartPolicyRules": [RULE]}])
PLAIN = pod("q", containers=[{"name": "a", "restartPolicyRules": [{"action": "Restart"}]}])


@pytest.mark.parametrize(
    ("asking", "features"),
    [
        (PLAIN, set()),
        (RESTARTING, {RESTART_ALL_CONTAINERS}),
        (
            pod(init_containers=[{"name": "i", "restartPolicyRules": [RULE]}]),
            {RESTART_ALL_CONTAINERS},
        ),
        (pod(containers=[{"name": "a", "volumeMounts": [MOUNT]}]), {VOLUME_BIND_MOUNT_OPTIONS}),
        (pod(spec={"hostNetwork": True, "hostUsers": False}), {USER_NAMESPACES_HOST_NETWORK}),
        (pod(spec={"hostNetwork": True}), set()),
        (pod(spec={"hostNetwork": True, "hostUsers": True}), set()),
    ],
)
def test_the_needed_features_follow_from_the_spec(asking: PodInfo, features: set[str]) -> None:
    assert required(asking) == features


def declaring(*features: str) -> Any:
    return node("n", features=features, declared={"status.declaredFeatures": list(features)})


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ((RESTART_ALL_CONTAINERS,), None),
        ((VOLUME_BIND_MOUNT_OPTIONS, RESTART_ALL_CONTAINERS), None),
        ((VOLUME_BIND_MOUNT_OPTIONS,), NEWEST_BEHAVIOUR.declared_features_text),
        ((), NEWEST_BEHAVIOUR.declared_features_text),
    ],
)
def test_a_node_must_declare_all_needed_features(features: tuple[str, ...], message: str) -> None:
    cluster = SampleCluster().add(declaring(*features))
    recorded, info = plugin(NodeDeclaredFeatures, cluster=cluster), cluster.lend().nodes.info(0)
    status = recorded.filter_node(CycleState(), RESTARTING, info)
    assert (status and status.message) == message
    assert status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_pod_without_needs_is_skipped() -> None:
    nodes = SampleCluster().lend().nodes
    result = plugin(NodeDeclaredFeatures)
    assert result.pre_filter(CycleState(), PLAIN, nodes) is SKIP
    assert result.pre_filter(CycleState(), RESTARTING, nodes) is None


def test_hints_queue_a_pod_if_something_changed() -> None:
    recorded = plugin(NodeDeclaredFeatures)
    one, other = declaring("a"), declaring("a", "b")
    added, updated = ActionType.ADD, ActionType.UPDATE_NODE_DECLARED_FEATURE
    assert str(hint(recorded, ("Node", added), RESTARTING, None, one)) == "Queue"
    assert str(hint(recorded, ("Node", updated), RESTARTING, one, other)) == "Queue"
    assert str(hint(recorded, ("Node", updated), RESTARTING, one, one)) == "QueueSkip"
    own = ("TargetPod", ActionType.UPDATE_POD_LABEL)
    assert str(hint(recorded, own, RESTARTING, PLAIN, RESTARTING)) == "Queue"
    assert str(hint(recorded, own, RESTARTING, RESTARTING, RESTARTING)) == "QueueSkip"


def test_it_satisfies_the_plugin_contract() -> None:
    asking: Any = [{"spec": {"hostNetwork": True, "hostUsers": False}}]
    check_plugin(NodeDeclaredFeatures, pods=asking, clusters=depth(3, 6))


def test_pods_with_equal_needs_have_equal_signatures() -> None:
    result = plugin(NodeDeclaredFeatures)
    assert result.sign_pod(PLAIN) == result.sign_pod(pod("other")) == ()
    assert result.sign_pod(RESTARTING) == (RESTART_ALL_CONTAINERS,)
