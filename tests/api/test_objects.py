"""Objects from bytes: what is decoded, what null means, and that only DecodeError is raised."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from bayplan.api import objects

TYPES: dict[str, type[Any]] = {
    objects.POD: objects.Pod,
    objects.NODE: objects.Node,
    objects.NAMESPACE: objects.Namespace,
    objects.SERVICE: objects.Service,
    objects.REPLICATION_CONTROLLER: objects.Service,
    objects.REPLICA_SET: objects.Workload,
    objects.STATEFUL_SET: objects.Workload,
    objects.PRIORITY_CLASS: objects.PriorityClass,
}
UNKNOWN = "example.com/v1 Quota"


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_and_plain_values_decode_to_equal_objects(kind: str) -> None:
    plain = {"metadata": {"name": "a", "labels": {"k": "v"}}, "unheardOf": [1]}
    result = objects.decode(kind, json.dumps(plain).encode())
    assert isinstance(result, TYPES[kind])
    assert result == objects.decode(kind, plain)
    assert result.metadata.labels == {"k": "v"}


def test_an_unknown_kind_keeps_everything_and_has_typed_metadata() -> None:
    plain = {"metadata": {"name": "a", "namespace": None}, "content": 5, "spec": {"x": None}}
    unstructured = objects.decode(UNKNOWN, json.dumps(plain).encode())
    assert isinstance(unstructured, objects.Unstructured)
    assert (unstructured.metadata.name, unstructured.metadata.namespace) == ("a", None)
    assert unstructured.content == plain


# ---- null ----------------------------------------------------------------------------------


def all_null(shape: inspect.Type) -> Any:
    """A value of this type. Every member that can be null on the wire is null."""
    if isinstance(shape, inspect.UnionType):
        within = [all_null(part) for part in shape.types if not isinstance(part, inspect.NoneType)]
        return next((value for value in within if value is not None), None)
    if isinstance(shape, inspect.VarTupleType):
        item = all_null(shape.item_type)
        return None if item is None else [item]
    if isinstance(shape, inspect.StructType):
        return {field.encode_name: all_null(field.type) for field in shape.fields}
    return None


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", TYPES)
def test_every_member_may_be_null_and_is_then_absent(kind: str) -> None:
    nulls = all_null(inspect.type_info(TYPES[kind]))
    assert nulls["metadata"]["name"] is None
    assert objects.decode(kind, json.dumps(nulls).encode()) == objects.decode(
        kind, without_nulls(nulls)
    )
    assert objects.decode(kind, nulls) == objects.decode(kind, without_nulls(nulls))
    assert (
        objects.decode(kind, b'{"metadata": null, "spec": null, "status": null}') == TYPES[kind]()
    )


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "v1 Pod", id="nothing"),
        pytest.param(b"[]", "array", id="a list"),
        pytest.param(b"null", "null", id="null"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', "utf-8", id="no UTF-8"),
        pytest.param(
            b'{"spec":{"priority":"high"}}', "$.spec.priority", id="a value that is not a number"
        ),
        pytest.param(b'{"spec":{"priority":1%s}}' % (b"0" * 30), "$.spec.priority", id="too wide"),
        pytest.param(b'{"spec":{"priority":null,"volumes":1}}', "$.spec.volumes", id="beside null"),
        pytest.param(b'{"spec":' * 100_000, "recursion", id="too deep"),
    ],
)
def test_an_invalid_object_is_an_error_that_names_the_path(content: bytes, message: str) -> None:
    with pytest.raises(objects.DecodeError, match="v1 Pod") as caught:
        objects.decode(objects.POD, content)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"[]", b'{"metadata":[]}', b'{"metadata":{"name":1}}', b"{"])
def test_an_unknown_kind_must_be_an_object_with_metadata_too(content: bytes) -> None:
    with pytest.raises(objects.DecodeError, match=UNKNOWN):
        objects.decode(UNKNOWN, content)


def test_plain_values_that_are_not_an_object_are_an_error() -> None:
    cyclic: dict[str, Any] = {"metadata": {"name": 1}}
    cyclic["spec"] = cyclic
    for content in ([], None, 5, {1: 2}, {"metadata": {"labels": {1: "a"}}}, cyclic):
        for kind in (objects.POD, UNKNOWN):
            with pytest.raises(objects.DecodeError):
                objects.decode(kind, content)  # type: ignore[arg-type]


FIELDS = sorted(
    {
        field.encode_name
        for kind in TYPES.values()
        for outer in inspect.type_info(kind).fields  # type: ignore[union-attr]
        if isinstance(outer.type, inspect.StructType)
        for field in (outer, *outer.type.fields)
    }
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just("1Gi")
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
)
KINDS = st.sampled_from([*TYPES, UNKNOWN])


def ends_well(kind: str, content: Any) -> bool:
    """Decoded to its type, or refused by an error that names the kind."""
    try:
        return isinstance(objects.decode(kind, content), TYPES.get(kind, objects.Unstructured))
    except objects.DecodeError as problem:
        return str(problem).startswith(kind)


@given(KINDS, st.one_of(st.binary(), JSON.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_decode_or_raise_a_decode_error(kind: str, content: bytes) -> None:
    assert ends_well(kind, content)


@given(KINDS, JSON)
def test_any_plain_values_decode_or_raise_a_decode_error(kind: str, content: Any) -> None:
    assert ends_well(kind, content)


# ---- declared fields -----------------------------------------------------------------------


def test_declared_paths_are_decoded() -> None:
    content = b'{"status":{"nodeInfo":{"kubeletVersion":"v1.37.0"}}}'
    node = objects.decode(
        objects.NODE, content, ("status.nodeInfo.kubeletVersion", "spec.none.such")
    )
    assert isinstance(node, objects.Node)
    assert node.declared == {"status.nodeInfo.kubeletVersion": "v1.37.0", "spec.none.such": None}


def test_a_path_that_ends_early_leads_to_none() -> None:
    assert objects.at_path({"a": {"b": 1}}, "a.b") == 1
    assert objects.at_path({"a": {"b": 1}}, "a.b.c") is None
    assert objects.at_path({"a": [1]}, "a.0") is None


# ---- names and phases ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "terminal"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), (None, False)],
)
def test_finished_pods_request_nothing(phase: str | None, terminal: bool) -> None:
    assert objects.is_terminal(objects.Pod(status=objects.PodStatus(phase=phase))) is terminal


def test_a_namespaced_name() -> None:
    assert objects.namespaced_name("a", "b") == "a/b"
    assert objects.namespaced_name(None, "b") == objects.namespaced_name("", "b") == "b"
