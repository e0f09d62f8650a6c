"""Faults that a test plants into the scheduler with reuse.

Each is one that a change of the code could introduce; the machine must find all of them.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest

from bayplan.engine.pinned_node import PinnedNode
from bayplan.engine.ranking.evaluation_plan import WeightedScore
from bayplan.engine.ranking.node_feasibility import FEASIBLE, NodeFeasibility
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.ranking.row_cache import RowCache
from bayplan.engine.ranking.score_index import ScoreIndex
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.engine.reuse_steps import ReuseSteps
from bayplan.engine.runs import Run, Runs
from bayplan.engine.schedule_one import CycleRunner
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import NodeScore
from bayplan.plugins.default_preemption.search_cache import CachedSearch
from bayplan.queue.sub_queues import OrderedEntries
from bayplan.state.change_log import Facet
from bayplan.state.node_table import NodeTable
from bayplan.state.resources import RowEquivalence
from tests.engine.reuse_pair import Fault, no_fault
from tests.engine.reuse_plugins import Most

#: Plants a fault in all schedulers, or returns a function that plants it in one of the pair.
Plant = Callable[[pytest.MonkeyPatch], Fault]


def table_of(scheduler: Scheduler) -> NodeTable:
    return scheduler.cache.table


def an_entry_of_the_log_is_dropped(patch: pytest.MonkeyPatch) -> Fault:
    """Every fifth change of a node is logged without facets."""

    def plant(scheduler: Scheduler) -> None:
        log, numbers = table_of(scheduler).log, count(1)
        note = log.note

        def forgetful(row: int, facets: int) -> None:
            note(row, 0 if next(numbers) % 5 == 0 else facets)

        patch.setattr(log, "note", forgetful)

    return plant


def a_generation_is_not_advanced(patch: pytest.MonkeyPatch) -> Fault:
    """Every fifth change does not advance the log's generation."""

    def plant(scheduler: Scheduler) -> None:
        log, numbers = table_of(scheduler).log, count(1)
        note = log.note

        def lagging(row: int, facets: int) -> None:
            note(row, facets)
            log.generation -= next(numbers) % 5 == 0

        patch.setattr(log, "note", lagging)

    return plant


def a_domain_count_is_stale(patch: pytest.MonkeyPatch) -> Fault:
    """Every second placed pod is not counted by the selectors in use."""

    def plant(scheduler: Scheduler) -> None:
        counts, numbers = table_of(scheduler).selector_counts, count(1)
        add = counts.add

        def lossy(row: int, pod: Any) -> None:
            before = {id(c): (c, c.total) for c in counts._counters.values()}
            add(row, pod)
            if next(numbers) % 2 == 0:
                for counter, total in before.values():
                    counter.column.values[row] -= counter.total - total
                    counter.total = total

        patch.setattr(counts, "add", lossy)

    return plant


def a_nomination_stays_in_a_mask(patch: pytest.MonkeyPatch) -> Fault:
    """A rejection because of nominated pods is cached as the plugin's own result."""
    run = CycleRunner._filter

    def keeping(runner: CycleRunner, cycle: Any) -> None:
        run(runner, cycle)
        if cycle.entry is None:
            return
        for entry in cycle.outcome.entries:
            results = cycle.entry.caches.filters.get(entry.plugin)
            for row in cycle.outcome.nodes.table.rows[entry.positions].tolist() if results else ():
                results.learn_one(row, ((entry.code, entry.reasons),))

    patch.setattr(CycleRunner, "_filter", keeping)
    return no_fault


def answers_stay_with_the_row(patch: pytest.MonkeyPatch) -> Fault:
    """A row that another node takes over is not evaluated again."""

    def plant(scheduler: Scheduler) -> None:
        table = table_of(scheduler)
        patch.setattr(table, "_note_node", lambda row: table.log.note(row, int(Facet.NODE)))

    return plant


def ties_are_drawn_by_row(patch: pytest.MonkeyPatch) -> Fault:
    """The ranking has a score's rows in the order of the rows."""

    def plant(scheduler: Scheduler) -> None:
        table = table_of(scheduler)
        orders: dict[bytes, np.ndarray] = {}

        def by_row() -> np.ndarray:
            rows = np.flatnonzero(table.alive.values)
            return orders.setdefault(rows.tobytes(), rows)

        patch.setattr(table, "draw_order", by_row)
        patch.setattr(table, "draw_places", lambda: np.argsort(by_row()))

    return plant


def an_extreme_does_not_move(patch: pytest.MonkeyPatch) -> Fault:
    """When the last row with an extreme score is removed, no score is normalised again."""
    patch.setattr(WeightedScore, "check", lambda share: None)
    return no_fault


def a_plugin_signs_too_little(patch: pytest.MonkeyPatch) -> Fault:
    """Pods with and without the score plugin share a signature."""

    def constant(plugin: Most, pod: Any) -> Hashable:
        return ""

    patch.setattr(Most, "sign_pod", constant)
    return no_fault


def a_total_stays_as_it_was(patch: pytest.MonkeyPatch) -> Fault:
    """A node that got a pod keeps its total if further plugins are evaluated."""
    move = RankedNodes._move

    def still(totals: RankedNodes, row: int) -> None:
        if totals.plan.is_complete:
            move(totals, row)

    patch.setattr(RankedNodes, "_move", still)
    return no_fault


def victims_are_not_searched_again(patch: pytest.MonkeyPatch) -> Fault:
    """Victims of a node are cached although its pods change."""
    catch_up = CachedSearch.catch_up

    def once(search: CachedSearch, *args: Any) -> None:
        if search._generation < 0:
            catch_up(search, *args)

    patch.setattr(CachedSearch, "catch_up", once)
    return no_fault


def victims_are_searched_without_nominated_pods(patch: pytest.MonkeyPatch) -> Fault:
    """Victims of a node are cached although further pods are nominated to it."""
    catch_up = CachedSearch.catch_up

    def careless(search: CachedSearch, *args: Any) -> None:
        snapshot, nodes, ranked, _ = args
        catch_up(search, snapshot, nodes, ranked, {})

    patch.setattr(CachedSearch, "catch_up", careless)
    return no_fault


def a_node_is_rejected_as_an_unequal_one(patch: pytest.MonkeyPatch) -> Fault:
    """A rejected node on which pods came or went is never evaluated again."""
    patch.setattr(RankedNodes, "_is_rejected_as_before", lambda ranking, row, before: before > 1)
    return no_fault


def what_was_prepared_outlives_what_it_follows_from(patch: pytest.MonkeyPatch) -> Fault:
    """Results of PreFilter and PreScore are cached although objects and terms change."""
    patch.setattr(ObjectGeneration, "now", lambda epoch: 0)
    return no_fault


def different_nodes_count_as_equivalent(patch: pytest.MonkeyPatch) -> Fault:
    """All empty nodes count as equivalent, whatever they offer."""
    set_empty = RowEquivalence.set_empty

    def careless(rows: RowEquivalence, row: int, offered: Hashable) -> None:
        set_empty(rows, row, "anything")

    patch.setattr(RowEquivalence, "set_empty", careless)
    return no_fault


def an_entry_is_ahead_of_the_log(patch: pytest.MonkeyPatch) -> Fault:
    """An entry claims to be used at the next change. Decisions are equal; validate() detects it."""
    learn = ReuseSteps.learn

    def ahead(steps: ReuseSteps, cycle: Any) -> None:
        learn(steps, cycle)
        if cycle.entry is not None and cycle.entry.generation >= 0:
            cycle.entry.generation = table_of_cycle(cycle).log.generation + 1

    patch.setattr(ReuseSteps, "learn", ahead)
    return no_fault


def table_of_cycle(cycle: Any) -> NodeTable:
    return cycle.snapshot.nodes._selection.open()


def a_row_cache_misses_changes(patch: pytest.MonkeyPatch) -> Fault:
    """If few rows changed, every third row keeps its cached results."""
    forget_changed = RowCache.forget_changed

    def forgetful(cache: RowCache, since: int, changes: Any) -> None:
        forget_changed(cache, since, [each for each in changes if each[0] % 3])

    patch.setattr(RowCache, "forget_changed", forgetful)
    return no_fault


def a_rejection_counts_twice(patch: pytest.MonkeyPatch) -> Fault:
    """A newly rejected node counts as two nodes."""
    set_number = NodeFeasibility.set

    def doubled(feasibility: NodeFeasibility, row: int, number: int) -> None:
        set_number(feasibility, row, number)
        feasibility.counts[number] += number > FEASIBLE

    patch.setattr(NodeFeasibility, "set", doubled)
    return no_fault


def a_line_outlives_its_total(patch: pytest.MonkeyPatch) -> Fault:
    """The journal's line of a node does not change with its total."""

    class Lasting(dict[int, NodeScore]):
        def pop(self, key: int, default: Any = None) -> Any:
            return default

    best_scores = RankedNodes.best_scores

    def stale(ranking: RankedNodes, count_max: int) -> tuple[NodeScore, ...]:
        if not isinstance(ranking._lines, Lasting):
            ranking._lines = Lasting(ranking._lines)
        return best_scores(ranking, count_max)

    patch.setattr(RankedNodes, "best_scores", stale)
    return no_fault


def a_node_does_not_move_in_the_index(patch: pytest.MonkeyPatch) -> Fault:
    """A node that got a pod and became equivalent to another one does not move in the index."""
    patch.setattr(ScoreIndex, "move", lambda index, place, before, now: None)
    return no_fault


def a_run_goes_on_too_long(patch: pytest.MonkeyPatch) -> Fault:
    """A run of equal pods does not end when an object or a nomination of its pods changes."""
    patch.setattr(
        Run, "goes_on", lambda run, _: run.ranking is None or run.ranking.feasible_count > 1
    )
    return no_fault


def a_run_does_not_see_its_own_pods(patch: pytest.MonkeyPatch) -> Fault:
    """A run chooses as if the pods before were not placed."""

    def deaf(ranking: RankedNodes, *_: object) -> int:
        ranking.generation += 1
        return ranking.feasible_count

    patch.setattr(RankedNodes, "move", deaf)
    return no_fault


def what_a_run_leaves_comes_last(patch: pytest.MonkeyPatch) -> Fault:
    """Pods that a run does not come to go behind the pods that wait."""

    def put_back(entries: OrderedEntries, items: Sequence[Any]) -> None:
        for item in items:
            entries.items[item[2].key] = item
            entries._row.append(item)

    patch.setattr(OrderedEntries, "put_back", put_back)
    return no_fault


def a_run_does_not_catch_up(patch: pytest.MonkeyPatch) -> Fault:
    """A run answers from its ranking though nodes changed."""
    patch.setattr(Runs, "_catch_up", lambda runs, run, ranking, pod, is_sampled: True)
    return no_fault


def a_pinned_node_is_not_evaluated_again(patch: pytest.MonkeyPatch) -> Fault:
    """A run of pods with one node does not see that the node changed."""
    patch.setattr(PinnedNode, "_changed_facets", lambda node, row: 0)
    return no_fault


def all_nodes_take_the_pods_of_a_daemon_set(patch: pytest.MonkeyPatch) -> Fault:
    """A run of pods with one node each counts nodes as passing that a filter rejects."""

    def pass_all(pinned: PinnedNode, *_: object) -> None:
        for row in range(len(pinned._passed)):
            pinned._passed[row] = pinned._table.log.generation

    patch.setattr(PinnedNode, "_evaluate_all", pass_all)
    return no_fault


def a_run_fails_though_a_node_changed(patch: pytest.MonkeyPatch) -> Fault:
    """Pods that fit nowhere do not see that a node changed."""
    follow = RankedNodes.follow

    def deaf(ranking: RankedNodes) -> bool:
        return not ranking.feasible_count or follow(ranking)

    patch.setattr(RankedNodes, "follow", deaf)
    return no_fault


FAULTS: tuple[Plant, ...] = (
    an_entry_of_the_log_is_dropped,
    a_generation_is_not_advanced,
    a_domain_count_is_stale,
    a_nomination_stays_in_a_mask,
    answers_stay_with_the_row,
    ties_are_drawn_by_row,
    an_extreme_does_not_move,
    a_plugin_signs_too_little,
    a_total_stays_as_it_was,
    victims_are_not_searched_again,
    victims_are_searched_without_nominated_pods,
    a_node_is_rejected_as_an_unequal_one,
    what_was_prepared_outlives_what_it_follows_from,
    different_nodes_count_as_equivalent,
    an_entry_is_ahead_of_the_log,
    a_row_cache_misses_changes,
    a_rejection_counts_twice,
    a_line_outlives_its_total,
    a_node_does_not_move_in_the_index,
    a_run_goes_on_too_long,
    a_run_does_not_catch_up,
    a_run_does_not_see_its_own_pods,
    what_a_run_leaves_comes_last,
    a_pinned_node_is_not_evaluated_again,
    all_nodes_take_the_pods_of_a_daemon_set,
    a_run_fails_though_a_node_changed,
)
