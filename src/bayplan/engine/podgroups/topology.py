"""The domains of topology keys: the nodes by their value of a label."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, final

from bayplan.api.objects import Pod
from bayplan.state.cache import Snapshot
from bayplan.state.change_log import Facet
from bayplan.state.node_table import NodeTable
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo

#: What the domains depend on.
_FACETS: Final = int(Facet.NODE | Facet.LABELS)


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes that share a value of a label. Without a name: all nodes."""

    name: str = ""
    nodes: frozenset[str] | None = None

    def within(self, other: "Domain") -> "Domain":
        if self.nodes is None or other.nodes is None:
            return other if self.nodes is None else self
        return Domain(self.name, self.nodes & other.nodes)


@final
class Domains:
    """The domains of each topology key, until a node or a label changes."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._generation = -1
        self._by_key: dict[str, list[Domain]] = {}

    def of(self, snapshot: Snapshot, key: str, state: GroupState) -> list[Domain]:
        """In the order of the values. If members already have nodes: only the domain that contains
        all these nodes."""
        log = self._table.log
        if log.is_changed_since(self._generation, _FACETS):
            self._by_key.clear()
        self._generation = log.generation
        domains = self._by_key.get(key)
        if domains is None:
            domains = self._by_key[key] = _domains(snapshot, key)
        names = {_node_of(pod) for pod in state.assigned()}
        if not names:
            return domains
        return [one for one in domains if one.nodes is not None and names <= one.nodes]


def _domains(snapshot: Snapshot, key: str) -> list[Domain]:
    nodes = snapshot.nodes
    ids, values, names = nodes.labels.ids(key).tolist(), nodes.labels.values(key), nodes.names()
    names_by_value: dict[str, list[str]] = defaultdict(list)
    for name, value_id in zip(names, ids, strict=True):
        if value_id >= 0:
            names_by_value[values[int(value_id)]].append(name)
    return [Domain(value, frozenset(names_by_value[value])) for value in sorted(names_by_value)]


def _node_of(pod: Pod | PodInfo) -> str:
    return pod.node_name if isinstance(pod, PodInfo) else pod.spec.node_name or ""
