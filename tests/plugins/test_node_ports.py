"""NodePorts compared with a plain rule, and its hint; tests/parity has recorded answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import ActionType
from bayplan.framework.status import Code
from bayplan.plugins.node_ports import NodePorts
from bayplan.state.cache import Cache
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    rejected,
)

PLUGIN = NodePorts(None, NO_HANDLE)
REASON = "node(s) didn't have free ports for the requested pod ports"

Port = dict[str, Any]


def port(number: int, protocol: str | None = None, ip: str | None = None) -> Port:
    return {"hostPort": number, "protocol": protocol, "hostIP": ip}


def with_ports(name: str, *ports: Port, **options: Any) -> PodInfo:
    return pod(name, containers=[{"name": "c", "ports": list(ports)}], **options)


def lent(cluster: list[list[Port]]) -> NodeView:
    """Nodes n0, n1 … with one pod each that has these ports."""
    cache = Cache()
    for row, ports in enumerate(cluster):
        cache.add_node(node(f"n{row}"))
        cache.add_pod(with_ports(f"running-{row}", *ports, node=f"n{row}"))
    return cache.lend().nodes


# ---- the plain rule ----------------------------------------------------------------


def clash(one: Port, other: Port) -> bool:
    if one["hostPort"] != other["hostPort"] or not one["hostPort"]:
        return False
    if (one["protocol"] or "TCP") != (other["protocol"] or "TCP"):
        return False
    ips = {one["hostIP"] or "0.0.0.0", other["hostIP"] or "0.0.0.0"}
    return len(ips) == 1 or "0.0.0.0" in ips


PORTS = st.builds(
    port,
    st.sampled_from([0, 80, 81]),
    st.sampled_from([None, "", "TCP", "UDP"]),
    st.sampled_from([None, "", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
)
LISTS = st.lists(PORTS, max_size=3)
CLUSTERS = st.lists(LISTS, min_size=1, max_size=6)
POSITIONS = st.lists(st.integers(0, 5), unique=True)


@given(CLUSTERS, LISTS, POSITIONS)
def test_the_result_for_all_nodes_equals_the_rule_for_each_node(
    cluster: list[list[Port]], expected_ports: list[Port], positions: list[int]
) -> None:
    nodes, asking = lent(cluster), with_ports("p", *expected_ports)
    taken = {
        f"n{row}": (Code.UNSCHEDULABLE, (REASON,))
        for row, ports in enumerate(cluster)
        if any(clash(one, other) for one in expected_ports for other in ports)
    }
    assert rejected(PLUGIN, asking, nodes) == taken
    chosen = [p for p in positions if p < len(cluster)]
    assert filter_is_row_wise(PLUGIN, asking, nodes, chosen)


# ---- hints ---------------------------------------------------------------------------------

GONE = ("AssignedPod", ActionType.DELETE)
WAITING = with_ports("waiting", port(80, "TCP", "10.0.0.1"))


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        pytest.param(with_ports("g", port(80), node="n0"), "Queue", id="on all addresses"),
        pytest.param(
            with_ports("g", port(80, ip="10.0.0.2"), node="n0"),
            "QueueSkip",
            id="on another address",
        ),
        pytest.param(with_ports("g", port(80, "UDP"), node="n0"), "QueueSkip", id="a UDP port"),
        pytest.param(pod("g", node="n0"), "QueueSkip", id="a pod without ports"),
        pytest.param(with_ports("g", port(80)), "QueueSkip", id="a pod without a node"),
    ],
)
def test_deleting_a_pod_queues_the_pod_if_it_had_the_port(gone: PodInfo, message: str) -> None:
    assert str(hint(PLUGIN, GONE, WAITING, gone, None)) == message
