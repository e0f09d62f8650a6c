"""When a decision is complete, and when it has failed."""

from typing import Any

import pytest

from bayplan.plugins.volume_binding.binding import BindingFailed, Progress, VolumeDecision
from bayplan.testing.clusters import SampleCluster
from tests.plugins.volume_kit import add, at, claim, cluster, decided, storage_class, volume, zoned

MAKER = storage_class(provisioner="disk.test")
SELECTED = "volume.kubernetes.io/selected-node"
NODES = zoned(n1="a")


def is_complete(over: SampleCluster, decision: VolumeDecision) -> bool:
    return Progress(over.volumes, NODES[0]).is_complete(decision)


def binding() -> tuple[SampleCluster, VolumeDecision]:
    over = cluster(NODES, MAKER, claim("data"), volume("pv"))
    return over, decided(over, "data")


def provision() -> tuple[SampleCluster, VolumeDecision]:
    over = cluster(NODES, MAKER, claim("data"))
    return over, decided(over, "data")


def test_a_binding_is_complete_when_the_claim_is_bound() -> None:
    over, decision = binding()
    assert not is_complete(over, decision)
    add(over, at(volume("pv", claim="data"), "2"))
    assert not is_complete(over, decision)
    add(over, claim("data", bound_to="pv"))
    assert is_complete(over, decision)


def test_a_claim_bound_to_an_unreported_volume_is_not_complete() -> None:
    over, decision = binding()
    add(over, claim("data", bound_to="pv"))
    assert not is_complete(over, decision)


def test_a_provision_is_complete_when_its_volume_exists_and_is_bound() -> None:
    over, decision = provision()
    assert not is_complete(over, decision)
    reports = {SELECTED: "n1"}
    add(over, at(claim("data", annotations=reports), "2"))
    assert not is_complete(over, decision)
    add(over, at(claim("data", annotations=reports, bound_to="pv"), "3"))
    assert not is_complete(over, decision)  # the event of the volume arrives later
    add(over, volume("pv", zone="a", claim="data", phase="Bound"))
    assert is_complete(over, decision)


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            [at(volume("pv"), "2")],
            'ClaimRef got reset for pv "pv"',
            id="the reservation is removed",
        ),
        pytest.param(
            [at(volume("pv", claim="data", zone="b"), "2")],
            'pv "pv" node affinity doesn\'t match node "n1"',
            id="the volume is elsewhere",
        ),
    ],
)
def test_an_impossible_binding_is_reported(objects: list[Any], text: str) -> None:
    over, decision = binding()
    add(over, *objects)
    with pytest.raises(BindingFailed, match=text):
        is_complete(over, decision)


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            [at(claim("data"), "3")],
            'selectedNode annotation reset for PVC "data"',
            id="the node annotation is removed",
        ),
        pytest.param(
            [at(claim("data", annotations={SELECTED: "n2"}), "3")],
            'provisioning failed for PVC "data"',
            id="another node is annotated",
        ),
        pytest.param(
            [
                at(claim("data", annotations={SELECTED: "n1"}, bound_to="pv"), "3"),
                volume("pv", zone="b", claim="data"),
            ],
            'pv "pv" node affinity',
            id="the volume has another zone",
        ),
    ],
)
def test_an_impossible_provision_is_reported(objects: list[Any], text: str) -> None:
    over, decision = provision()
    add(over, *objects)
    with pytest.raises(BindingFailed, match=text):
        is_complete(over, decision)


def test_a_deleted_claim_is_reported() -> None:
    over, decision = provision()
    over.objects("v1 PersistentVolumeClaim").remove(decision.provisions[0].claim.claim)
    with pytest.raises(BindingFailed, match='pvc: persistentvolumeclaims "default/data" not found'):
        is_complete(over, decision)


@pytest.mark.parametrize("is_volume", [True, False])
def test_a_deleted_part_of_a_binding_is_reported_by_its_resource(is_volume: bool) -> None:
    """The message of upstream's cache, which differs from that of its lister."""
    over, decision = binding()
    (pair,) = decision.bindings
    if is_volume:
        over.objects("v1 PersistentVolume").remove(pair.volume.volume)
        text = 'failed to check binding: persistentvolumes "pv" not found'
    else:
        over.objects("v1 PersistentVolumeClaim").remove(pair.claim.claim)
        text = 'failed to check binding: persistentvolumeclaims "default/data" not found'
    with pytest.raises(BindingFailed, match=text):
        is_complete(over, decision)
