"""The dry run: which nodes would fit the pod without some of their pods, and which pods these are.

Nodes are tried from a start that is drawn until there are enough candidates, one of them without
violating a budget; if only amounts of resources matter, many nodes are searched at once, with the
same result as one by one. A node with a member of a group that is evicted as a whole is always
searched alone. So is a node with nominated pods of the same or higher priority, unless only the
amounts of these matter, too: then its result is cached like those of other nodes. Upstream:
preemption.go, DryRunPreemption (v1.37).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.handle import FilterRunner
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.default_preemption.candidates import Batch, joined, listed
from bayplan.plugins.default_preemption.search_cache import RotatedPositions, SearchCache
from bayplan.plugins.default_preemption.victims import (
    NO_VICTIMS,
    SIDE_BY_SIDE_MIN,
    Side,
    fits_without,
    victims_on,
    victims_on_all,
)
from bayplan.state.cache import Snapshot
from bayplan.state.columns import Rows, is_any
from bayplan.state.disruption_units import Units
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.ranked_pods import RankedView

_NO_VICTIMS = unresolvable(NO_VICTIMS)


def lacks_victims(node_name: str) -> Status:
    """The rejection of a node that the pod fits without any victim, from 1.38 on."""
    return _NO_VICTIMS


@dataclass(slots=True)
class Findings:
    """The results of a dry run."""

    batches: list[Batch] = field(default_factory=list[Batch])
    #: Nodes that are no candidates: how many give each reason, and their statuses by name.
    reasons: Counter[str] = field(default_factory=Counter[str])
    status_sources: list[Callable[[], dict[str, Status]]] = field(
        default_factory=list[Callable[[], dict[str, Status]]]
    )
    errors: list[Status] = field(default_factory=list[Status])
    #: Names of nodes that fit the pod without any victim, but for extenders.
    needless: list[str] = field(default_factory=list[str])

    @property
    def candidates(self) -> Batch | None:
        """In the order of the search, candidates without violations first."""
        if not self.batches:
            return None
        every = joined(self.batches)
        violating = every.costs.pdb_violation_counts > 0
        if not is_any(violating):
            return every
        return every.take(np.argsort(violating, kind="stable"))

    def statuses(self) -> dict[str, Status]:
        """Of the nodes that were tried in vain."""
        return {name: status for tell in self.status_sources for name, status in tell().items()}

    def fail(self, name: str, status: Status) -> None:
        self.reasons.update(status.reasons)
        self.status_sources.append(lambda: {name: status})
        if status.code is Code.ERROR:
            self.errors.append(status)


@dataclass(slots=True)
class DryRun:
    """One search for one pod."""

    runner: FilterRunner
    snapshot: Snapshot
    #: As PreFilter left it; every node that is tried by itself gets a clone.
    state: CycleState
    pod: PodInfo
    budgets: Budgets
    units: Units
    #: The results of earlier searches; this search adds its own.
    cache: SearchCache
    #: Whether nodes without victims are wanted: candidates of extenders that preempt.
    lists_needless: bool = False
    #: The status of a node that fits the pod without any victim.
    status_without_victims: Callable[[str], Status] = fits_without
    nodes: NodeView = field(init=False)
    #: Their pods.
    ranked: RankedView = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = self.snapshot.nodes
        self.ranked = self.snapshot.ranked_pods(self.nodes)

    def search(self, positions: RotatedPositions, candidate_count: int) -> Findings:
        """Try these positions of all nodes in this order until there are enough candidates."""
        if self.units.are_single and not self._is_above_any(positions):
            findings = Findings()
            self._with_victims(positions.all(), findings)
            return findings
        if self.lists_needless or not self.runner.only_amounts_matter(self.state):
            return self._search_anew(positions.all(), candidate_count, None)
        nominated, members = self.runner.nominated_ahead(self.pod), self.units.node_names()

        def search_anew() -> Findings:
            alone = self.nodes.positions(sorted({*nominated, *members}))
            return self._search_anew(positions.all(), candidate_count, alone)

        batch: Batch | None = None
        if not members:
            batch = self._search_cached(positions, candidate_count, nominated)
        if batch is None:
            return search_anew()
        # The reasons of other nodes are not stored: they are rarely read if there are candidates.
        findings = Findings([batch])
        findings.status_sources.append(lambda: search_anew().statuses())
        return findings

    def _is_above_any(self, positions: RotatedPositions) -> bool:
        """Whether one of these nodes has a pod of lower priority."""
        lowest = self.ranked.lowest_at(positions.any_order())
        return is_any(lowest < self.pod.priority)

    def _search_anew(
        self, positions: Rows, candidate_count: int, by_themselves: Rows | None
    ) -> Findings:
        """``by_themselves``: nodes that are searched alone; None: all of them."""
        findings = Findings()
        with_victims = self._with_victims(positions, findings)
        if by_themselves is not None:
            if self._search_many(with_victims, by_themselves, candidate_count, findings):
                return findings
            findings.batches.clear()
        self._search_each(with_victims, candidate_count, findings)
        return findings

    def _with_victims(self, positions: Rows, findings: Findings) -> Rows:
        """Those that have a pod of lower priority."""
        lowest = self.ranked.lowest_at(positions)
        has_victims = lowest < self.pod.priority
        if not self.units.are_single:
            # A group may be less important than each of its pods.
            members = self.nodes.positions(sorted(self.units.node_names()))
            has_victims |= np.isin(positions, members)
        without = positions[~has_victims]
        if len(without):
            nodes = self.nodes
            findings.reasons[NO_VICTIMS] += len(without)
            findings.status_sources.append(
                lambda: {nodes.name(position): _NO_VICTIMS for position in without.tolist()}
            )
        return positions[has_victims]

    # ---- with what is known ------------------------------------------------------------------

    def _search_cached(
        self,
        positions: RotatedPositions,
        candidate_count: int,
        nominated: Mapping[str, Sequence[PodInfo]],
    ) -> Batch | None:
        """None: nothing is cached for such pods, or there is no candidate, and the cache does not
        show the reasons. ``nominated``: node name → the pods that have to fit there, too."""
        if nominated and self.runner.follows_added_pods(self.state, self.pod):
            return None
        filter_key = self.runner.filter_key(self.state, self.pod)
        if filter_key is None:
            return None
        cached = self.cache.of(filter_key, self.pod.priority, self.budgets)
        nodes, ranked = self.nodes, self.ranked
        cached.catch_up(self.snapshot, nodes, ranked, nominated)
        side = partial(self._side, nominated=nominated)
        batch = cached.search(nodes, ranked, positions, candidate_count, side=side)
        return batch if batch is not None and len(batch) else None

    def _side(self, positions: Rows, nominated: Mapping[str, Sequence[PodInfo]]) -> Side | None:
        lowest = self.ranked.lowest_at(positions)
        with_victims = positions[lowest < self.pod.priority]
        question = (self.runner, self.state.clone(), self.pod)
        return victims_on_all(
            self.snapshot, with_victims, question, self.budgets, nominated=nominated
        )

    # ---- one by one -------------------------------------------------------------------------

    def _search_each(self, positions: Rows, candidate_count: int, findings: Findings) -> None:
        count, is_gentle = 0, False
        for position in positions.tolist():
            victims = self._search_one(position, findings)
            if victims is not None:
                findings.batches.append(listed([(position, victims)]))
                count += 1
                is_gentle = is_gentle or not victims.pdb_violation_count
                if is_gentle and count >= candidate_count:
                    return

    def _search_one(self, position: int, findings: Findings) -> Victims | None:
        node = self.nodes.info(position)
        question = (self.runner, self.state.clone(), self.pod)
        answer = victims_on(node, question, self.snapshot, self.budgets, units=self.units)
        if not isinstance(answer, Victims):
            findings.fail(node.name, answer)
            return None
        if not answer.pods:
            self._note_needless(node.name, findings)
            return None
        return answer

    def _note_needless(self, name: str, findings: Findings) -> None:
        findings.needless.append(name)
        findings.fail(name, self.status_without_victims(name))

    # ---- side by side -----------------------------------------------------------------------

    def _search_many(
        self, positions: Rows, by_themselves: Rows, candidate_count: int, findings: Findings
    ) -> bool:
        """False: amounts do not decide, and nothing was added."""
        state = self.state.clone()
        done = count = 0
        while done < len(positions):
            size = max(candidate_count - count, SIDE_BY_SIDE_MIN)
            chunk = positions[done : done + size]
            done += len(chunk)
            batch = self._search_chunk(chunk, by_themselves, state, findings)
            if batch is None:
                return False
            findings.batches.append(batch)
            if self._is_enough(findings, candidate_count):
                return True
            count += len(batch)
        findings.batches = [batch for batch in findings.batches if len(batch)]
        return True

    def _search_chunk(
        self, chunk: Rows, by_themselves: Rows, state: CycleState, findings: Findings
    ) -> Batch | None:
        """The candidates among some nodes, in their order."""
        is_alone = np.isin(chunk, by_themselves)
        question = (self.runner, state, self.pod)
        side = victims_on_all(self.snapshot, chunk[~is_alone], question, self.budgets)
        if side is None:
            return None
        findings.reasons += side.without_all.reason_counts()
        findings.status_sources.append(side.without_all.statuses)
        for name in side.needless:
            self._note_needless(name, findings)
        alone = chunk[is_alone].tolist()
        answers = [(position, self._search_one(position, findings)) for position in alone]
        singles = [(position, victims) for position, victims in answers if victims is not None]
        if not singles:
            return side.batch
        both = joined([side.batch, listed(singles)])
        place = {position: index for index, position in enumerate(chunk.tolist())}
        order = np.argsort([place[position] for position in both.positions.tolist()])
        return both.take(order)

    def _is_enough(self, findings: Findings, candidate_count: int) -> bool:
        """Drops the candidates that a search one by one would not have reached."""
        every = joined(findings.batches)
        gentle = np.cumsum(every.costs.pdb_violation_counts == 0)
        counts = np.arange(1, len(every) + 1)
        enough = np.flatnonzero((gentle > 0) & (counts >= candidate_count))
        if not len(enough):
            return False
        findings.batches = [every.take(np.arange(int(enough[0]) + 1))]
        return True
