"""Host ports in use, indexed so that a conflict is looked up, not searched for.

Two host ports conflict when protocol and port are equal and the addresses are equal or either is
0.0.0.0. Upstream: framework.HostPortInfo.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.api.objects import Container, ContainerPort, PodSpec

ALL_ADDRESSES = "0.0.0.0"
DEFAULT_PROTOCOL = "TCP"


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars, with defaults, sorted."""
    ports = {_host_port(port) for container in _lasting(spec) for port in container.ports or ()}
    return tuple(sorted(p for p in ports if p.port > 0))


def _lasting(spec: PodSpec) -> Iterator[Container]:
    yield from spec.containers or ()
    yield from (c for c in spec.init_containers or () if c.restart_policy == "Always")


def _host_port(port: ContainerPort) -> HostPort:
    ip, protocol = port.host_ip or ALL_ADDRESSES, port.protocol or DEFAULT_PROTOCOL
    return HostPort(ip, protocol, port.host_port or 0)


def conflicts(one: HostPort, other: HostPort) -> bool:
    if one.protocol != other.protocol or one.port != other.port:
        return False
    return one.ip == other.ip or ALL_ADDRESSES in (one.ip, other.ip)


class HostPortIndex:
    """(protocol, port) → row → address → how many pods use it."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def add(self, row: int, port: HostPort) -> None:
        rows = self._users.setdefault((port.protocol, port.port), {})
        addresses = rows.get(row)
        if addresses is None:
            rows[row] = {port.ip: 1}
        else:
            addresses[port.ip] = addresses.get(port.ip, 0) + 1

    def remove(self, row: int, port: HostPort) -> None:
        rows = self._users[(port.protocol, port.port)]
        addresses = rows[row]
        addresses[port.ip] -= 1
        if addresses[port.ip] <= 0:
            del addresses[port.ip]
        if not addresses:
            del rows[row]
        if not rows:
            del self._users[(port.protocol, port.port)]

    def conflicting_rows(self, port: HostPort) -> list[int]:
        """Rows on which this port is taken."""
        rows = self._users.get((port.protocol, port.port))
        if not rows:
            return []
        if port.ip == ALL_ADDRESSES:
            return list(rows)
        return [row for row in rows if self.is_taken(row, port)]

    def is_taken(self, row: int, port: HostPort) -> bool:
        """Whether this port is taken on a row."""
        rows = self._users.get((port.protocol, port.port))
        taken = rows.get(row) if rows else None
        if not taken:
            return False
        return port.ip == ALL_ADDRESSES or port.ip in taken or ALL_ADDRESSES in taken

    def on_row(self, row: int) -> frozenset[HostPort]:
        return frozenset(
            HostPort(ip, protocol, port)
            for (protocol, port), rows in self._users.items()
            for ip in rows.get(row, ())
        )
