"""A decision: assumed, rolled back and written."""

from typing import Any

from bayplan.plugins.volume_binding.binding import claim_write, volume_write
from bayplan.testing.clusters import SampleCluster
from tests.plugins.volume_kit import claim, cluster, decided, storage_class, volume, zoned

MAKER = storage_class(provisioner="disk.test")
SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def world(*objects: Any) -> SampleCluster:
    return cluster(zoned(n1="a"), MAKER, *objects)


def test_a_volume_is_reserved_and_a_claim_gets_its_node() -> None:
    over = world(claim("new", "90Gi"), claim("old"), volume("pv"))
    decision = decided(over, "new", "old")
    decision.assume(over.volumes)
    reserved, result = over.volumes.volume("pv"), over.volumes.claim("default/new")
    assert reserved is not None and result is not None
    ref = reserved.volume.spec.claim_ref
    assert ref is not None and (ref.namespace, ref.name, ref.uid) == ("default", "old", "uid-old")
    assert result.selected_node == "n1"


def test_assumptions_that_are_not_written_are_rolled_back() -> None:
    over = world(claim("new", "90Gi"), claim("old"), volume("pv"))
    decision = decided(over, "new", "old")
    decision.assume(over.volumes)
    decision.bindings[0].is_written = True
    decision.restore(over.volumes)
    decision.restore(over.volumes)
    assert over.volumes.assumed_count == 1
    new_claim = over.volumes.claim("default/new")
    assert new_claim is not None and new_claim.selected_node is None


def test_a_write_expects_the_version_that_it_changes() -> None:
    over = world(claim("new", "90Gi"), claim("old"), volume("pv"))
    decision = decided(over, "new", "old")
    kind, namespace, name, patch = volume_write(decision.bindings[0])
    assert (kind, namespace, name) == ("v1 PersistentVolume", "", "pv")
    assert patch["metadata"] == {"resourceVersion": "1", "annotations": {BY_CONTROLLER: "yes"}}
    assert patch["spec"]["claimRef"]["name"] == "old"
    kind, namespace, name, patch = claim_write(decision.provisions[0])
    assert (kind, namespace, name) == ("v1 PersistentVolumeClaim", "default", "new")
    assert patch == {"metadata": {"resourceVersion": "1", "annotations": {SELECTED: "n1"}}}


def test_a_volume_with_the_right_claim_is_not_assumed() -> None:
    over = world(claim("data"), volume("pv", claim="data", phase="Bound"))
    [binding] = decided(over, "data").bindings
    assert binding.new is None


def test_a_volume_reserved_by_name_gets_the_uid_only() -> None:
    ref = {"namespace": "default", "name": "data"}
    over = world(claim("data"), volume("pv", claimRef=ref))
    [binding] = decided(over, "data").bindings
    assert binding.new is not None
    claim_ref = binding.new.spec.claim_ref
    assert claim_ref is not None and claim_ref.uid == "uid-data"
    assert binding.new.metadata.annotations is None
