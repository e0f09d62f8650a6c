"""NodeVolumeLimits: no more volumes than a node's drivers may attach."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import CSI_NODE, VOLUME_ATTACHMENT, decode
from bayplan.framework.events import UPDATE, ActionType, EventResource, QueueingHint
from bayplan.plugins.node_volume_limits import NodeVolumeLimits
from bayplan.state.pods import PodInfo
from bayplan.testing import check_plugin, node, pod
from bayplan.testing.clusters import SampleCluster
from tests.plugins.row_kit import hint
from tests.plugins.volume_kit import (
    DRIVER,
    add,
    attachment,
    claim,
    cluster,
    csi,
    csi_driver,
    csi_node,
    instance,
    rejected,
    results_of,
    storage_class,
    volume,
    with_claims,
)
from tests.seeded import depth

TOO_MANY = "Unschedulable: node(s) exceed max volume count"
NODES = [node("n1"), node("n2")]
EBS = "ebs.csi.aws.com"


def disks(count: int) -> list[dict[str, Any]]:
    """Claims c0, c1 … bound to volumes of the driver."""
    objects: list[dict[str, Any]] = []
    for number in range(count):
        objects.append(claim(f"c{number}", bound_to=f"pv{number}"))
        objects.append(volume(f"pv{number}", **csi(f"h{number}")))
    return objects


def reasons(over: SampleCluster, asking: PodInfo) -> dict[str, str]:
    return dict(rejected(NodeVolumeLimits, over, asking))


def test_an_unbound_claim_counts_for_the_driver_of_its_class() -> None:
    objects = [claim("new"), storage_class(provisioner=DRIVER), csi_node("n1", {DRIVER: 0})]
    assert reasons(cluster(NODES, *objects), with_claims("p", "new")) == {"n1": TOO_MANY}
    assert reasons(cluster(NODES, *objects[::2]), with_claims("p", "new")) == {}


def test_a_missing_required_driver_rejects_the_node() -> None:
    needed = csi_driver(preventPodSchedulingIfMissing=True)
    over = cluster(NODES, *disks(1), csi_node("n1", {DRIVER: None}), csi_node("n2"), needed)
    text = f"Unschedulable: {DRIVER} CSI driver is not installed on the node"
    assert reasons(over, with_claims("p", "c0")) == {"n2": text}


def test_without_its_gate_no_driver_is_required() -> None:
    over = SampleCluster(gates={"VolumeLimitScaling": False}).add(*NODES)
    add(over, *disks(1), csi_node("n2"), csi_driver(preventPodSchedulingIfMissing=True))
    assert reasons(over, with_claims("p", "c0")) == {}


# ---- in-tree volumes -----------------------------------------------------------------------


def test_in_tree_volumes_count_as_their_drivers_where_there_is_a_csi_node() -> None:
    disk: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    objects = [claim("old", bound_to="pv"), volume("pv", **disk), csi_node("n1", {EBS: 0})]
    over = cluster(NODES, *objects)
    assert reasons(over, with_claims("p", "old")) == {"n1": TOO_MANY}
    assert reasons(over, with_claims("p", inline=disk)) == {"n1": TOO_MANY}


def test_a_class_of_an_in_tree_plugin_counts_for_its_driver() -> None:
    late = storage_class(provisioner="kubernetes.io/aws-ebs")
    over = cluster(NODES, claim("new"), late, csi_node("n1", {EBS: 0}))
    assert reasons(over, with_claims("p", "new")) == {"n1": TOO_MANY}


def test_files_of_azure_are_never_counted() -> None:
    share: dict[str, Any] = {"azureFile": {"shareName": "s"}}
    over = cluster(NODES, csi_node("n1", {"file.csi.azure.com": 0}))
    assert reasons(over, with_claims("p", inline=share)) == {}


# ---- what is wrong -------------------------------------------------------------------------


def test_a_missing_claim_is_reported() -> None:
    text = (
        "UnschedulableAndUnresolvable: looking up PVC default/nope: "
        'persistentvolumeclaim "nope" not found'
    )
    assert reasons(cluster(NODES), with_claims("p", "nope")) == {"n1": text, "n2": text}


def test_an_ephemeral_claim_of_another_pod_is_an_error() -> None:
    scratch = {"ephemeral": {}}
    over = cluster(NODES, claim("p-scratch"))
    result = results_of(NodeVolumeLimits, over, with_claims("p", scratch=scratch))
    assert "PVC default/p-scratch was not created for pod default/p" in result.rejections["n1"]


def test_a_placed_pod_with_such_a_claim_does_not_fail_other_pods() -> None:
    """Upstream fails the attempts of other pods here."""
    there = [with_claims("q", node="n1", scratch={"ephemeral": {}})]
    objects = [claim("q-scratch", bound_to="pv9"), *disks(1), csi_node("n1", {DRIVER: 1})]
    assert reasons(cluster(NODES, *objects, pods=there), with_claims("p", "c0")) == {}


# ---- the plain rule ----------------------------------------------------------------


def too_many(limit: int, there: Sequence[set[int]], attached: set[int], new: set[int]) -> bool:
    used = set[int]().union(*there)
    more = new - used
    return bool(more) and len(used | attached) + len(more) > limit


SETS = st.sets(st.integers(0, 4), max_size=3)


@given(st.integers(0, 5), st.lists(SETS, max_size=3), SETS, SETS.filter(bool))
def test_the_result_equals_the_plain_rule(
    limit: int, there: list[set[int]], attached: set[int], new: set[int]
) -> None:
    def names(numbers: set[int]) -> list[str]:
        return [f"c{number}" for number in sorted(numbers)]

    pods = [with_claims(f"p{i}", *names(each), node="n1") for i, each in enumerate(there)]
    attachments = [attachment(f"a{number}", "n1", f"pv{number}") for number in attached]
    over = cluster(NODES[:1], *disks(5), csi_node("n1", {DRIVER: limit}), *attachments, pods=pods)
    expected = {"n1": TOO_MANY} if too_many(limit, there, attached, new) else {}
    assert reasons(over, with_claims("p", *names(new))) == expected


# ---- hints, contract -----------------------------------------------------------------------


def answer(
    resource: EventResource, action: ActionType, old: Any, new: Any, **sources: Any
) -> QueueingHint | None:
    plugin = instance(NodeVolumeLimits, SampleCluster())
    claims = () if sources else ("data",)
    return hint(plugin, (resource, action), with_claims("p", *claims, **sources), old, new)


def a_csi_node(limits: dict[str, int | None]) -> Any:
    return decode(CSI_NODE, csi_node("n1", limits))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({DRIVER: 1}, {DRIVER: 2}, QueueingHint.QUEUE),
        ({DRIVER: 2}, {DRIVER: 1}, QueueingHint.QUEUE_SKIP),
        ({}, {DRIVER: 1}, QueueingHint.QUEUE),
        ({DRIVER: 1}, {DRIVER: None}, QueueingHint.QUEUE_SKIP),
    ],
)
def test_a_limit_that_grows_helps(old: Any, new: Any, expected: QueueingHint) -> None:
    event = (EventResource.CSI_NODE, UPDATE)
    assert answer(*event, a_csi_node(old), a_csi_node(new)) is expected


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(
            with_claims("g", "x", node="n1"), QueueingHint.QUEUE, id="a pod with a volume"
        ),
        pytest.param(with_claims("g", "x"), QueueingHint.QUEUE_SKIP, id="a pod without a node"),
        pytest.param(pod("g", node="n1"), QueueingHint.QUEUE_SKIP, id="a pod without volumes"),
    ],
)
def test_deleting_a_pod_helps_if_it_had_a_volume(gone: PodInfo, expected: QueueingHint) -> None:
    assert answer(EventResource.ASSIGNED_POD, ActionType.DELETE, gone, None) is expected


def test_a_volume_that_is_detached_helps_claims_and_disks_of_its_driver() -> None:
    event = (EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
    gone = decode(VOLUME_ATTACHMENT, attachment("a", "n1", "pv", attacher=EBS))
    disk, other = {"awsElasticBlockStore": {"volumeID": "v"}}, {"cinder": {"volumeID": "v"}}
    assert answer(*event, gone, None) is QueueingHint.QUEUE
    assert answer(*event, gone, None, d=disk) is QueueingHint.QUEUE
    assert answer(*event, gone, None, d=other) is QueueingHint.QUEUE_SKIP


def test_it_satisfies_the_plugin_contract() -> None:
    def prepare(cluster: SampleCluster) -> None:
        add(cluster, *disks(3), csi_node("node-1", {DRIVER: 1}), csi_node("node-2", {DRIVER: 2}))
        cluster.add(with_claims("user", "c0", node="node-1"))

    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in (0, 1)]
    each: Any = [{"spec": {"volumes": volumes}}, {"spec": {"volumes": volumes[1:]}}]
    check_plugin(NodeVolumeLimits, pods=each, prepare=prepare, clusters=depth(3, 8))


def test_ephemeral_claims_are_not_signed() -> None:
    plugin = instance(NodeVolumeLimits, SampleCluster())
    scratch: Any = {"scratch": {"ephemeral": {}}}
    assert plugin.sign_pod(with_claims("p", **scratch)) is None
    assert plugin.sign_pod(with_claims("p", "a")) == plugin.sign_pod(with_claims("q", "a"))
    assert plugin.sign_pod(with_claims("p", "a")) != plugin.sign_pod(with_claims("p", "b"))
