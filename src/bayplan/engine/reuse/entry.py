"""Prepared: what PreFilter and PreScore said about a pod, for the next of its like.

They are asked for one pod of a template, and not again before something changes that they follow
from: see Plugin.prepares_alike.

KnownPods: what is known about all pods that no row-wise plugin can tell apart.

Each row-wise plugin's answers are kept under its own part of the signature, so pods that differ
for one plugin only share the answers of all others. Filter and Score go on as always, but for
rows that are known the plugin is not asked. Plugins that look across nodes, or do not sign, are
asked as ever.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from bayplan.engine.reuse.ranked_nodes import IncrementalScores, RankedNodes
from bayplan.engine.reuse.row_cache import UNKNOWN, CachedFilterResults, CachedScores, RowCounts
from bayplan.framework.cycle_state import (
    AskFilter,
    AskScore,
    CycleState,
    FilterQuestion,
    ScoreQuestion,
)
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Rejection
from bayplan.state.change_log import ChangeLog
from bayplan.state.columns import NodeMask, NodeScores, Rows, all_true, is_any, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.object_store import ObjectStore
from bayplan.state.pods import PodInfo

# ---- prepared -------------------------------------------------------------------------------


@final
class ObjectGeneration:
    """How long what does not follow from rows stays as it is."""

    def __init__(self, table: NodeTable, objects: ObjectStore) -> None:
        self._terms = table.placed_terms
        self._objects = objects

    def now(self) -> int:
        """Another number as soon as an object changed, or a pod with terms came or went."""
        return self._objects.change_count + self._terms.change_count


@final
class CachedPreState:
    """The notes of an attempt that was answered from a ranking, and for whom they are good."""

    __slots__ = ("_epoch", "_owners", "_shape", "_state", "is_scored", "picks")

    def __init__(
        self, pod: PodInfo, epoch: int, picks: RankedNodes, state: CycleState, *, is_scored: bool
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


# ---- known pods -----------------------------------------------------------------------------


@final
class SignatureEntry:
    """framework.plugin.KeptAnswers of one signature."""

    __slots__ = (
        "_log",
        "bytes_counted",
        "counts",
        "cycle_count",
        "example",
        "generation",
        "in_full",
        "is_vectorised",
        "parts",
        "picks",
        "pod_count",
        "prepared",
        "scores",
        "set_aside",
        "verdicts",
    )

    def __init__(
        self,
        log: ChangeLog,
        verdicts: Mapping[str, CachedFilterResults],
        scores: Mapping[str, CachedScores],
        example: str,
    ) -> None:
        """By instance. ``example``: one of the pods, "namespace/name"."""
        self._log = log
        self.verdicts = verdicts
        self.scores = scores
        self.parts: Sequence[CachedFilterResults | CachedScores] = [
            *verdicts.values(),
            *scores.values(),
        ]
        self.example = example
        #: Instances that are evaluated on all nodes for each of these pods, and why; see
        #: `Reuse.prevented_counts`.
        self.in_full: Sequence[tuple[str, str]] = ()
        #: Whether nobody whose answers about such pods are kept is asked node by node.
        self.is_vectorised = False
        #: Pods of this kind that were tried, and attempts at them.
        self.pod_count = self.cycle_count = 0
        #: Rows that instances were, and were not, asked about; see `count_rows`.
        self.counts: dict[str, RowCounts] = defaultdict(RowCounts)
        #: Of the last attempt with these answers; -1: there was none.
        self.generation = -1
        #: The totals, or ranking, that the last attempt was answered from.
        self.picks: IncrementalScores | None = None
        #: What PreFilter and PreScore said, where that need not be asked again.
        self.prepared: CachedPreState | None = None
        #: Others: pods that are alike to all who sign may be none of others' business, or not.
        self.set_aside: list[IncrementalScores] = []
        self.bytes_counted = 0

    def all_totals(self) -> Sequence[IncrementalScores]:
        return self.set_aside if self.picks is None else [*self.set_aside, self.picks]

    def count_rows(self) -> None:
        """Have `counts` up to now."""
        for totals in self.all_totals():
            totals.spared.add_up()

    def take(self, state: CycleState, *, scored: bool) -> IncrementalScores | None:
        """The totals for this attempt: of the plugins that it does not skip. ``scored``: PreScore
        has said, too, who is skipped."""
        picks = self.picks
        if picks is None or not picks.like.suits(state, scored=scored):
            picks = next((p for p in self.set_aside if p.like.suits(state, scored=scored)), None)
            if picks is not None:
                self.set_aside.remove(picks)
                self.put_aside()
                self.picks = picks
        return picks

    def put_aside(self) -> None:
        """The next attempt may be one that these totals are for, but this is not."""
        if self.picks is not None:
            self.set_aside.append(self.picks)
            self.picks = None

    def catch_up(self) -> None:
        """Forget what is not true any more. The log is read once, and again only for those whose
        rows changed."""
        since, log = self.generation, self._log
        if since < 0 or since == log.generation:
            return
        facets = log.facets_since(since)
        for part in self.parts:
            part.skip_to_now(since, facets)

    # ---- KeptAnswers ----------------------------------------------------------------------

    def filter(self, name: str, ask: AskFilter, asked: FilterQuestion) -> Iterable[Rejection]:
        state, pod, nodes, feasible = asked
        kept, counts = self.verdicts.get(name), self.counts[name]
        if kept is None:
            counts.asked += len(nodes)
            return ask(state, pod, nodes, feasible)
        kept.catch_up()
        unknown = _unknown(kept, nodes, feasible)
        if unknown is None:
            counts.kept += len(nodes)
            return kept.rejections(nodes, feasible)
        some = nodes if len(unknown) == len(nodes) else nodes.take(unknown)
        outcome = FilterOutcome(some, all_true(len(some)))
        outcome.add(name, ask(state, pod, some, outcome.feasible))
        counts.asked += len(some)
        counts.kept += len(nodes) - len(some)
        if outcome.error is not None:
            # What may not be answered is not kept, and told as if nothing ever were.
            return ask(state, pod, nodes, feasible)
        kept.learn(_rows_at(nodes, unknown), outcome)
        return kept.rejections(nodes, feasible)

    def score(self, name: str, ask: AskScore, asked: ScoreQuestion) -> NodeScores:
        state, pod, nodes = asked
        kept, counts = self.scores.get(name), self.counts[name]
        if kept is None:
            counts.asked += len(nodes)
            return ask(state, pod, nodes)
        kept.catch_up()
        known = kept.known[nodes.selection]
        if not known.all():
            unknown = places_of(~known)
            some = nodes if len(unknown) == len(nodes) else nodes.take(unknown)
            raw = ask(state, pod, some)
            counts.asked += len(some)
            counts.kept -= len(some)
            if not _is_column(raw, len(some)):
                return ask(state, pod, nodes)
            kept.learn(_rows_at(nodes, unknown), raw)
        counts.kept += len(nodes)
        return kept.of(nodes)


def _unknown(kept: CachedFilterResults, nodes: NodeView, feasible: NodeMask) -> Rows | None:
    """Positions to be asked about: of feasible nodes; None: there are none."""
    unknown = kept.ids[nodes.selection] == UNKNOWN
    if not is_any(unknown):
        return None
    unknown &= feasible
    return places_of(unknown) if is_any(unknown) else None


def _is_column(raw: Any, count: int) -> bool:
    return getattr(raw, "dtype", None) == np.int64 and getattr(raw, "shape", None) == (count,)


def _rows_at(nodes: NodeView, positions: Rows) -> Rows:
    rows = nodes.selection
    return positions if isinstance(rows, slice) else rows.take(positions)
