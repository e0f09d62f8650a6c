"""The overlay of preemption's dry run: nodes as they would be without some of their pods.

A `VictimOverlay` answers for many nodes at once, each without pods of its own, and leaves the table
as it is. It wraps a `NodeView` and answers in three ways:

- Amounts of resources are those without the victims.
- What no pod changes (names, labels, taints, allocatable amounts, …) is passed on to the view.
- Everything else raises `NotInOverlay`. An accessor that `NodeView` gains later raises, too: it
  cannot answer with the victims still there. The caller then tries the nodes one by one in a trial.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from bayplan.api.pod_requests import PODS
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, Rows, as_positions, is_any
from bayplan.state.nodes import NodeView
from bayplan.state.ranked_pods import RankedView

#: What no pod on a node changes: `NodeView` answers.
_UNCHANGED: Final = frozenset(
    {
        "allocatable",
        "any_unschedulable",
        "cluster_node_count",
        "draw_order",
        "image",
        "label_ids",
        "label_values",
        "lacks_label",
        "mask_of_rows",
        "matching_term",
        "name",
        "name_drawn",
        "names",
        "node",
        "position",
        "positions",
        "reject",
        "resource_names",
        "rows",
        "satisfying",
        "selection",
        "taint_set_ids",
        "taint_sets",
        "unschedulable",
    }
)
#: What pods change of a node besides amounts. The overlay has none of it.
OCCUPIED: Final = Facet.PODS | Facet.PORTS | Facet.VOLUMES | Facet.STORAGE


class NotInOverlay(RuntimeError):
    """The overlay has amounts of resources only."""

    def __init__(self, accessor: str) -> None:
        super().__init__(f"NodeView.{accessor} does not answer for nodes without their victims")


@final
class VictimAmounts:
    """What the victims of each node use, by resource; computed when it is read."""

    def __init__(self, ranked: RankedView, victims: npt.NDArray[np.bool_]) -> None:
        """``victims``: bool[nodes, places] of ``ranked``."""
        self._ranked = ranked
        self._victims = victims
        self._amounts: dict[str, Int64s] = {}

    def of(self, resource: str) -> Int64s:
        """int64[nodes]."""
        amounts = self._amounts.get(resource)
        if amounts is None:
            if resource == PODS:
                amounts = np.count_nonzero(self._victims, axis=1).astype(np.int64)
            else:
                amounts = np.where(self._victims, self._ranked.amounts(resource), 0).sum(axis=1)
            self._amounts[resource] = amounts
        return amounts


def without_victims(nodes: NodeView, victims: VictimAmounts) -> NodeView:
    """The overlay of a view. ``victims``: of the nodes of the view, in their order."""
    return VictimOverlay(nodes, victims, None).as_view()


@final
class VictimOverlay:
    """A view without some pods of each node. Plugins use it as a `NodeView`."""

    __slots__ = ("_nodes", "_positions", "_victims")

    def __init__(self, nodes: NodeView, victims: VictimAmounts, positions: Rows | None) -> None:
        """``positions``: where the nodes are in ``victims``; None: one each, in order."""
        self._nodes = nodes
        self._victims = victims
        self._positions = positions

    def as_view(self) -> NodeView:
        return cast("NodeView", self)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getattr__(self, name: str) -> Any:
        """Called for every name that this class does not have."""
        if name in _UNCHANGED:
            return getattr(self._nodes, name)
        if hasattr(NodeView, name):
            raise NotInOverlay(name)
        raise AttributeError(name)

    def take(self, positions: Rows | Mask | Sequence[int]) -> NodeView:
        chosen = as_positions(positions)
        inner = chosen if self._positions is None else self._positions[chosen]
        return VictimOverlay(self._nodes.take(chosen), self._victims, inner).as_view()

    def requested(self, resource: str) -> Int64s:
        return self._nodes.requested(resource) - self._freed(resource)

    def pod_counts(self) -> Int64s:
        return self._nodes.pod_counts() - self._freed(PODS)

    def short(self, resource: str, amount: int) -> Mask | None:
        used = self.pod_counts() if resource == PODS else self.requested(resource)
        short = self._nodes.allocatable(resource) - used < amount
        return short if is_any(short) else None

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[[NodeView], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        if facets & (OCCUPIED | Facet.REQUESTED):
            raise NotInOverlay("derived")
        return self._nodes.derived(key, facets, dtype, compute)

    def _freed(self, resource: str) -> Int64s:
        amounts = self._victims.of(resource)
        return amounts if self._positions is None else amounts[self._positions]
