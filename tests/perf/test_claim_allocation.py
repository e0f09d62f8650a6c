"""Claims get devices without pods, each of some node that has enough."""

from typing import Any

from bayplan.adapters.object_names import ObjectKey, object_key
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import NODE, ApiObject, decode
from bayplan.config.feature_gates import default_gates
from bayplan.perf.claim_allocation import allocations
from bayplan.testing import node
from tests.plugins.devices_kit import allocated, claim, class_of, exactly, slice_of

OBJECTS: dict[str, list[Any]] = {
    DEVICE_CLASS: [class_of()],
    RESOURCE_SLICE: [slice_of("n1", "a"), slice_of("n2", "a")],
    RESOURCE_CLAIM: [claim(name, exactly()) for name in ("c1", "c2", "c3")],
}


def objects_of(contents: dict[str, list[Any]]) -> Any:
    def objects(kind: str) -> list[tuple[ObjectKey, ApiObject]]:
        if kind == NODE:
            return [(object_key(NODE, "", name), node(name)) for name in ("n1", "n2")]
        found = [decode(kind, content) for content in contents.get(kind, ())]
        return [(object_key(kind, "default", each.metadata.name), each) for each in found]

    return objects


def given(contents: dict[str, list[Any]], namespace: str = "") -> dict[str, Any]:
    """Claim → pools of its devices."""
    found = allocations(objects_of(contents), namespace, default_gates())
    return {
        key.name: patch
        and [each["pool"] for each in patch["status"]["allocation"]["devices"]["results"]]
        for key, patch in found
    }


def test_each_claim_gets_devices_that_no_other_has() -> None:
    found = given(OBJECTS)
    assert sorted([found["c1"], found["c2"]], key=str) == [["n1"], ["n2"]]
    assert found["c3"] is None


def test_the_same_again_is_the_same() -> None:
    assert given(OBJECTS) == given(OBJECTS)


def test_claims_that_have_devices_keep_them_and_others_get_the_rest() -> None:
    has_some = claim("c1", exactly(), status=allocated(("n1", "a")))
    contents = {**OBJECTS, RESOURCE_CLAIM: [has_some, claim("c2", exactly())]}
    assert given(contents) == {"c2": ["n2"]}


def test_claims_of_other_namespaces_are_left_alone() -> None:
    assert given(OBJECTS, "elsewhere") == {}
