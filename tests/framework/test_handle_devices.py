"""What the handle shows of devices is what the engine keeps."""

from bayplan.framework.handle import (
    DeviceClassLister,
    ResourceClaimTracker,
    ResourceSliceLister,
    SharedDRAManager,
)
from bayplan.testing import SampleCluster, handle
from tests.plugins.devices_kit import class_of, put


def test_a_handle_shows_claims_slices_and_classes() -> None:
    cluster = SampleCluster()
    put(cluster.store, class_of("gpu"))
    devices: SharedDRAManager = handle(cluster).devices
    classes: DeviceClassLister = devices.device_classes
    claims: ResourceClaimTracker = devices.resource_claims
    slices: ResourceSliceLister = devices.resource_slices
    assert [each.metadata.name for each in classes.list()] == ["gpu"]
    assert claims.list() == ()
    assert slices.list_with_device_taint_rules() == ()
    assert devices.counts("example.com/gpu") is None
    counts = devices.counts("deviceclass.resource.kubernetes.io/gpu")
    assert counts is not None and not counts["devices"].any()
