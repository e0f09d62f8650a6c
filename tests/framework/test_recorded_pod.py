"""Every field of a pod that is read is recorded by its path."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.framework.recorded_pod import NotedKeys, Reads, recorded_pod
from bayplan.state.pods import PodInfo
from bayplan.testing import pod

POD = pod(
    "p",
    cpu="1",
    labels={"app": "web"},
    annotations={"a": "b"},
    tolerations=[{"key": "gpu"}],
    host_ports=[80],
    affinity={"nodeAffinity": {}, "podAffinity": {}},
)


def read_by(look: Callable[[PodInfo], Any]) -> set[str]:
    reads = Reads()
    look(recorded_pod(POD, reads))
    return reads.paths


@pytest.mark.parametrize(
    ("look", "paths"),
    [
        pytest.param(lambda p: p.name, {"metadata.name"}, id="a property of the pod"),
        pytest.param(lambda p: p.key, {"metadata.name"}, id="its key"),
        pytest.param(lambda p: p.uid, {"metadata.uid"}, id="its uid"),
        pytest.param(lambda p: p.labels, {"metadata.labels"}, id="labels"),
        pytest.param(lambda p: p.annotations, {"metadata.annotations"}, id="annotations"),
        pytest.param(lambda p: p.namespace, {"metadata.namespace"}, id="namespace"),
        pytest.param(lambda p: p.node_name, {"spec.nodeName"}, id="node"),
        pytest.param(lambda p: p.priority, {"spec.priority"}, id="priority"),
        pytest.param(lambda p: p.spec.containers, {"spec.containers"}, id="a field of the spec"),
        pytest.param(lambda p: p.spec.node_selector, {"spec.nodeSelector"}, id="camel case"),
        pytest.param(
            lambda p: p.shape.tolerations, {"spec.tolerations"}, id="a value of the shape"
        ),
        pytest.param(
            lambda p: p.spec.affinity.node_affinity,
            {"spec.affinity.nodeAffinity"},
            id="a part of the affinity",
        ),
        pytest.param(lambda p: p.requests, {"requests"}, id="a compiled value"),
        pytest.param(
            lambda p: p.nominated_node_name,
            {"status.nominatedNodeName"},
            id="a field of the status",
        ),
        pytest.param(
            lambda p: p.is_terminating, {"metadata.deletionTimestamp"}, id="a field of the metadata"
        ),
        pytest.param(
            lambda p: p.shape.once("test.key", lambda shape: shape.host_ports),
            {"host_ports"},
            id="a value that is compiled once",
        ),
    ],
)
def test_reading_a_field_records_its_path(look: Callable[[PodInfo], Any], paths: set[str]) -> None:
    assert read_by(look) == paths


def test_a_recorded_pod_has_the_values_of_the_pod() -> None:
    recorded = recorded_pod(POD, Reads())
    assert recorded.requests == POD.requests
    assert recorded.shape.tolerations == POD.shape.tolerations
    assert recorded.labels == POD.labels
    assert repr(recorded) == repr(POD)


def test_a_value_compiled_before_is_recorded_when_it_is_read_again() -> None:
    def look(p: PodInfo) -> Any:
        return p.shape.once("test.again", lambda shape: shape.labels)

    assert read_by(look) == read_by(look) == {"metadata.labels"}


def test_keys_of_maps_are_recorded() -> None:
    reads = Reads()
    recorded = recorded_pod(POD, reads)
    recorded.labels.get("app")
    assert "x" not in recorded.annotations
    assert reads.keys == {"metadata.labels": {"app"}, "metadata.annotations": {"x"}}


def test_a_map_with_recorded_keys_behaves_like_a_map() -> None:
    calls = set[str]()
    noted = NotedKeys({"a": "1"}, calls)
    assert (noted["a"], noted == {"a": "1"}, calls) == ("1", True, {"a"})


def reads_of(*paths: str) -> Reads:
    reads = Reads()
    reads.paths |= set(paths)
    return reads


def test_a_compiled_value_is_covered_by_itself_or_by_all_its_sources() -> None:
    ports = reads_of("host_ports")
    assert ports.beyond(reads_of("host_ports")) == []
    assert ports.beyond(reads_of("spec.containers", "spec.initContainers")) == []
    assert ports.beyond(reads_of("spec.containers")) == ["host_ports"]
    assert reads_of("spec.containers").beyond(ports) == ["spec.containers"]


def test_a_field_is_read_if_it_or_a_value_compiled_from_it_was_read() -> None:
    assert reads_of("spec.affinity").touches("spec.affinity.podAffinity")
    assert reads_of("requests").touches("spec.containers.resources.requests.cpu")
    assert not reads_of("spec.tolerations").touches("spec.containers.image")
