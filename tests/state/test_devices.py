"""Claims, slices and classes as the scheduler sees them, and claims in flight."""

import msgspec

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocationResult,
    DeviceTaintRule,
    ResourceClaim,
)
from bayplan.api.objects import decode
from bayplan.state.allocated_devices import DeviceId
from bayplan.state.devices import Devices
from bayplan.state.node_table import NodeTable
from bayplan.state.object_store import ObjectStore
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    exactly,
    slice_of,
)

X = DeviceId(DRIVER, "n1", "x")
HAS_X = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
WANTS = as_claim(claim("c", exactly()))


def allocation() -> AllocationResult:
    assert HAS_X.allocation is not None
    return HAS_X.allocation


def world() -> tuple[ObjectStore, Devices]:
    store = ObjectStore()
    return store, Devices(NodeTable(), store)


# ---- claims --------------------------------------------------------------------------------


def test_devices_are_taken_while_the_api_says_so() -> None:
    store, devices = world()
    taken = devices.resource_claims.allocated
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert taken.is_whole_taken(X)
    store.of(RESOURCE_CLAIM).put(WANTS)
    assert not taken.is_taken(X)
    store.of(RESOURCE_CLAIM).put(HAS_X)
    store.of(RESOURCE_CLAIM).remove(HAS_X)
    assert not taken.is_taken(X)


def test_claims_that_were_there_before_count() -> None:
    store = ObjectStore()
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert Devices(NodeTable(), store).resource_claims.allocated.is_whole_taken(X)


def test_a_claim_in_flight_takes_its_devices_and_gives_them_back() -> None:
    store, devices = world()
    claims, given = devices.resource_claims, allocation()
    store.of(RESOURCE_CLAIM).put(WANTS)
    claims.put_in_flight(WANTS, given)
    assert claims.allocated.is_whole_taken(X)
    assert claims.pending_allocation(WANTS.uid) is given
    assert claims.remove_in_flight(WANTS.uid, given)
    assert not claims.remove_in_flight(WANTS.uid, given)
    assert not claims.allocated.is_taken(X)


def test_get_and_list_show_no_allocation_in_flight_and_the_counts_do() -> None:
    """Upstream: claimTracker's Get and List read the cache, ListAllAllocatedDevices adds those in
    flight."""
    store, devices = world()
    claims, given = devices.resource_claims, allocation()
    store.of(RESOURCE_CLAIM).put(WANTS)
    claims.put_in_flight(WANTS, given)
    found = claims.get(WANTS.metadata.namespace or "", WANTS.metadata.name)
    assert found is not None
    assert found.allocation is None
    assert [each.allocation for each in claims.list()] == [None]
    assert claims.pending_allocation(WANTS.uid) is given
    assert list(claims.allocated.devices()) == [X]


def test_when_the_api_tells_of_it_a_claim_is_in_flight_no_longer() -> None:
    store, devices = world()
    claims, given = devices.resource_claims, allocation()
    claims.put_in_flight(WANTS, given)
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert claims.pending_allocation(WANTS.uid) is None
    assert not claims.remove_in_flight(WANTS.uid, given)
    assert claims.allocated.is_whole_taken(X)
    store.of(RESOURCE_CLAIM).remove(HAS_X)
    assert not claims.allocated.is_taken(X)


def test_an_update_that_tells_of_no_allocation_leaves_the_claim_in_flight() -> None:
    store, devices = world()
    claims = devices.resource_claims
    claims.put_in_flight(WANTS, allocation())
    store.of(RESOURCE_CLAIM).put(WANTS)
    assert list(claims.in_flight) == [WANTS.uid]
    assert claims.allocated.is_whole_taken(X)


def test_nobody_gives_back_what_another_put_in_flight() -> None:
    _, devices = world()
    claims = devices.resource_claims
    claims.put_in_flight(WANTS, allocation())
    assert not claims.remove_in_flight(WANTS.uid, msgspec.structs.replace(allocation()))
    assert claims.allocated.is_whole_taken(X)


def test_another_claim_of_the_same_name_takes_nothing_over() -> None:
    store, devices = world()
    store.of(RESOURCE_CLAIM).put(HAS_X)
    meta = msgspec.structs.replace(WANTS.metadata, uid="another")
    store.of(RESOURCE_CLAIM).put(msgspec.structs.replace(WANTS, metadata=meta))
    assert not devices.resource_claims.allocated.is_taken(X)


# ---- claims whose writes the watch does not tell of yet ---------------------------------------


def version(number: int | str, found: ResourceClaim) -> ResourceClaim:
    meta = msgspec.structs.replace(found.metadata, resource_version=str(number))
    return msgspec.structs.replace(found, metadata=meta)


def test_an_assumed_version_is_read_until_the_watch_has_caught_up() -> None:
    store, devices = world()
    claims, told = devices.resource_claims, store.of(RESOURCE_CLAIM)
    told.put(version(9, WANTS))
    claims.put_in_flight(WANTS, allocation())
    assert claims.assume(version(11, HAS_X))
    assert claims.pending_allocation(WANTS.uid) is None
    for behind in (9, 10):
        told.put(version(behind, WANTS))
        assert claims.get("default", "c") == version(11, HAS_X)
        assert list(claims.list()) == list(claims.list("default")) == [version(11, HAS_X)]
        assert claims.allocated.is_whole_taken(X)
    told.put(version(11, HAS_X))
    told.put(version(12, WANTS))
    assert claims.get("default", "c") == version(12, WANTS)
    assert not claims.allocated.is_taken(X)


def test_what_turns_out_not_to_hold_is_restored_to_what_the_watch_tells() -> None:
    store, devices = world()
    claims = devices.resource_claims
    store.of(RESOURCE_CLAIM).put(version(9, WANTS))
    assert claims.assume(version(10, HAS_X))
    for _ in range(2):
        claims.restore("default", "c")
        assert claims.get("default", "c") == version(9, WANTS)
        assert not claims.allocated.is_taken(X)
    claims.restore("default", "nobody")


def test_only_a_newer_version_of_a_claim_that_is_known_is_assumed() -> None:
    store, devices = world()
    claims, told = devices.resource_claims, store.of(RESOURCE_CLAIM)
    assert not claims.assume(version(9, HAS_X))
    told.put(version(9, WANTS))
    assert not claims.assume(version(8, HAS_X))
    meta = msgspec.structs.replace(HAS_X.metadata, uid="another", resource_version="10")
    assert not claims.assume(msgspec.structs.replace(HAS_X, metadata=meta))
    assert not claims.allocated.is_taken(X)


def test_a_claim_that_goes_takes_what_was_assumed_of_it_along() -> None:
    store, devices = world()
    claims, told = devices.resource_claims, store.of(RESOURCE_CLAIM)
    told.put(version(9, WANTS))
    claims.assume(version(10, HAS_X))
    told.remove(WANTS)
    assert claims.get("default", "c") is None
    assert not claims.allocated.is_taken(X)
    told.put(version(11, WANTS))
    assert claims.get("default", "c") == version(11, WANTS)


def test_of_versions_that_are_no_numbers_the_one_that_is_told_last_counts() -> None:
    store, devices = world()
    claims, told = devices.resource_claims, store.of(RESOURCE_CLAIM)
    told.put(version("b", WANTS))
    assert claims.assume(version("c", HAS_X))
    told.put(version("a", WANTS))
    assert claims.get("default", "c") == version("a", WANTS)


# ---- slices --------------------------------------------------------------------------------


def rule(key: str = "broken", **selector: str) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": {"key": key, "effect": "NoSchedule"}}
    found = decode(DEVICE_TAINT_RULE, {"metadata": {"name": key}, "spec": spec})
    assert isinstance(found, DeviceTaintRule)
    return found


def tainted(store: ObjectStore, devices: Devices) -> dict[str, list[str]]:
    return {
        f"{each.spec.pool.name}/{device.name}": [taint.key for taint in device.taints or ()]
        for each in devices.resource_slices.list_with_device_taint_rules()
        for device in each.spec.devices or ()
    }


def test_rules_taint_the_devices_they_mean() -> None:
    store, devices = world()
    for name in ("n1", "n2"):
        store.of(RESOURCE_SLICE).put(as_slice(slice_of(name, "x", "y")))
    revision = devices.resource_slices.revision
    store.of(DEVICE_TAINT_RULE).put(rule("a", pool="n1", device="x"))
    store.of(DEVICE_TAINT_RULE).put(rule("b", driver="other"))
    store.of(DEVICE_TAINT_RULE).put(rule("c"))
    assert devices.resource_slices.revision == revision + 3
    expected = {"n1/x": ["a", "c"], "n1/y": ["c"], "n2/x": ["c"], "n2/y": ["c"]}
    assert tainted(store, devices) == expected
    store.of(DEVICE_TAINT_RULE).remove(rule("c"))
    assert tainted(store, devices)["n2/y"] == []


def test_a_slice_that_no_rule_means_stays_the_same_object() -> None:
    store, devices = world()
    found = as_slice(slice_of("n1", "x"))
    store.of(RESOURCE_SLICE).put(found)
    store.of(DEVICE_TAINT_RULE).put(rule("a", pool="n2"))
    assert devices.resource_slices.list_with_device_taint_rules() == (found,)


# ---- classes -------------------------------------------------------------------------------


def test_a_class_is_found_by_the_resource_it_stands_for() -> None:
    store, devices = world()
    store.of(DEVICE_CLASS).put(as_class(class_of("gpu", extendedResourceName="example.com/gpu")))
    classes = devices.device_classes
    for resource in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"):
        found = classes.behind(resource)
        assert found is not None
        assert found.metadata.name == "gpu"
    assert classes.behind("example.com/fpga") is None
    assert [each.metadata.name for each in classes.list()] == ["gpu"]
    store.of(DEVICE_CLASS).remove(as_class(class_of("gpu")))
    assert classes.behind("example.com/gpu") is None
    assert classes.get("gpu") is None


def test_of_two_classes_for_one_resource_the_newer_counts_then_the_first_by_name() -> None:
    store, devices = world()
    for name, created in (("a", "2026-01-01"), ("c", "2026-01-02"), ("b", "2026-01-02")):
        content = class_of(name, extendedResourceName="example.com/gpu")
        content["metadata"]["creationTimestamp"] = f"{created}T00:00:00Z"
        store.of(DEVICE_CLASS).put(as_class(content))
    found = devices.device_classes.behind("example.com/gpu")
    assert found is not None
    assert found.metadata.name == "b"
