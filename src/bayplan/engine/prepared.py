"""Prepared: what PreFilter and PreScore said about a pod, for the next of its like.

They are asked for one pod of a template, and not again before something changes that they follow
from: see Plugin.prepares_alike.
"""

from typing import final

from bayplan.engine.picks import Picks
from bayplan.framework.interface import CycleState
from bayplan.state.node_table import NodeTable
from bayplan.state.object_store import ObjectStore
from bayplan.state.pods import PodInfo


@final
class Epoch:
    """How long what does not follow from rows stays as it is."""

    def __init__(self, table: NodeTable, objects: ObjectStore) -> None:
        self._terms = table.placed_terms
        self._objects = objects

    def now(self) -> int:
        """Another number as soon as an object changed, or a pod with terms came or went."""
        return self._objects.change_count + self._terms.change_count


@final
class Prepared:
    """The notes of an attempt that was answered from a ranking, and for whom they are good."""

    __slots__ = ("_epoch", "_owners", "_shape", "_state", "is_scored", "picks")

    def __init__(
        self, pod: PodInfo, epoch: int, picks: Picks, state: CycleState, *, is_scored: bool
    ) -> None:
        """``is_scored``: PreScore was asked, too."""
        self._shape = pod.shape
        self._owners = pod.metadata.owner_references
        self._epoch = epoch
        self._state = state.clone()
        self.picks = picks
        self.is_scored = is_scored

    def suits(self, pod: PodInfo, epoch: int, current: object) -> bool:
        """Whether an attempt at ``pod`` would be prepared alike. ``current``: the totals for its
        like."""
        return (
            current is self.picks
            and pod.shape is self._shape
            and epoch == self._epoch
            and pod.metadata.owner_references == self._owners
        )

    def state(self) -> CycleState:
        """The notes, to be written to."""
        return self._state.clone()
