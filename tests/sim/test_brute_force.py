"""The brute force of the fault simulation, for rules in which a mistake is easily overlooked.

Planted faults (`test_planted_faults`) show that the brute force finds broken plugins. These tests
compare it with expected answers.
"""

from typing import Any

import pytest

from tests.kit.manifests import Content, container, node, pod
from tests.sim.brute_force import NODE, POD, Picture, Placed, key_of, requests_of
from tests.sim.brute_force_storage import nodes_that_take, why_not

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def numbered(number: int, content: Content) -> Content:
    return {**content, "metadata": {**content["metadata"], "uid": str(number)}}


def picture(nodes: list[Content], **placed: list[Content]) -> Picture:
    """``placed``: pods by the name of their node."""
    pods = [(name, each) for name, pods_on_node in placed.items() for each in pods_on_node]
    numbered_pods = [(name, numbered(number, each)) for number, (name, each) in enumerate(pods)]
    objects = {
        NODE: {key_of(each): each for each in nodes},
        POD: {key_of(each): each for _, each in numbered_pods},
    }
    return Picture(
        objects, {each["metadata"]["uid"]: Placed(each, name) for name, each in numbered_pods}
    )


def incoming(**spec: Any) -> Content:
    return numbered(99, pod("new", **spec))


def feasible_nodes(world: Picture, pod: Content) -> list[str]:
    return nodes_that_take(world, pod)


def zoned(*names: str) -> list[Content]:
    """Nodes `a1` and `a2` are in zone a, and so on."""
    return [node(name, labels={"zone": name[0], "host": name}) for name in names]


def apart(labels: dict[str, str], key: str = "host", **fields: Any) -> Content:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **fields}
    return {"podAntiAffinity": {_REQUIRED: [term]}}


def together(labels: dict[str, str], key: str = "zone") -> Content:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"podAffinity": {_REQUIRED: [term]}}


def with_port(**fields: Any) -> list[Content]:
    return [container("100m", ports=[{"containerPort": 80, "hostPort": 80, **fields}])]


# ---- resources and ports -----------------------------------------------------------------


def test_a_pod_requests_its_sidecars_and_its_largest_init_container() -> None:
    sidecar = {**container("200m"), "name": "s", "restartPolicy": "Always"}
    incoming_pod = incoming(
        containers=[container("1")],
        initContainers=[sidecar, {**container("2"), "name": "i"}],
        overhead={"cpu": "50m"},
    )
    assert requests_of(incoming_pod) == {"cpu": 2250}
    incoming_pod["spec"]["initContainers"].reverse()
    assert requests_of(incoming_pod) == {"cpu": 2050}


def test_a_full_node_accepts_a_pod_without_requests() -> None:
    world = picture([node("n1")], n1=[pod("a", containers=[container("5")])])
    assert feasible_nodes(world, incoming(containers=[container("0")])) == ["n1"]
    assert "cpu: asks 0.001, 5 of 4 are taken" in why_not(
        world, incoming(containers=[container("1m")]), "n1"
    )


@pytest.mark.parametrize(
    ("one", "other", "is_conflict"),
    [
        ({}, {}, True),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"protocol": "UDP"}, {}, False),
        ({"hostPort": 81}, {}, False),
    ],
)
def test_host_ports_conflict_by_address_and_protocol(
    one: Content, other: Content, is_conflict: bool
) -> None:
    world = picture([node("n1")], n1=[pod("a", containers=with_port(**one))])
    incoming_pod = incoming(containers=with_port(**other))
    assert feasible_nodes(world, incoming_pod) == ([] if is_conflict else ["n1"])


# ---- nodes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "x"}, True),
        ({"key": "team", "value": "y"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(
    toleration: Content, is_tolerated: bool
) -> None:
    taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    world = picture([node("n1", spec={"taints": taints})])
    assert feasible_nodes(world, incoming(tolerations=[toleration])) == (
        ["n1"] if is_tolerated else []
    )


def test_a_prefer_no_schedule_taint_excludes_no_pod() -> None:
    taints = [{"key": "team", "value": "x", "effect": "PreferNoSchedule"}]
    assert feasible_nodes(picture([node("n1", spec={"taints": taints})]), incoming()) == ["n1"]


# ---- other pods --------------------------------------------------------------------------


def test_anti_affinity_holds_in_both_directions() -> None:
    web = {"app": "web"}
    world = picture(
        zoned("a1", "b1"), a1=[pod("a", labels=web)], b1=[pod("b", affinity=apart(web))]
    )
    assert feasible_nodes(world, incoming(affinity=apart(web))) == ["b1"]
    assert feasible_nodes(world, incoming(labels=web)) == ["a1"]


def test_a_term_selects_its_namespaces_only() -> None:
    web = {"app": "web"}
    world = picture(zoned("a1"), a1=[pod("a", labels=web, namespace="blue")])
    assert feasible_nodes(world, incoming(affinity=apart(web))) == ["a1"]
    assert feasible_nodes(world, incoming(affinity=apart(web, namespaces=["blue"]))) == []
    assert feasible_nodes(world, incoming(affinity=apart(web, namespaceSelector={}))) == []


def test_the_first_pod_of_an_affinity_group_needs_only_itself() -> None:
    web = {"app": "web"}
    empty = picture(zoned("a1", "b1"))
    assert feasible_nodes(empty, incoming(labels=web, affinity=together(web))) == ["a1", "b1"]
    assert feasible_nodes(empty, incoming(affinity=together(web))) == []
    world = picture(zoned("a1", "a2", "b1"), a1=[pod("a", labels=web)])
    assert feasible_nodes(world, incoming(labels=web, affinity=together(web))) == ["a1", "a2"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["b1"]),
        ({"maxSkew": 2}, ["a1", "b1"]),
        ({"minDomains": 3}, ["b1"]),
        ({"minDomains": 3, "maxSkew": 2}, ["a1", "b1"]),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, ["a1", "b1"]),
    ],
)
def test_spreading_counts_the_selected_pods_of_each_domain(
    fields: Content, expected: list[str]
) -> None:
    web = {"app": "web"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": web},
        **fields,
    }
    world = picture(zoned("a1", "b1"), a1=[pod("a", labels=web)])
    incoming_pod = incoming(labels=web, topologySpreadConstraints=[constraint])
    assert feasible_nodes(world, incoming_pod) == expected


def test_spreading_counts_usable_nodes_and_pods_that_stay() -> None:
    web = {"app": "web"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": "host",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": web},
    }
    incoming_pod = incoming(labels=web, topologySpreadConstraints=[constraint])
    nodes = zoned("a1", "a2", "b1")
    world = picture(nodes, a1=[pod("a", labels=web)], a2=[pod("b", labels=web)])
    assert feasible_nodes(world, incoming_pod) == ["b1"]
    incoming_pod["spec"]["nodeSelector"] = {"zone": "a"}
    assert feasible_nodes(world, incoming_pod) == ["a1", "a2"]
    terminating = pod("a", labels=web, deletionTimestamp="2026-01-01T00:00:00Z")
    world = picture(nodes, a1=[terminating], a2=[pod("b", labels=web)])
    assert feasible_nodes(world, incoming_pod) == ["a1"]
