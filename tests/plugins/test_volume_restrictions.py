"""VolumeRestrictions: volumes that two pods may not share."""

from typing import Any

import pytest

from bayplan.framework.events import ActionType, EventResource, QueueingHint
from bayplan.plugins.volume_restrictions import CLAIM_IN_USE, DISK_CONFLICT, VolumeRestrictions
from bayplan.state.pods import PodInfo
from bayplan.testing import check_plugin, node, pod
from bayplan.testing.clusters import SampleCluster
from bayplan.testing.evaluation import alone
from tests.plugins.row_kit import hint
from tests.plugins.volume_kit import (
    add,
    attempt,
    claim,
    cluster,
    instance,
    rejected,
    results_of,
    with_claims,
)
from tests.seeded import depth

NODES = [node("n1"), node("n2")]
ALONE: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}
CONFLICT, IN_USE = f"Unschedulable: {DISK_CONFLICT}", f"Unschedulable: {CLAIM_IN_USE}"


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": True}}


def iscsi(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": name, "readOnly": read_only}}


def rbd(*monitors: str, read_only: bool = False, image: str = "i") -> dict[str, Any]:
    source = {"monitors": list(monitors), "pool": "p", "image": image, "readOnly": read_only}
    return {"rbd": source}


@pytest.mark.parametrize(
    ("expected", "used", "clashes"),
    [
        pytest.param(gce("a"), gce("a"), True, id="one gce disk"),
        pytest.param(gce("a", True), gce("a"), True, id="one of two pods only reads"),
        pytest.param(gce("a", True), gce("a", True), False, id="readers of a gce disk"),
        pytest.param(gce("a"), gce("b"), False, id="two gce disks"),
        pytest.param(ebs("a"), ebs("a"), True, id="an ebs disk, even for readers"),
        pytest.param(iscsi("a"), iscsi("a"), True, id="one iscsi target"),
        pytest.param(iscsi("a", True), iscsi("a", True), False, id="readers of a target"),
        pytest.param(rbd("m", "n"), rbd("n", "o"), True, id="one rbd image through one monitor"),
        pytest.param(rbd("m"), rbd("n"), False, id="no monitor in common"),
        pytest.param(rbd("m"), rbd("m", image="j"), False, id="two images"),
        pytest.param(gce("a"), ebs("a"), False, id="different kinds of disk"),
    ],
)
def test_disks_for_one_pod_separate_pods(
    expected: dict[str, Any], used: dict[str, Any], clashes: bool
) -> None:
    over = cluster(NODES, pods=[with_claims("there", node="n1", disk=used)])
    result = rejected(VolumeRestrictions, over, with_claims("p", disk=expected))
    assert result == ({"n1": CONFLICT} if clashes else {})


def test_a_claim_for_one_pod_rejects_a_second_pod() -> None:
    user = with_claims("there", "data", node="n2")
    over = cluster(NODES, claim("data", **ALONE), pods=[user])
    second = with_claims("p", "data")
    assert rejected(VolumeRestrictions, over, second) == {"n1": IN_USE, "n2": IN_USE}
    over.take_back()
    over.cache.remove_pod(user.uid)
    assert results_of(VolumeRestrictions, over, second).pre_filter == "Skip"


def test_if_disk_and_claim_conflict_the_disk_is_reported() -> None:
    there = with_claims("there", "data", node="n1", disk=gce("a"))
    over = cluster(NODES, claim("data", **ALONE), pods=[there])
    result = rejected(VolumeRestrictions, over, with_claims("p", "data", disk=gce("a")))
    assert result == {"n1": CONFLICT, "n2": IN_USE}


def test_a_missing_claim_is_reported() -> None:
    result = rejected(VolumeRestrictions, cluster(NODES), with_claims("p", "nope"))
    text = 'UnschedulableAndUnresolvable: persistentvolumeclaim "nope" not found'
    assert result == {"": text}


def test_a_what_if_counts_users_of_this_namespace_only() -> None:
    """Upstream counts claims of other namespaces, too, so that their eviction seems to help."""
    user = with_claims("there", "data", node="n1")
    stranger = pod("s", namespace="other", node="n2", spec={"volumes": user.spec.volumes})
    over = cluster(NODES, claim("data", **ALONE), pods=[user, stranger])
    plugin, asking = instance(VolumeRestrictions, over), with_claims("p", "data")
    state = attempt(plugin, over, asking)
    framework = alone(plugin)
    assert over.lent_snapshot is not None
    nodes = over.lent_snapshot.nodes

    def is_free_without(gone: PodInfo) -> bool:
        what_if = state.clone()
        framework.run_remove_pod(what_if, asking, gone, nodes.info(0))
        return bool(framework.run_filter(what_if, asking, nodes).feasible.all())

    assert is_free_without(user)
    assert not is_free_without(stranger)


# ---- hints, contract -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(with_claims("g", "data", node="n1"), QueueingHint.QUEUE, id="a shared claim"),
        pytest.param(with_claims("g", "x", node="n1"), QueueingHint.QUEUE_SKIP, id="another claim"),
        pytest.param(with_claims("g", node="n1", d=gce("a")), QueueingHint.QUEUE, id="a disk"),
        pytest.param(
            pod("g", namespace="other", node="n1", spec={"volumes": [{"name": "d", **gce("a")}]}),
            QueueingHint.QUEUE_SKIP,
            id="a disk of another namespace",
        ),
    ],
)
def test_deleting_a_pod_helps_if_it_shared_a_volume(gone: PodInfo, expected: QueueingHint) -> None:
    plugin = instance(VolumeRestrictions, SampleCluster())
    asking = with_claims("p", "data", d=gce("a"))
    event = (EventResource.ASSIGNED_POD, ActionType.DELETE)
    assert hint(plugin, event, asking, gone, None) is expected


def test_it_satisfies_the_plugin_contract() -> None:
    def prepare(cluster: SampleCluster) -> None:
        add(cluster, claim("data", **ALONE))
        cluster.add(with_claims("user", "data", node="node-1", disk=gce("a")))

    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "disk", **gce("a", True)},
    ]
    each: Any = [{"spec": {"volumes": volumes[:1]}}, {"spec": {"volumes": volumes}}]
    check_plugin(VolumeRestrictions, pods=each, prepare=prepare, clusters=depth(3, 8))


def test_a_claim_for_many_pods_rejects_no_pod() -> None:
    over = cluster(NODES, claim("data"), pods=[with_claims("there", "data", node="n1")])
    assert results_of(VolumeRestrictions, over, with_claims("p", "data")).pre_filter == "Skip"
