"""Taken devices follow the claims with allocations.

The devices of a class that a node may use, and how many of them are taken.

Claims, slices and classes as the scheduler sees them, and claims in flight.
"""

from typing import Any

import msgspec
import pytest

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
)
from bayplan.api.objects import Node, decode
from bayplan.api.quantity import NANOS
from bayplan.objects.object_store import ObjectStore
from bayplan.state.device_table import ANY_NODE, AllocatedDevices, ClassDevices, DeviceId, Devices
from bayplan.state.node_table import NodeTable
from bayplan.testing import node
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    device,
    exactly,
    slice_of,
)

# ---- allocated devices ----------------------------------------------------------------------


GPU = DeviceId("d", "p", "gpu")


def one(**fields: object) -> AllocationResult:
    result = DeviceRequestAllocationResult(driver="d", pool="p", device="gpu", **fields)  # pyright: ignore[reportArgumentType]
    return AllocationResult(devices=DeviceAllocationResult(results=(result,)))


def test_a_device_is_taken_while_its_claim_has_an_allocation() -> None:
    taken = AllocatedDevices()
    taken.add(one())
    assert taken.is_whole_taken(GPU)
    assert list(taken.devices()) == [GPU]
    taken.remove(one())
    assert not taken.is_taken(GPU)
    assert list(taken.devices()) == []


def test_admin_access_takes_nothing() -> None:
    taken = AllocatedDevices()
    taken.add(one(admin_access=True))
    assert not taken.is_taken(GPU)


def test_shares_of_a_device_add_up_and_do_not_take_the_device() -> None:
    taken = AllocatedDevices()
    first = one(share_id="1", consumed_capacity={"memory": "1"})
    taken.add(first)
    taken.add(one(share_id="2", consumed_capacity={"memory": "500m"}))
    assert taken.is_shared(GPU)
    assert taken.is_taken(GPU)
    assert not taken.is_whole_taken(GPU)
    assert taken.consumed(GPU) == {"memory": 3 * NANOS // 2}
    taken.remove(first)
    assert taken.consumed(GPU) == {"memory": NANOS // 2}


def test_two_claims_of_one_device_both_count() -> None:
    taken = AllocatedDevices()
    taken.add(one())
    taken.add(one())
    taken.remove(one())
    assert taken.is_whole_taken(GPU)


# ---- class devices --------------------------------------------------------------------------


N1, N2 = node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})
BOTH = (N1, N2)
FAST = "device.attributes['gpu.example.com'].fast"


def devices_of(*slices: dict[str, Any], expressions: tuple[str, ...] = ()) -> ClassDevices:
    return ClassDevices(as_class(class_of("gpu", *expressions)), map(as_slice, slices))


def counts(
    devices: ClassDevices, *taken: tuple[str, str], nodes: tuple[Node, ...] = BOTH
) -> list[tuple[int, int]]:
    """(devices, taken) of n1 and n2; ``taken``: (pool, device)."""
    counting = AllocatedDevices()
    if taken:
        allocation = as_claim(claim("c", status=allocated(*taken))).allocation
        assert allocation is not None
        counting.add(allocation)
    return list(devices.counts(nodes, counting))


def zone(name: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


# ---- which nodes may use a device ------------------------------------------------------------


def test_devices_of_a_node_count_on_that_node_only() -> None:
    devices = devices_of(slice_of("n1", "x", "y"))
    assert counts(devices, ("n1", "y"), ("n1", "elsewhere")) == [(2, 1), (0, 0)]
    assert list(devices.places_of(DeviceId(DRIVER, "n1", "x"))) == ["n1"]
    assert list(devices.places_of(DeviceId(DRIVER, "n2", "x"))) == []


@pytest.mark.parametrize(
    "reach", [{"allNodes": True}, {"nodeName": None}], ids=["all nodes", "no node named"]
)
def test_devices_without_a_particular_node_count_on_every_node(reach: dict[str, Any]) -> None:
    devices = devices_of(slice_of("net", "x", "y", **reach), slice_of("n2", "z"))
    assert counts(devices, ("net", "x")) == [(2, 1), (3, 1)]
    assert list(devices.places_of(DeviceId(DRIVER, "net", "x"))) == [ANY_NODE]


def test_devices_with_a_node_selector_count_on_the_nodes_that_match() -> None:
    devices = devices_of(slice_of("rack", "x", nodeSelector=zone("b")))
    assert counts(devices) == [(0, 0), (1, 0)]
    assert counts(devices, nodes=(node("n3", labels={"zone": "b"}), node("n4"))) == [(1, 0), (0, 0)]


def test_each_device_of_a_slice_may_select_its_nodes() -> None:
    listed = (
        device("x", nodeName="n1"),
        device("y", allNodes=True),
        device("z", nodeSelector=zone("a")),
        device("without-nodes"),
    )
    devices = devices_of(slice_of("pool", *listed, perDeviceNodeSelection=True))
    assert counts(devices, ("pool", "y"), ("pool", "z")) == [(3, 2), (1, 1)]


def test_slices_count_whatever_their_generation_and_taints() -> None:
    tainted = device("x", taints=[{"key": "bad", "effect": "NoExecute"}])
    old = {**slice_of("old", "y", nodeName="n1", pool={"name": "n1", "generation": 1})}
    new = slice_of("n1", tainted, pool={"generation": 2, "resourceSliceCount": 7})
    assert counts(devices_of(old, new)) == [(2, 0), (0, 0)]


# ---- which devices are of the class --------------------------------------------------------


def test_only_devices_that_match_all_selectors_count() -> None:
    listed = [device(name, attributes={"fast": fast}) for name, fast in (("x", True), ("y", False))]
    devices = devices_of(slice_of("n1", *listed), expressions=("true", FAST))
    assert counts(devices, ("n1", "x"), ("n1", "y")) == [(1, 1), (0, 0)]


def test_if_a_selector_fails_for_a_device_no_device_of_its_node_counts() -> None:
    plain, fast = device("x"), device("y", attributes={"fast": True})
    slices = slice_of("n1", fast), slice_of("n1-more", plain, nodeName="n1"), slice_of("n2", fast)
    assert counts(devices_of(*slices, expressions=(FAST,))) == [(0, 0), (1, 0)]
    # A selector is not evaluated if an earlier one is false.
    guarded = devices_of(
        *slices, expressions=("has(device.attributes['gpu.example.com'].fast)", FAST)
    )
    assert counts(guarded) == [(1, 0), (1, 0)]


def test_if_a_selector_does_not_compile_no_device_counts() -> None:
    devices = devices_of(slice_of("n1", "x"), slice_of("n2", "y"), expressions=("nonsense(",))
    assert counts(devices) == [(0, 0), (0, 0)]


def test_if_a_node_selector_does_not_parse_no_device_counts_on_any_node() -> None:
    broken = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Like"}]}]}
    devices = devices_of(slice_of("n1", "x"), slice_of("rack", "y", nodeSelector=broken))
    assert counts(devices) == [(0, 0), (0, 0)]


def test_selectors_cannot_read_whether_a_device_may_be_shared() -> None:
    shared = device("x", allowMultipleAllocations=True)
    devices = devices_of(slice_of("n1", shared), expressions=("device.allowMultipleAllocations",))
    assert counts(devices) == [(0, 0), (0, 0)]


# ---- slice by slice ------------------------------------------------------------------------


def test_a_changed_slice_concerns_its_old_and_new_nodes() -> None:
    devices = devices_of(slice_of("s", "x", nodeName="n1"))
    assert devices.put(as_slice(slice_of("s", "x", "y", nodeName="n2"))) == {"n1", "n2"}
    assert counts(devices) == [(0, 0), (2, 0)]
    assert devices.put(as_slice(slice_of("s", "z", allNodes=True))) == {"n2", ANY_NODE}
    assert counts(devices) == [(1, 0), (1, 0)]
    assert list(devices.places_of(DeviceId(DRIVER, "s", "x"))) == []


def test_removing_a_slice_removes_its_own_devices_only() -> None:
    one = slice_of("one", "x", nodeName="n1", pool={"name": "p"})
    other = slice_of("other", "x", nodeName="n1", pool={"name": "p"})
    devices = devices_of(one, other)
    assert counts(devices, ("p", "x")) == [(2, 2), (0, 0)]
    assert devices.remove(as_slice(one)) == {"n1"}
    assert counts(devices, ("p", "x")) == [(1, 1), (0, 0)]
    assert list(devices.places_of(DeviceId(DRIVER, "p", "x"))) == ["n1"]
    assert devices.remove(as_slice(one)) == set()


def test_a_slice_without_devices_of_the_class_changes_no_row() -> None:
    result = devices_of(expressions=("false",))
    assert result.put(as_slice(slice_of("n1", "x"))) == set()


# ---- devices --------------------------------------------------------------------------------


X = DeviceId(DRIVER, "n1", "x")
HAS_X = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
CLAIM = as_claim(claim("c", exactly()))


def allocation() -> AllocationResult:
    assert HAS_X.allocation is not None
    return HAS_X.allocation


def world() -> tuple[ObjectStore[Any], Devices]:
    store = ObjectStore[Any]()
    return store, Devices(NodeTable(), store)


# ---- claims --------------------------------------------------------------------------------


def test_devices_are_taken_while_the_api_has_the_allocation() -> None:
    store, devices = world()
    taken = devices.resource_claims.allocated
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert taken.is_whole_taken(X)
    store.of(RESOURCE_CLAIM).put(CLAIM)
    assert not taken.is_taken(X)
    store.of(RESOURCE_CLAIM).put(HAS_X)
    store.of(RESOURCE_CLAIM).remove(HAS_X)
    assert not taken.is_taken(X)


def test_claims_stored_earlier_count() -> None:
    store = ObjectStore[Any]()
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert Devices(NodeTable(), store).resource_claims.allocated.is_whole_taken(X)


def test_a_claim_in_flight_takes_its_devices_until_it_is_removed() -> None:
    store, devices = world()
    claims, allocated = devices.resource_claims, allocation()
    store.of(RESOURCE_CLAIM).put(CLAIM)
    claims.put_in_flight(CLAIM, allocated)
    assert claims.allocated.is_whole_taken(X)
    assert claims.pending_allocation(CLAIM.uid) is allocated
    assert claims.remove_in_flight(CLAIM.uid, allocated)
    assert not claims.remove_in_flight(CLAIM.uid, allocated)
    assert not claims.allocated.is_taken(X)


def test_get_and_list_omit_allocations_in_flight_and_the_counts_include_them() -> None:
    """Upstream: claimTracker's Get and List read the cache, ListAllAllocatedDevices adds those in
    flight."""
    store, devices = world()
    claims, allocated = devices.resource_claims, allocation()
    store.of(RESOURCE_CLAIM).put(CLAIM)
    claims.put_in_flight(CLAIM, allocated)
    result = claims.get(CLAIM.metadata.namespace or "", CLAIM.metadata.name)
    assert result is not None
    assert result.allocation is None
    assert [each.allocation for each in claims.list()] == [None]
    assert claims.pending_allocation(CLAIM.uid) is allocated
    assert list(claims.allocated.devices()) == [X]


def test_a_claim_is_in_flight_until_the_api_reports_its_allocation() -> None:
    store, devices = world()
    claims, allocated = devices.resource_claims, allocation()
    claims.put_in_flight(CLAIM, allocated)
    store.of(RESOURCE_CLAIM).put(HAS_X)
    assert claims.pending_allocation(CLAIM.uid) is None
    assert not claims.remove_in_flight(CLAIM.uid, allocated)
    assert claims.allocated.is_whole_taken(X)
    store.of(RESOURCE_CLAIM).remove(HAS_X)
    assert not claims.allocated.is_taken(X)


def test_an_update_without_an_allocation_leaves_the_claim_in_flight() -> None:
    store, devices = world()
    claims = devices.resource_claims
    claims.put_in_flight(CLAIM, allocation())
    store.of(RESOURCE_CLAIM).put(CLAIM)
    assert list(claims.in_flight) == [CLAIM.uid]
    assert claims.allocated.is_whole_taken(X)


def test_an_allocation_in_flight_is_removed_only_by_its_owner() -> None:
    _, devices = world()
    claims = devices.resource_claims
    claims.put_in_flight(CLAIM, allocation())
    assert not claims.remove_in_flight(CLAIM.uid, msgspec.structs.replace(allocation()))
    assert claims.allocated.is_whole_taken(X)


def test_another_claim_of_the_same_name_does_not_take_the_allocation_over() -> None:
    store, devices = world()
    store.of(RESOURCE_CLAIM).put(HAS_X)
    meta = msgspec.structs.replace(CLAIM.metadata, uid="another")
    store.of(RESOURCE_CLAIM).put(msgspec.structs.replace(CLAIM, metadata=meta))
    assert not devices.resource_claims.allocated.is_taken(X)


# ---- claims whose writes the watch does not tell of yet ---------------------------------------


def version(number: int | str, claim: ResourceClaim) -> ResourceClaim:
    meta = msgspec.structs.replace(claim.metadata, resource_version=str(number))
    return msgspec.structs.replace(claim, metadata=meta)


def test_an_assumed_version_is_read_until_the_watch_delivers_it_or_a_newer_one() -> None:
    store, devices = world()
    claims, stored = devices.resource_claims, store.of(RESOURCE_CLAIM)
    stored.put(version(9, CLAIM))
    claims.put_in_flight(CLAIM, allocation())
    assert claims.assume(version(11, HAS_X))
    assert claims.pending_allocation(CLAIM.uid) is None
    for behind in (9, 10):
        stored.put(version(behind, CLAIM))
        assert claims.get("default", "c") == version(11, HAS_X)
        assert list(claims.list()) == list(claims.list("default")) == [version(11, HAS_X)]
        assert claims.allocated.is_whole_taken(X)
    stored.put(version(11, HAS_X))
    stored.put(version(12, CLAIM))
    assert claims.get("default", "c") == version(12, CLAIM)
    assert not claims.allocated.is_taken(X)


def test_restoring_a_claim_returns_to_the_version_of_the_watch() -> None:
    store, devices = world()
    claims = devices.resource_claims
    store.of(RESOURCE_CLAIM).put(version(9, CLAIM))
    assert claims.assume(version(10, HAS_X))
    for _ in range(2):
        claims.restore("default", "c")
        assert claims.get("default", "c") == version(9, CLAIM)
        assert not claims.allocated.is_taken(X)
    claims.restore("default", "absent")


def test_only_a_newer_version_of_a_stored_claim_is_assumed() -> None:
    store, devices = world()
    claims, stored = devices.resource_claims, store.of(RESOURCE_CLAIM)
    assert not claims.assume(version(9, HAS_X))
    stored.put(version(9, CLAIM))
    assert not claims.assume(version(8, HAS_X))
    meta = msgspec.structs.replace(HAS_X.metadata, uid="another", resource_version="10")
    assert not claims.assume(msgspec.structs.replace(HAS_X, metadata=meta))
    assert not claims.allocated.is_taken(X)


def test_removing_a_claim_removes_its_assumed_version() -> None:
    store, devices = world()
    claims, stored = devices.resource_claims, store.of(RESOURCE_CLAIM)
    stored.put(version(9, CLAIM))
    claims.assume(version(10, HAS_X))
    stored.remove(CLAIM)
    assert claims.get("default", "c") is None
    assert not claims.allocated.is_taken(X)
    stored.put(version(11, CLAIM))
    assert claims.get("default", "c") == version(11, CLAIM)


def test_among_versions_that_are_not_numbers_the_last_stored_one_counts() -> None:
    store, devices = world()
    claims, stored = devices.resource_claims, store.of(RESOURCE_CLAIM)
    stored.put(version("b", CLAIM))
    assert claims.assume(version("c", HAS_X))
    stored.put(version("a", CLAIM))
    assert claims.get("default", "c") == version("a", CLAIM)


# ---- slices --------------------------------------------------------------------------------


def rule(key: str = "broken", **selector: str) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": {"key": key, "effect": "NoSchedule"}}
    device_taint_rule = decode(DEVICE_TAINT_RULE, {"metadata": {"name": key}, "spec": spec})
    assert isinstance(device_taint_rule, DeviceTaintRule)
    return device_taint_rule


def tainted(store: ObjectStore[Any], devices: Devices) -> dict[str, list[str]]:
    return {
        f"{each.spec.pool.name}/{device.name}": [taint.key for taint in device.taints or ()]
        for each in devices.resource_slices.list_with_device_taint_rules()
        for device in each.spec.devices or ()
    }


def test_rules_taint_the_devices_that_they_select() -> None:
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


def test_a_rule_without_a_selector_matches_no_device_and_one_with_an_empty_selector_all() -> None:
    store, devices = world()
    store.of(RESOURCE_SLICE).put(as_slice(slice_of("n1", "x")))
    without = rule("without")
    without = msgspec.structs.replace(
        without, spec=msgspec.structs.replace(without.spec, device_selector=None)
    )
    store.of(DEVICE_TAINT_RULE).put(without)
    assert tainted(store, devices) == {"n1/x": []}
    store.of(DEVICE_TAINT_RULE).put(rule("empty"))
    assert tainted(store, devices) == {"n1/x": ["empty"]}


def test_a_slice_without_a_matching_rule_is_the_same_object() -> None:
    store, devices = world()
    resource_slice = as_slice(slice_of("n1", "x"))
    store.of(RESOURCE_SLICE).put(resource_slice)
    store.of(DEVICE_TAINT_RULE).put(rule("a", pool="n2"))
    assert devices.resource_slices.list_with_device_taint_rules() == (resource_slice,)


# ---- classes -------------------------------------------------------------------------------


def test_a_class_is_looked_up_by_its_extended_resource() -> None:
    store, devices = world()
    store.of(DEVICE_CLASS).put(as_class(class_of("gpu", extendedResourceName="example.com/gpu")))
    classes = devices.device_classes
    for resource in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"):
        result = classes.behind(resource)
        assert result is not None
        assert result.metadata.name == "gpu"
    assert classes.behind("example.com/fpga") is None
    assert [each.metadata.name for each in classes.list()] == ["gpu"]
    store.of(DEVICE_CLASS).remove(as_class(class_of("gpu")))
    assert classes.behind("example.com/gpu") is None
    assert classes.get("gpu") is None


def test_among_classes_for_one_resource_the_newest_counts_and_then_the_first_by_name() -> None:
    store, devices = world()
    for name, created in (("a", "2026-01-01"), ("c", "2026-01-02"), ("b", "2026-01-02")):
        content = class_of(name, extendedResourceName="example.com/gpu")
        content["metadata"]["creationTimestamp"] = f"{created}T00:00:00Z"
        store.of(DEVICE_CLASS).put(as_class(content))
    result = devices.device_classes.behind("example.com/gpu")
    assert result is not None
    assert result.metadata.name == "b"
