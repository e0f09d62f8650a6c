"""The allocator compared with brute force: its results are valid, and it fails only without any."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.dynamic_resources.allocator import PoolsByNode
from bayplan.plugins.dynamic_resources.pools import AllocationError, NodeAllocationFailed
from bayplan.state.device_table import Devices
from bayplan.state.node_table import NodeTable
from bayplan.testing import node
from tests.plugins.devices_kit import (
    DRIVER,
    all_of,
    allocate_on,
    claim,
    class_of,
    device,
    exactly,
    first_of,
    put,
    slice_of,
)

Json = dict[str, Any]

# ---- small instances -----------------------------------------------------------------------

MODELS, NUMAS = ("a", "b"), (0, 1)


@st.composite
def slices(draw: st.DrawFn) -> list[Json]:
    """Up to five devices of one node, with a model, a numa node, and memory of one chip."""
    count = draw(st.integers(1, 5))
    devices: list[Json] = []
    for index in range(count):
        attributes = {"model": draw(st.sampled_from(MODELS)), "numa": draw(st.sampled_from(NUMAS))}
        new_device = device(f"d{index}", attributes=attributes)
        memory = draw(st.integers(0, 2))
        if memory:
            counters = {"memory": {"value": str(memory)}}
            new_device["consumesCounters"] = [{"counterSet": "chip", "counters": counters}]
        if draw(st.booleans()) and draw(st.booleans()):
            new_device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        devices.append(new_device)
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    total = {"memory": {"value": str(draw(st.integers(0, 4)))}}
    chip = {"name": "chip", "counters": total}
    return [
        slice_of("n1", *devices, pool=pool, nodeName="n1"),
        slice_of("counters", pool=pool, nodeName="n1", sharedCounters=[chip]),
    ]


@st.composite
def fields_of_request(draw: st.DrawFn) -> Json:
    """Draws the fields of one request."""
    fields: Json = {"count": draw(st.integers(1, 2))}
    model = draw(st.sampled_from(("", *MODELS)))
    if model:
        fields["expressions"] = (f'device.attributes["{DRIVER}"].model == "{model}"',)
    if draw(st.booleans()):
        fields["tolerations"] = [{"operator": "Exists"}]
    return fields


@st.composite
def claims(draw: st.DrawFn) -> list[Json]:
    claims: list[Json] = []
    for index in range(draw(st.integers(1, 2))):
        requests: list[Json] = []
        for number in range(draw(st.integers(1, 2))):
            name = f"r{number}"
            if draw(st.booleans()):
                requests.append(exactly(name, **draw(fields_of_request())))
            else:
                requests.append(
                    first_of(name, x=draw(fields_of_request()), y=draw(fields_of_request()))
                )
        kind = draw(st.sampled_from(("", "matchAttribute", "distinctAttribute")))
        constraints = [{kind: f"{DRIVER}/numa"}] if kind else []
        claims.append(claim(f"c{index}", *requests, constraints=constraints))
    return claims


# ---- brute force ---------------------------------------------------------------------------


def alternatives(request: Json) -> list[tuple[str, Json]]:
    if "exactly" in request:
        return [(request["name"], request["exactly"])]
    name = request["name"]
    return [(f"{name}/{each['name']}", each) for each in request["firstAvailable"]]


def means(fields: Json, content: Json) -> bool:
    models = [each["cel"]["expression"].rsplit('"')[-2] for each in fields["selectors"]]
    model = content["attributes"]["model"]["string"]
    tolerated = not content.get("taints") or bool(fields.get("tolerations"))
    return tolerated and all(each == model for each in models)


def is_valid(places: list[tuple[Json, str, Json, Json]], chip: int) -> bool:
    """Whether devices are distinct, selected, within counters and constraints."""
    devices = [device["name"] for *_, device in places]
    if len(set(devices)) != len(devices):
        return False
    if not all(means(fields, device) for _, _, fields, device in places):
        return False
    drawn = [
        int(each["counters"]["memory"]["value"])
        for *_, device in places
        for each in device.get("consumesCounters", ())
    ]
    if drawn and sum(drawn) > chip:
        return False
    return all(
        are_constrained([device for owner, *_, device in places if owner is content], content)
        for content, *_ in places
    )


def are_constrained(devices: list[Json], content: Json) -> bool:
    numas = [device["attributes"]["numa"]["int"] for device in devices]
    for each in content["spec"]["devices"]["constraints"]:
        if "matchAttribute" in each and len(set(numas)) > 1:
            return False
        if "distinctAttribute" in each and len(set(numas)) < len(numas):
            return False
    return True


def exists(contents: list[Json], claims: list[Json]) -> bool:
    """Whether any choice of alternatives and devices is valid."""
    devices = contents[0]["spec"]["devices"]
    chip = int(contents[1]["spec"]["sharedCounters"][0]["counters"]["memory"]["value"])
    requests = [(each, r) for each in claims for r in each["spec"]["devices"]["requests"]]
    for chosen in product(*(alternatives(request) for _, request in requests)):
        slots = [
            (content, name, fields)
            for (content, _), (name, fields) in zip(requests, chosen, strict=True)
            for _ in range(fields["count"])
        ]
        if len(slots) > len(devices):
            continue
        for chosen_devices in product(devices, repeat=len(slots)):
            places = [(*slot, each) for slot, each in zip(slots, chosen_devices, strict=True)]
            if is_valid(places, chip):
                return True
    return False


def placed(
    contents: list[Json], requests: list[Json], allocations: list[list[str]]
) -> list[tuple[Json, str, Json, Json]]:
    """The result of the allocator in the form that `is_valid` checks."""
    devices = {each["name"]: each for each in contents[0]["spec"]["devices"]}
    places: list[tuple[Json, str, Json, Json]] = []
    for content, results in zip(requests, allocations, strict=True):
        request_fields = {
            name: fields
            for request in content["spec"]["devices"]["requests"]
            for name, fields in alternatives(request)
        }
        for result in results:
            name, _, where = result.partition(" ")
            fields, chosen = request_fields[name], devices[where.rpartition("/")[2]]
            places.append((content, name, fields, chosen))
    return places


@given(contents=slices(), claims=claims())
def test_the_allocator_has_a_result_if_and_only_if_brute_force_has_one(
    contents: list[Json], claims: list[Json]
) -> None:
    devices = allocate_on("n1", tuple(contents), *claims)
    assert (devices is not None) is exists(contents, claims)
    if devices is not None:
        places = placed(contents, claims, devices)
        chip = int(contents[1]["spec"]["sharedCounters"][0]["counters"]["memory"]["value"])
        assert is_valid(places, chip)
        assert_complete(claims, devices)


def assert_complete(contents: list[Json], allocations: list[list[str]]) -> None:
    """Check that each request has its count of devices, all under one of its names."""
    for content, results in zip(contents, allocations, strict=True):
        names = [each.partition(" ")[0] for each in results]
        for request in content["spec"]["devices"]["requests"]:
            options = dict(alternatives(request))
            chosen = {name for name in names if name in options}
            assert len(chosen) == 1
            name = chosen.pop()
            assert names.count(name) == options[name]["count"]


# ---- what is wrong with claims, classes and pools ------------------------------------------

SLICE = slice_of("n1", "x")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (exactly(allocationMode="Some"), "unsupported count mode Some"),
        (exactly(class_name=""), "missing device class name"),
        (exactly(class_name="ghost"), "could not retrieve device class ghost"),
        (exactly(derivedAttributes=[{}]), "cannot handle request with derived attributes"),
        (exactly(selectors=[{}]), "selector #0: CEL expression empty"),
    ],
)
def test_an_invalid_request_is_reported_with_its_name(request_: Json, message: str) -> None:
    with pytest.raises(AllocationError, match=rf"^claim default/c, request r.*{message}"):
        allocate_on("n1", (SLICE,), claim("c", request_))


def test_all_devices_are_not_counted_while_a_pool_is_being_updated() -> None:
    part = slice_of("n1", "x", pool={"name": "n1", "generation": 1, "resourceSliceCount": 2})
    with pytest.raises(AllocationError, match=r"resource pool .*/n1 is currently being updated"):
        allocate_on("n1", (part,), claim("c", all_of()))
    assert allocate_on("n1", (part,), claim("c", exactly())) is None


def test_an_invalid_pool_is_reported_if_no_other_pool_suffices() -> None:
    broken = slice_of("broken", "x", "x", nodeName="n1")
    assert allocate_on("n1", (broken, SLICE), claim("c", exactly())) == [["r n1/x"]]
    with pytest.raises(NodeAllocationFailed, match="invalid resource pools were encountered"):
        allocate_on("n1", (broken, SLICE), claim("c", exactly(count=2)))
    with pytest.raises(AllocationError, match="is currently invalid"):
        allocate_on("n1", (broken,), claim("c", all_of()))


# ---- caches ----------------------------------------------------------------------------


def test_pools_of_a_node_are_cached_until_a_slice_or_the_node_changes() -> None:
    store = ObjectStore[Any]()
    put(store, SLICE, class_of())
    pools, one = PoolsByNode(Devices(NodeTable(), store).resource_slices), node("n1")
    pool_list = pools.pools(one)
    assert pools.pools(one) is pool_list
    assert pools.pools(node("n1", labels={"a": "b"})) is not pool_list
    pool_list = pools.pools(one)
    put(store, slice_of("n2", "x"))
    assert pools.pools(one) is not pool_list
