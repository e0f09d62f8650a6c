"""Host ports: the rule of conflicts, and an index that follows placed pods."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import POD, Pod, decode
from bayplan.state.host_ports import HostPort, HostPortIndex, conflicts, host_ports

PORTS = st.builds(
    HostPort,
    ip=st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    protocol=st.sampled_from(["TCP", "UDP"]),
    port=st.sampled_from([80, 81]),
)


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        pytest.param(("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="the same address"),
        pytest.param(
            ("10.0.0.1", "TCP", 80),
            ("0.0.0.0", "TCP", 80),
            True,
            id="one address and all addresses",
        ),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="one address"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="two addresses"),
        pytest.param(("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False, id="two protocols"),
        pytest.param(("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False, id="two ports"),
    ],
)
def test_which_pods_conflict(one: Any, other: Any, clash: bool) -> None:
    assert conflicts(HostPort(*one), HostPort(*other)) is clash
    assert conflicts(HostPort(*other), HostPort(*one)) is clash


#: (whether to add or to remove; row; port)
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), PORTS), max_size=20)


@given(STEPS, PORTS)
def test_the_index_lists_rows_with_a_conflicting_port(
    steps: list[tuple[bool, int, HostPort]], host_port: HostPort
) -> None:
    index, used = HostPortIndex(), Counter[tuple[int, HostPort]]()
    for adding, row, port in steps:
        if adding:
            index.add(row, port)
            used[row, port] += 1
        elif used[row, port]:
            index.remove(row, port)
            used[row, port] -= 1
    taken = [place for place, count in used.items() if count]
    expected = sorted({row for row, port in taken if conflicts(host_port, port)})
    assert sorted(index.conflicting_rows(host_port)) == expected
    for row in range(4):
        assert index.on_row(row) == {port for each, port in taken if each == row}
        assert index.is_taken(row, host_port) is (row in expected)


# ---- what a pod binds ----------------------------------------------------------------------


def ports_of(*ports: dict[str, Any], **spec: Any) -> tuple[HostPort, ...]:
    containers = [{"name": "c", "ports": list(ports)}]
    pod = decode(POD, {"spec": {"containers": containers, **spec}})
    assert isinstance(pod, Pod)
    return host_ports(pod.spec)


@pytest.mark.parametrize(
    "port",
    [
        pytest.param({"hostPort": 80}, id="a missing address"),
        pytest.param({"hostPort": 80, "hostIP": "", "protocol": ""}, id="an empty address"),
        pytest.param(
            {"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}, id="an explicit address"
        ),
    ],
)
def test_the_default_address_is_every_address_and_the_default_protocol_tcp(
    port: dict[str, Any],
) -> None:
    assert ports_of(port) == (HostPort("0.0.0.0", "TCP", 80),)


def test_sidecars_bind_ports_and_init_containers_give_them_back() -> None:
    def init(port: int, policy: str | None) -> dict[str, Any]:
        return {"name": "i", "ports": [{"hostPort": port}], "restartPolicy": policy}

    ports = ports_of(initContainers=[init(80, "Always"), init(81, None)])
    assert [port.port for port in ports] == [80]


def test_a_port_is_taken_until_both_pods_with_the_port_are_removed() -> None:
    index, port = HostPortIndex(), HostPort("0.0.0.0", "TCP", 80)
    for _ in range(2):
        index.add(0, port)
    index.remove(0, port)
    assert index.conflicting_rows(port) == [0]
    index.remove(0, port)
    assert index.conflicting_rows(port) == []
