"""Claims, volumes and capacities as the plugins read them."""

from typing import Any, cast

import pytest

from bayplan.api.objects import decode
from bayplan.api.selectors import SelectorError
from bayplan.api.storage_objects import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from bayplan.state.storage_infos import CapacityInfo, ClaimInfo, VolumeInfo
from bayplan.testing import pod
from tests.plugins.volume_kit import capacity, claim, csi, volume


def claim_info(*args: Any, **fields: Any) -> ClaimInfo:
    content = claim(*args, **fields)
    return ClaimInfo(cast(PersistentVolumeClaim, decode("v1 PersistentVolumeClaim", content)))


def volume_info(*args: Any, **fields: Any) -> VolumeInfo:
    content = volume(*args, **fields)
    return VolumeInfo(cast(PersistentVolume, decode("v1 PersistentVolume", content)))


def capacity_info(*args: Any, **fields: Any) -> CapacityInfo:
    kind = "storage.k8s.io/v1 CSIStorageCapacity"
    return CapacityInfo(cast(CSIStorageCapacity, decode(kind, capacity(*args, **fields))))


BETA = "volume.beta.kubernetes.io/storage-class"


def test_the_old_annotation_overrides_the_field() -> None:
    assert claim_info("c", annotations={BETA: "old"}).class_name == "old"
    assert claim_info("c").class_name == "late"
    assert claim_info("c", class_name=None).class_name == ""
    assert volume_info("pv", meta={"annotations": {BETA: "old"}}).class_name == "old"


def test_sizes_are_exact() -> None:
    assert claim_info("c", "1500m").size_bytes == 2
    assert claim_info("c", "1Gi").size_bytes == 2**30
    assert claim_info("c", None).size_nanos is None
    assert volume_info("pv", "1G").size_bytes == 10**9


def test_a_claim_is_bound_when_the_controller_has_annotated_it() -> None:
    assert claim_info("c", bound_to="pv").is_fully_bound
    assert not claim_info("c", volumeName="pv").is_fully_bound


def test_a_volume_is_claimed_by_name_and_by_uid_if_it_has_one() -> None:
    one = claim_info("data")
    assert volume_info("pv", claim="data").is_claimed_by(one)
    ref = {"namespace": "default", "name": "data"}
    assert volume_info("pv", claimRef=ref).is_claimed_by(one)
    assert not volume_info("pv", claimRef={**ref, "uid": "another"}).is_claimed_by(one)
    assert not volume_info("pv", claimRef={**ref, "namespace": "other"}).is_claimed_by(one)
    assert not volume_info("pv").is_claimed_by(one)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], (), id="no term matches no node"),
        pytest.param([{}], (), id="an empty term matches no node"),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
            (),
            id="the name of a node is not read",
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}],
            ((),),
            id="NotIn on the name is always true",
        ),
        pytest.param(
            [{"matchExpressions": [{"key": "a", "operator": "Wrong", "values": ["x"]}]}],
            (),
            id="an invalid term matches no node",
        ),
    ],
)
def test_terms_without_conditions_on_labels(terms: Any, expected: Any) -> None:
    affinity = {"required": {"nodeSelectorTerms": terms}}
    assert volume_info("pv", nodeAffinity=affinity).node_terms == expected


def test_a_volume_without_affinity_matches_every_node() -> None:
    assert volume_info("pv").node_terms is None
    assert volume_info("pv", nodeAffinity={}).node_terms is None


def test_a_csi_volume_has_a_handle() -> None:
    csi_volume = volume_info("pv", **csi("h")).csi_volume
    assert csi_volume is not None and csi_volume.handle == "h"
    disk = volume_info("pv", azureDisk={"diskURI": "u", "kind": "Shared"})
    assert disk.csi_volume is None
    assert volume_info("pv", hostPath={"path": "p"}).csi_volume is None


def test_a_selector_that_does_not_parse_is_reported() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}
    with pytest.raises(SelectorError):
        _ = claim_info("c", selector=wrong).selector
    assert claim_info("c").selector is None


def test_an_ephemeral_claim_belongs_to_its_controlling_pod() -> None:
    owner = {"kind": "Pod", "name": "web", "uid": "uid-default/web", "controller": True}
    one = claim_info("web-scratch", meta={"ownerReferences": [owner]})
    assert one.is_for(pod("web"))
    assert not one.is_for(pod("other"))
    mere_owner = {**owner, "controller": False}
    assert not claim_info("c", meta={"ownerReferences": [mere_owner]}).is_for(pod("web"))


def test_the_maximum_volume_size_overrides_the_capacity() -> None:
    assert capacity_info("c", "5Gi").volume_bytes_max == 5 * 2**30
    assert capacity_info("c", "5Gi", maximumVolumeSize="1Gi").volume_bytes_max == 2**30
    assert capacity_info("c", "5Gi", maximumVolumeSize="1Gi").capacity_bytes == 5 * 2**30


def test_a_capacity_without_a_topology_matches_no_node() -> None:
    assert capacity_info("c", "5Gi", nodeTopology=None).nodes.nothing
    assert capacity_info("c", "5Gi").nodes.is_everything
