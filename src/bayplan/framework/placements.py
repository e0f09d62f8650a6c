"""Placements: sets of nodes, of which a group uses one for all its members.

The placements of a topology key are the nodes by their value of a label, also called its domains.
Upstream: fwk.Placement.
"""

from collections.abc import Mapping
from typing import Final, final

from msgspec import Struct

from bayplan.state.nodes import NodeView

#: Keys whose placements are remembered.
_KEYS_MAX: Final = 64


class Placement(Struct, frozen=True):
    """Nodes for all members of a group."""

    #: For messages, such as the value of the topology key that the nodes share; "": all nodes.
    name: str = ""
    #: The names of the nodes; None: all nodes that the group may use.
    nodes: frozenset[str] | None = None

    def within(self, other: "Placement") -> "Placement":
        """The nodes that both have, under the name of this one."""
        if self.nodes is None or other.nodes is None:
            return other if self.nodes is None else self
        return Placement(self.name, self.nodes & other.nodes)


@final
class LabelPlacements:
    """The placements of label keys, made again when a node or a label changes."""

    def __init__(self) -> None:
        #: Key → the names of nodes by value, and the placements made of them.
        self._by_key: dict[str, tuple[Mapping[str, frozenset[str]], list[Placement]]] = {}

    def of(self, nodes: NodeView, key: str) -> list[Placement]:
        """The nodes of the view by their value of the label, in the order of the values."""
        names_by_value = nodes.labels.names_by_value(key)
        remembered = self._by_key.get(key)
        if remembered is not None and remembered[0] is names_by_value:
            return remembered[1]
        placements = [Placement(value, names) for value, names in names_by_value.items()]
        if len(self._by_key) >= _KEYS_MAX:
            self._by_key.clear()
        self._by_key[key] = names_by_value, placements
        return placements
