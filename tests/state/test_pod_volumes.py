"""What of a pod's volumes counts."""

from typing import Any

from bayplan.state.pod_volumes import NO_VOLUMES, PodVolumes
from bayplan.testing import pod


def volumes_of(**sources: Any) -> PodVolumes:
    volumes = [{"name": name, **source} for name, source in sources.items()]
    return pod("p", spec={"volumes": volumes}).shape.volumes


def test_what_every_node_has_does_not_count() -> None:
    assert volumes_of(a={"configMap": {"name": "c"}}, b={"emptyDir": {}}) is NO_VOLUMES


def test_claims_stand_in_the_order_of_the_spec() -> None:
    found = volumes_of(
        b={"persistentVolumeClaim": {"claimName": "y"}},
        a={"persistentVolumeClaim": {"claimName": "x"}},
    )
    assert found.claim_names() == ["y", "x"]
    assert found.has_any and not found.has_ephemeral


def test_a_claim_made_for_the_pod_is_named_after_it() -> None:
    one = pod("web", spec={"volumes": [{"name": "scratch", "ephemeral": {}}]})
    assert one.shape.volumes.has_ephemeral
    assert one.shape.volumes.claim_names() == []
    assert list(one.claim_keys()) == ["default/web-scratch"]


def test_a_disk_that_a_driver_serves_is_migrated_and_may_be_exclusive() -> None:
    found = volumes_of(
        gce={"gcePersistentDisk": {"pdName": "d"}}, net={"cinder": {"volumeID": "c"}}
    )
    assert [volume.name for volume in found.migrated] == ["gce", "net"]
    assert [volume.name for volume in found.exclusive] == ["gce"]


def test_inline_drivers_are_known_but_concern_nobody_else() -> None:
    found = volumes_of(a={"csi": {"driver": "disk.test"}})
    assert found.inline_drivers == ("disk.test",)
    assert not found.has_any
