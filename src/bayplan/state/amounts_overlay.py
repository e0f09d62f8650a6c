"""The overlay of a what-if: nodes with other amounts of resources in use.

Preemption's dry run evaluates nodes without their victims. Filter evaluates nodes with the pods
that are nominated to them. An `AmountsOverlay` answers for many nodes at once and leaves the table
as it is. It holds a `NodeView` and its groups, and answers in three ways:

- Amounts of resources are those of the what-if.
- What no pod changes (names, labels, taints, allocatable amounts, …) is passed on to the view.
- Everything else raises `NotInOverlay`. An accessor that `NodeView` or a group gains later raises,
  too: it cannot answer for the nodes as they are. The caller then evaluates the nodes one by one in
  a trial.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol, cast, final

import numpy as np
import numpy.typing as npt

from bayplan.api.pod_requests import PODS
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, Rows, as_positions, is_any
from bayplan.state.nodes import GROUPS, REPLACED, NodeView, read_replaced
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView

#: Accessors that no pod on a node changes: the overlay passes them on to the `NodeView`.
_UNCHANGED: Final = frozenset(
    {"allocatable", "image", "name", "names", "position", "positions", "reject"}
)
#: The same for each group of accessors.
_UNCHANGED_IN_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "resources": frozenset({"names"}),
    "labels": frozenset({"any_missing", "ids", "matching", "matching_term", "values"}),
    "taints": frozenset({"any_unschedulable", "set_ids", "sets", "unschedulable"}),
    "pods": frozenset(),
    "table": frozenset(
        {
            "draw_order",
            "drawn_among",
            "first_drawn",
            "index",
            "mask",
            "name_drawn",
            "node_count",
            "rows",
        }
    ),
}
#: Facets of a node that its pods change, besides amounts. The overlay has none of them.
OCCUPIED: Final = Facet.PODS | Facet.PORTS | Facet.VOLUMES | Facet.STORAGE


class NotInOverlay(RuntimeError):
    """The overlay has amounts of resources only."""

    def __init__(self, accessor: str) -> None:
        super().__init__(f"NodeView.{accessor} does not answer in an overlay of amounts")


class FreedAmounts(Protocol):
    """What a what-if frees on each node, by resource; negative where it adds pods."""

    def of(self, resource: str) -> Int64s:
        """int64[nodes]."""
        ...


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
                each = np.where(self._victims, self._ranked.amounts(resource), 0)
                amounts = np.add.reduce(each, axis=1)
            self._amounts[resource] = amounts
        return amounts


@final
class _AddedAmounts:
    """What added pods use, negated."""

    def __init__(self, pods_by_node: Sequence[Sequence[PodInfo]]) -> None:
        self._pods = [pod for pods in pods_by_node for pod in pods]
        self._counts: Int64s = np.array(list(map(len, pods_by_node)), np.int64)

    def of(self, resource: str) -> Int64s:
        if resource == PODS:
            return -self._counts
        freed = np.zeros(len(self._counts), np.int64)
        owners = np.repeat(np.arange(len(freed)), self._counts)
        np.subtract.at(freed, owners, [pod.shape.requests.get(resource, 0) for pod in self._pods])
        return freed


@final
class _Difference:
    """What victims free, less what added pods use."""

    def __init__(self, victims: VictimAmounts, added: _AddedAmounts) -> None:
        self._victims = victims
        self._added = added

    def of(self, resource: str) -> Int64s:
        return self._victims.of(resource) + self._added.of(resource)


def without_victims(
    nodes: NodeView,
    victims: VictimAmounts,
    added: Sequence[Sequence[PodInfo]] | None = None,
) -> NodeView:
    """The overlay of a view. ``victims``: of the nodes of the view, in their order. ``added``: pods
    that come to each of the nodes."""
    freed = victims if added is None else _Difference(victims, _AddedAmounts(added))
    return AmountsOverlay(_Amounts(nodes, freed, None)).as_view()


def with_added(nodes: NodeView, pods_by_node: Sequence[Sequence[PodInfo]]) -> NodeView:
    """The overlay of a view with more pods. ``pods_by_node``: of the nodes of the view, in their
    order; none of these pods is on its node."""
    return AmountsOverlay(_Amounts(nodes, _AddedAmounts(pods_by_node), None)).as_view()


@final
class _Amounts:
    """The amounts of the nodes of an overlay; its parts share them."""

    __slots__ = ("_freed_amounts", "_positions", "nodes")

    def __init__(self, nodes: NodeView, freed: FreedAmounts, positions: Rows | None) -> None:
        self.nodes = nodes
        self._freed_amounts = freed
        self._positions = positions

    def requested(self, resource: str) -> Int64s:
        return self.nodes.requested(resource) - self._freed(resource)

    def pod_counts(self) -> Int64s:
        return self.nodes.pods.counts() - self._freed(PODS)

    def take(self, positions: Rows) -> "_Amounts":
        inner = positions if self._positions is None else self._positions[positions]
        return _Amounts(self.nodes.take(positions), self._freed_amounts, inner)

    def _freed(self, resource: str) -> Int64s:
        amounts = self._freed_amounts.of(resource)
        return amounts if self._positions is None else amounts[self._positions]


class _GroupOverlay:
    """A group of accessors of an overlay: passes on what no pod changes, and refuses the rest."""

    def __init__(self, amounts: _Amounts, name: str) -> None:
        self._amounts = amounts
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Called for every name that this class does not have."""
        if name in _UNCHANGED_IN_GROUPS[self._name]:
            return getattr(getattr(self._amounts.nodes, self._name), name)
        if hasattr(GROUPS[self._name], name):
            raise NotInOverlay(f"{self._name}.{name}")
        raise AttributeError(name)


@final
class _ResourcesOverlay(_GroupOverlay):
    def insufficient(self, resource: str, amount: int) -> Mask | None:
        amounts = self._amounts
        used = amounts.pod_counts() if resource == PODS else amounts.requested(resource)
        insufficient = amounts.nodes.allocatable(resource) - used < amount
        return insufficient if is_any(insufficient) else None


@final
class _PodsOverlay(_GroupOverlay):
    def counts(self) -> Int64s:
        return self._amounts.pod_counts()


@final
class AmountsOverlay:
    """A view with other amounts in use. Plugins use it as a `NodeView`."""

    def __init__(self, amounts: _Amounts) -> None:
        self._amounts = amounts
        self.resources = _ResourcesOverlay(amounts, "resources")
        self.pods = _PodsOverlay(amounts, "pods")

    def as_view(self) -> NodeView:
        return cast("NodeView", self)

    def __len__(self) -> int:
        return len(self._amounts.nodes)

    def __getattr__(self, name: str) -> Any:
        """Called for every name that this class does not have."""
        if name in _UNCHANGED:
            return getattr(self._amounts.nodes, name)
        if name in GROUPS:
            group = _GroupOverlay(self._amounts, name)
            setattr(self, name, group)
            return group
        if name in REPLACED:
            return read_replaced(self.as_view(), name)
        if hasattr(NodeView, name):
            raise NotInOverlay(name)
        raise AttributeError(name)

    def take(self, positions: Rows | Mask | Sequence[int]) -> NodeView:
        return AmountsOverlay(self._amounts.take(as_positions(positions))).as_view()

    def requested(self, resource: str) -> Int64s:
        return self._amounts.requested(resource)

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[[NodeView], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        if facets & (OCCUPIED | Facet.REQUESTED):
            raise NotInOverlay("derived")
        return self._amounts.nodes.derived(key, facets, dtype, compute)
