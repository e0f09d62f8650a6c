"""A rejection for devices says which request fails where, and what became of the devices."""

from typing import Any

from tests.explain.reported_causes import case, causes_in, details_in
from tests.kit.manifests import Content, node, pod
from tests.plugins.devices_kit import (
    allocated,
    claim,
    class_of,
    device,
    exactly,
    first_of,
    slice_of,
)

OF_DRIVER = 'device.driver == "gpu.example.com"'


def of_kind(kind: str, content: Content) -> Content:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, **content}


def slices(**devices: tuple[Any, ...]) -> list[Content]:
    """Node → its devices."""
    return [of_kind("ResourceSlice", slice_of(name, *own)) for name, own in devices.items()]


def gpu(name: str = "gpu", expression: str = OF_DRIVER) -> Content:
    return of_kind("DeviceClass", class_of(name, expression))


def claim_of(*requests: Content, **fields: Any) -> Content:
    content = claim("c", *requests, **fields)
    return of_kind("ResourceClaim", content)


def user(name: str = "p", of: str = "c", **spec: Any) -> Content:
    return pod(name, resourceClaims=[{"name": of, "resourceClaimName": of}], **spec)


def test_taken_and_tainted_devices_are_counted_on_each_node() -> None:
    sick = device("b", taints=[{"key": "sick", "effect": "NoExecute"}])
    taken = of_kind(
        "ResourceClaim",
        claim("t", exactly(), status=allocated(("n1", "a"), users=[("other", "uid-other")])),
    )
    other = user("other", of="t", nodeName="n1")
    other["metadata"]["uid"] = "uid-other"
    assert details_in(
        node("n1"),
        node("n2"),
        gpu(),
        *slices(n1=("a", sick), n2=("a",)),
        taken,
        other,
        claim_of(exactly(count=2)),
        user(),
    ) == [
        "ResourceClaim default/c, request r, requests 2 of DeviceClass gpu",
        (
            "too few on n1: 2 devices match (2 of gpu.example.com), 1 allocated, 1 with the taint "
            "sick:NoExecute"
        ),
        "too few on n2: 1 device matches (1 of gpu.example.com)",
        "driver gpu.example.com has 3 devices in the cluster, 1 allocated",
    ]


def test_the_request_that_fails_is_named() -> None:
    nic = gpu("nic", 'device.driver == "nic.example.com"')
    requests = claim_of(exactly("g"), exactly("n", "nic"))
    lines = details_in(node("n1"), gpu(), nic, *slices(n1=("a",)), requests, user())
    assert lines[:3] == [
        "ResourceClaim default/c, request g, requests 1 of DeviceClass gpu",
        "ResourceClaim default/c, request n, requests 1 of DeviceClass nic",
        "too few on n1: 0 devices match",
    ]


def test_each_alternative_has_a_line() -> None:
    alternatives = first_of("r", two={"count": 2}, four={"count": 4})
    lines = details_in(node("n1"), gpu(), *slices(n1=("a",)), claim_of(alternatives), user())
    assert [line.partition(",")[2] for line in lines if "requests" in line] == [
        " request r/two, requests 2 of DeviceClass gpu",
        " request r/four, requests 4 of DeviceClass gpu",
    ]


def test_a_constraint_that_the_devices_of_a_node_break_is_named() -> None:
    devices = [device(name, attributes={"numa": number}) for name, number in (("a", 0), ("b", 1))]
    constraints = [{"matchAttribute": "gpu.example.com/numa"}]
    requests = claim_of(exactly(count=2), constraints=constraints)
    lines = details_in(node("n1"), gpu(), *slices(n1=tuple(devices)), requests, user())
    assert lines[1] == (
        "enough devices for each request alone, not for all together, on n1: matchAttribute "
        "gpu.example.com/numa"
    )


def test_a_cluster_without_slices_says_so() -> None:
    lines = details_in(node("n1"), gpu(), claim_of(exactly()), user())
    assert lines[-1] == "the cluster offers no devices: it has no ResourceSlice"


def test_an_extended_resource_is_followed_to_the_devices_behind_it() -> None:
    assert details_in(case("44-draext.yaml"), pod="default/two") == [
        "the pod's nvidia.com/gpu requests 2 of DeviceClass gpu",
        "too few on n1: 2 devices match (2 of gpu.example.com), 1 with the taint bad:NoSchedule",
        "too few on n2: 1 device matches (1 of gpu.example.com)",
        "driver gpu.example.com has 3 devices in the cluster, 0 allocated",
    ]


def test_an_error_of_a_selector_is_the_cause() -> None:
    expression = 'device.attributes["gpu.example.com"].model == "h100"'
    requests = claim_of(exactly(selectors=[{"cel": {"expression": expression}}]))
    [cause] = causes_in(node("n1"), gpu(), *slices(n1=("a",)), requests, user())
    assert cause.plugin == "DynamicResources"
    assert "CEL runtime error: no such key: model" in cause.reason
