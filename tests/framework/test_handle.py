"""Extenders and devices, as the handle shows them to plugins."""

from bayplan.engine.extenders.results import ConfiguredExtender
from bayplan.framework.handle import (
    DeviceClassLister,
    Extender,
    ResourceClaimTracker,
    ResourceSliceLister,
    SharedDRAManager,
)
from bayplan.ports import ExtenderVerb
from bayplan.testing import SampleCluster, handle, pod
from tests.plugins.devices_kit import class_of, put


def test_a_handle_lists_the_extenders_and_their_verbs() -> None:
    assert handle().extenders == ()
    gpus = frozenset(("example.com/gpu",))
    verbs = frozenset((ExtenderVerb.PREEMPT,))
    configured: Extender = ConfiguredExtender("http://a", verbs, managed_resources=gpus)
    (result,) = handle(SampleCluster(extenders=(configured,))).extenders
    assert (result.name, result.verbs, result.weight, result.ignorable) == (
        "http://a", verbs, 1, False,
    )  # fmt: skip
    assert not result.is_interested(pod("p"))
    assert result.is_interested(pod("p", requests={"example.com/gpu": 1}))


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
