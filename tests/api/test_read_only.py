"""Mappings of the cluster's objects cannot be changed."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bayplan.api.read_only import ReadOnlyDict, ReadOnlyError
from bayplan.state.pods import pod_info
from bayplan.testing import SampleCluster, api_pod, node

CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda frozen: frozen.__setitem__("x", "y"),
    "delete": lambda frozen: frozen.__delitem__("a"),
    "merge": lambda frozen: frozen.__ior__({"x": "y"}),
    "update": lambda frozen: frozen.update(x="y"),
    "setdefault": lambda frozen: frozen.setdefault("x", "y"),
    "pop": lambda frozen: frozen.pop("a"),
    "popitem": lambda frozen: frozen.popitem(),
    "clear": lambda frozen: frozen.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_error_for_a_change_names_the_alternative(change: str) -> None:
    fields = ReadOnlyDict({"a": "b"})
    with pytest.raises(ReadOnlyError, match="read-only; change a copy"):
        CHANGES[change](fields)
    assert fields == {"a": "b"}


def test_a_read_only_mapping_is_read_copied_and_written_like_a_dict() -> None:
    fields = ReadOnlyDict({"a": "b"})
    assert msgspec.json.encode(fields) == b'{"a":"b"}'
    assert pickle.loads(pickle.dumps(fields)) == copy.deepcopy(fields) == fields
    assert {**fields, "x": "y"} == fields | {"x": "y"} == {"a": "b", "x": "y"}


def test_the_mappings_of_a_pod_cannot_be_changed() -> None:
    result = pod_info(
        api_pod("p", cpu=1, labels={"a": "b"}, annotations={"c": "d"}, node_selector={"e": "f"})
    )
    for mapping in (result.labels, result.annotations, result.requests, result.spec.node_selector):
        assert mapping
        with pytest.raises(TypeError):
            mapping["x"] = "y"  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    assert result.pod.spec.node_selector == {"e": "f"}


def test_the_mappings_of_a_node_cannot_be_changed() -> None:
    cluster = SampleCluster().add(node("n1", cpu=4, labels={"a": "b"}))
    info = cluster.lend().nodes.info(0)
    for mapping in (info.labels, info.annotations, info.requested, info.allocatable):
        with pytest.raises(TypeError):
            mapping["x"] = "y"  # pyright: ignore[reportIndexIssue]
    assert info.labels["a"] == "b"
