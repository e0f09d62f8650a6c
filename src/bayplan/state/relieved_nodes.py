"""Nodes as they would be without some of their pods, as far as amounts of resources go.

A `RelievedNodeView` is the overlay that preemption's dry run asks plugins about: many nodes at
once, each without pods of its own, and nothing in the table is touched. It knows amounts only.
Whatever else would be another without the pods raises `NotRelieved`: who asked has to try the nodes
one by one, in a trial.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NoReturn, final

import numpy as np
import numpy.typing as npt

from bayplan.api.pod_requests import PODS
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, Rows, is_any
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.ranked_pods import RankedView
from bayplan.state.resources import Bundle, Usage


class NotRelieved(RuntimeError):
    """Asked of an overlay that knows amounts of resources only."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not known of nodes that were relieved of some pods")


@final
class Relief:
    """What leaves with some pods of each node, by resource; found when it is asked for."""

    def __init__(self, ranked: RankedView, leaving: npt.NDArray[np.bool_]) -> None:
        """``leaving``: bool[nodes, places] of ``ranked``."""
        self._ranked = ranked
        self._leaving = leaving
        self._amounts: dict[str, Int64s] = {}

    def of(self, resource: str) -> Int64s:
        """int64[nodes]."""
        found = self._amounts.get(resource)
        if found is None:
            if resource == PODS:
                found = np.count_nonzero(self._leaving, axis=1).astype(np.int64)
            else:
                amounts = self._ranked.amounts(resource)
                found = np.where(self._leaving, amounts, 0).sum(axis=1)
            self._amounts[resource] = found
        return found


@final
class RelievedNodeView(NodeView):
    """A view whose nodes have so much more room."""

    __slots__ = ("_positions", "_relief")

    def __init__(self, nodes: NodeView, relief: Relief, positions: Rows | None = None) -> None:
        """``positions``: which rows of the relief these nodes are; None: one each, in order."""
        super().__init__(nodes._open(), nodes._loan, nodes.rows)
        self._relief = relief
        self._positions = positions

    def take(self, positions: Rows | Mask | Sequence[int]) -> NodeView:
        chosen = np.asarray(positions)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.intp, copy=False)
        inner = chosen if self._positions is None else self._positions[chosen]
        return RelievedNodeView(super().take(chosen), self._relief, inner)

    def requested(self, resource: str) -> Int64s:
        return super().requested(resource) - self._more(resource)

    def pod_counts(self) -> Int64s:
        return super().pod_counts() - self._more(PODS)

    def short(self, resource: str, amount: int) -> Mask | None:
        free = self._open().resources.free(resource).values[self.selection]
        short = free + self._more(resource) < amount
        return short if is_any(short) else None

    def _more(self, resource: str) -> Int64s:
        found = self._relief.of(resource)
        return found if self._positions is None else found[self._positions]

    # ---- what is not known ------------------------------------------------------------------

    def info(self, position: int) -> NodeInfo:
        raise NotRelieved("a node as a whole")

    def infos(self) -> Iterator[NodeInfo]:
        raise NotRelieved("a node as a whole")

    def info_of_row(self, row: int) -> NodeInfo:
        raise NotRelieved("a node as a whole")

    def usage(self, bundle: Bundle, *, scored: bool) -> Usage:
        raise NotRelieved("usage")

    def non_zero_milli_cpu(self) -> Int64s:
        raise NotRelieved("what pods score as")

    def non_zero_memory_bytes(self) -> Int64s:
        raise NotRelieved("what pods score as")

    def derived(
        self,
        key: Hashable,
        facets: Facet,
        dtype: npt.DTypeLike,
        compute: Callable[[NodeView], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        if facets & Facet.REQUESTED:
            _fail("what follows from amounts")
        return super().derived(key, facets, dtype, compute)


def _fail(what: str) -> NoReturn:
    raise NotRelieved(what)
