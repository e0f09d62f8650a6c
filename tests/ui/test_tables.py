"""The tables of nodes and pods on the page: filters and order."""

from typing import Any

import pytest

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.history.timeline import PodState, State
from bayplan.plugins.registry import default_registry
from bayplan.ui.subjects import RunSubject, subject_of_files
from bayplan.ui.tables import (
    POD_STATES,
    NodeFilter,
    NoSuchObject,
    PodFilter,
    node_options,
    node_rows,
    pod_rows,
    state_name,
)

_NODE = """
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{eks.amazonaws.com/nodegroup: {pool}}}}}
spec: {spec}
status:
  allocatable: {{cpu: "{cpu}", pods: "9"}}
  conditions: [{{type: Ready, status: "{ready}"}}]
---
"""
_TAINT = "{taints: [{key: gpu, effect: NoSchedule}]}"
_NODES = (
    ("n10", "small", "{}", 4, "True"),
    ("n2", "small", "{unschedulable: true}", 4, "True"),
    ("n1", "gpu", _TAINT, 8, "True"),
    ("n3", "gpu", _TAINT, 8, "Unknown"),
)
_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{pod-template-hash: abc}}
  ownerReferences:
  - {{apiVersion: apps/v1, kind: ReplicaSet, name: {owner}-abc, controller: true, uid: u}}
spec: {{{node} containers: [{{name: c, image: app, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
---
"""
_PODS = (
    ("web-10", "shop", "web", "nodeName: n10,", 3),
    ("web-2", "shop", "web", "nodeName: n10,", 1),
    ("db-1", "data", "db", "nodeName: n2,", 1),
    ("big-1", "data", "big", "", 64),
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    path = tmp_path_factory.mktemp("tables") / "cluster.yaml"
    nodes = (dict(zip(("name", "pool", "spec", "cpu", "ready"), n, strict=True)) for n in _NODES)
    pods = (dict(zip(("name", "namespace", "owner", "node", "cpu"), p, strict=True)) for p in _PODS)
    path.write_text(
        "".join(_NODE.format(**node) for node in nodes)
        + "".join(_POD.format(**pod) for pod in pods)
    )
    subject = subject_of_files([str(path)], config_from(DEFAULT_CONFIG), default_registry())
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem
    return subject.timeline.state(subject.timeline.last_change)


def nodes_of(state: State, /, sort: str = "", **filters: str) -> list[str]:
    rows = node_rows(state, NodeFilter(**filters), sort)
    return [state.timeline.node_names[row] for row in rows]


def pods_of(state: State, /, sort: str = "", **filters: Any) -> list[str]:
    rows = pod_rows(state, PodFilter(**filters), sort)
    return [state.timeline.pods[row].name for row in rows]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["n1", "n2", "n3", "n10"]),
        ("-name", ["n10", "n3", "n2", "n1"]),
        ("-cpu", ["n10", "n2", "n1", "n3"]),
        ("cpu", ["n1", "n3", "n2", "n10"]),
        ("-pods", ["n10", "n2", "n1", "n3"]),
        ("pool", ["n1", "n3", "n2", "n10"]),
        ("-state", ["n3", "n2", "n1", "n10"]),
    ],
)
def test_nodes_are_sorted_by_any_column_and_equal_ones_by_name(
    state: State, sort: str, names: list[str]
) -> None:
    assert nodes_of(state, sort) == names


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"state": "not ready"}, ["n3"]),
        ({"state": "ready"}, ["n1", "n2", "n10"]),
        ({"state": "cordoned"}, ["n2"]),
        ({"state": "tainted"}, ["n1", "n3"]),
        ({"pool": "small"}, ["n2", "n10"]),
        ({"taint": "gpu", "state": "ready"}, ["n1"]),
        ({"search": "N1"}, ["n1", "n10"]),
        ({"search": "nothing"}, []),
    ],
)
def test_nodes_are_filtered_by_name_state_pool_and_taint(
    state: State, filters: dict[str, str], names: list[str]
) -> None:
    assert nodes_of(state, **filters) == names


def test_the_filters_offer_the_pools_and_taints_of_the_nodes(state: State) -> None:
    assert node_options(state) == (("gpu", "small"), ("gpu",))


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["data/big-1", "data/db-1", "shop/web-2", "shop/web-10"]),
        ("-cpu", ["data/big-1", "shop/web-10", "shop/web-2", "data/db-1"]),
        ("node", ["data/big-1", "data/db-1", "shop/web-10", "shop/web-2"]),
        ("state", ["data/big-1", "shop/web-10", "shop/web-2", "data/db-1"]),
        ("workload", ["data/big-1", "data/db-1", "shop/web-10", "shop/web-2"]),
    ],
)
def test_pods_are_sorted_by_any_column_and_equal_ones_by_creation(
    state: State, sort: str, names: list[str]
) -> None:
    assert pods_of(state, sort) == names


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"namespace": "shop"}, ["shop/web-10", "shop/web-2"]),
        ({"workload": "Deployment data/db"}, ["data/db-1"]),
        ({"state": "waiting"}, ["data/big-1"]),
        ({"state": "placed", "namespace": "data"}, ["data/db-1"]),
        ({"node": "n10", "search": "2"}, ["shop/web-2"]),
        ({"pool": "small"}, ["shop/web-10", "shop/web-2", "data/db-1"]),
        ({"pool": "gpu"}, []),
    ],
)
def test_pods_are_filtered_by_namespace_workload_state_node_pool_and_name(
    state: State, filters: dict[str, str], names: list[str]
) -> None:
    assert pods_of(state, **filters) == names


def test_an_unknown_column_state_or_node_is_named(state: State) -> None:
    for ask in (
        lambda: nodes_of(state, "rank"),
        lambda: nodes_of(state, state="tired"),
        lambda: pods_of(state, "-rank"),
        lambda: pods_of(state, state="tired"),
        lambda: pods_of(state, node="n99"),
    ):
        with pytest.raises(NoSuchObject, match=r"rank|tired|n99"):
            ask()


def test_at_each_change_of_a_run_a_pod_is_in_the_table_of_one_state(subject: RunSubject) -> None:
    line = subject.timeline
    for change in range(0, line.last_change + 1, 7):
        state = line.state(change)
        tables = [pod_rows(state, PodFilter(state=one)) for one in POD_STATES]
        assert sorted(row for rows in tables for row in rows) == pod_rows(state, PodFilter())
        waiting = tables[POD_STATES.index(state_name(PodState.WAITING))]
        assert waiting == state.waiting.tolist()
        placed = tables[POD_STATES.index(state_name(PodState.PLACED))]
        assert placed == [row for row in range(len(line.pods)) if state.node_of_pod[row] >= 0]
