"""ResultCache: the entries of one profile by signature, bounded in bytes.

Above the bound, the entry that was used longest ago is dropped first.

The cache is exact if each plugin signs all that it reads of a pod. One attempt in a thousand runs
without the cache, and every instance whose cached results differ is named (`mismatches`).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import final

import numpy as np

from bayplan.engine.ranking.evaluation_plan import (
    OTHER_PLUGINS,
    TOO_MUCH_CHANGED,
    Planner,
    RankingInvalid,
    SingleNodeEvaluator,
)
from bayplan.engine.ranking.node_cells import NodeCells
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX, RankedNodes
from bayplan.engine.ranking.row_cache import (
    PASSES,
    CachedFilterResults,
    CachedScores,
    RowCaches,
    RowCounts,
    SharedCaches,
)
from bayplan.engine.reuse.entry import ObjectGeneration, SharedRanking, SignatureEntry
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome, verdicts_of
from bayplan.framework.plugin import Plugin, ScalarFilterPlugin, ScalarScorePlugin, ScorePlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.signing import (
    PodSignature,
    followed_kinds,
    follows_from_objects,
)
from bayplan.framework.timing import Observe
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.columns import Rows, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.volumes import STORAGE_FACETS

#: Why an entry, or all results of an instance, were dropped.
OUT_OF_BYTES = "bytes"
OBJECT_CHANGED = "object_changed"
WRONG = "mismatch"

#: Why an instance's results are not cached.
UNSIGNED = "unsigned"
ACROSS_NODES = "across_nodes"

#: How an attempt used the cache: its signature was new; a ranking answered; the plugins were
#: evaluated, at least for some rows.
NO_HINT = "no_hint"
HINT_USED = "hint_used"
HINT_NOT_USED = "hint_not_used"

#: One attempt in this number calls all plugins, and compares their results with the cached ones.
CHECK_PERIOD = 1000
#: The period grows by `CHECK_PERIOD` with each further so many nodes, because a check takes longer
#: with more nodes.
CHECK_NODES = 10_000

#: In clusters of up to so many nodes, calling vectorized plugins for all nodes is faster than
#: catching up with many changes.
STEP_ASIDE_NODES_MAX = 20_000

#: What a ranking costs, in evaluations of all nodes; and the bounds of the remembered costs and
#: savings.
_RANKING_COSTS = 3
_BALANCE_MAX = 16
_PATIENCE_MIN, _PATIENCE_MAX = 2, 64

#: An entry besides its arrays: objects, dictionaries, its signature. Measured with four plugins.
_ENTRY_BYTES = 2048

#: Signatures that are remembered where nothing is cached, to count what could have been.
_SEEN_MAX = 4096


@final
class ResultCache:
    """The cache entries of one profile."""

    def __init__(
        self,
        framework: Framework,
        table: NodeTable,
        object_generation: ObjectGeneration,
        warn: Callable[[str], None],
        *,
        observe: Sequence[Observe],
    ) -> None:
        """``observe``: two functions that take the seconds of a look-up; the second one is for
        look-ups that gave a node.

        With a bound of 0 bytes nothing is cached; what could have been is counted.
        """
        self.framework = framework
        self._table = table
        self.object_generation = object_generation
        self._warn = warn
        self._observe = observe
        plugins = framework.plugins
        self._bytes_max = plugins.reuse_bytes_max
        self._entries: OrderedDict[PodSignature, SignatureEntry] = OrderedDict()
        filters: dict[str, Plugin] = {p.instance_name: p for p in plugins.filter}
        #: All plugins that can score, those that are only sources of others included.
        scorers: dict[str, Plugin] = {
            plugin.instance_name: plugin
            for plugin in plugins.instances()
            if isinstance(plugin, ScorePlugin | ScalarScorePlugin)
        }
        self._plugins = {**filters, **scorers}
        self._filters = SharedCaches(CachedFilterResults, table, filters)
        self._scores = SharedCaches(CachedScores, table, scorers)
        #: Instances that are written node by node.
        self._scalar_names = {
            name
            for name, plugin in (*filters.items(), *scorers.items())
            if isinstance(plugin, ScalarFilterPlugin | ScalarScorePlugin)
        }
        #: By kind of object, the instances that read such objects and that learn of a change by no
        #: row.
        self._readers: dict[str, frozenset[str]] = {}
        self._planner = Planner(plugins)
        #: By skipping plugins and the parts of the others; see `shared_ranking`.
        self._sharings: dict[Hashable, SharedRanking] = {}
        self.bytes_used = 0
        #: What rankings saved lately, less what it took to make them, in evaluations of all nodes.
        #: If it is below 0, equal pods have to come more often before their results are cached.
        self._balance = _BALANCE_MAX
        self._patience = _PATIENCE_MIN
        #: The rows by instance, of entries that left.
        self._past_counts = {name: RowCounts() for name in self._plugins}
        #: (instance, reason) → attempts, of entries that left; see `prevented_counts`.
        self._past_prevented: Counter[tuple[str, str]] = Counter()
        #: The number of attempts at pods of a signature that was tried before.
        self.possible_count = 0
        #: By upstream's words for how an attempt used the cache.
        self.attempt_counts = Counter[str]({NO_HINT: 0, HINT_USED: 0, HINT_NOT_USED: 0})
        #: By instance.
        self.mismatch_counts: Counter[str] = Counter()
        #: The rankings that were dropped, and the entries or results that were dropped, by reason.
        self.flushed_counts: Counter[str] = Counter()
        self.dropped_counts: Counter[str] = Counter()

    @property
    def is_on(self) -> bool:
        return self._bytes_max > 0

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterable[SignatureEntry]:
        return self._entries.values()

    def row_counts(self) -> Mapping[str, RowCounts]:
        """The rows that each instance was evaluated for, and those that cached results answered, by
        instance, up to now."""
        total = {name: RowCounts() for name in self._past_counts}
        for counts in (self._past_counts, *(entry.row_counts() for entry in self.entries())):
            for name, count in counts.items():
                total[name].add(count)
        return total

    def prevented_counts(self) -> Counter[tuple[str, str]]:
        """(instance, reason) → attempts in which its results could not be cached, whether or not
        caching is on: a Filter or Score that does not sign such pods, or looks across nodes."""
        total = Counter(self._past_prevented)
        for entry in self.entries():
            _add_prevented(total, entry)
        return total

    # ---- entries --------------------------------------------------------------------------

    def entry_for(self, pod: PodInfo) -> SignatureEntry:
        """The entry of the pod's signature; a new signature gets an empty one."""
        signature = self.framework.sign_pod(pod)
        entry = self._entries.get(signature)
        if entry is None:
            entry = self._entries[signature] = self._open(signature, pod)
            if len(self._entries) > _SEEN_MAX and not entry.caches.all:
                self._drop_oldest()
        else:
            self.possible_count += 1
            self._entries.move_to_end(signature)
        return entry

    def _open(self, signature: PodSignature, pod: PodInfo) -> SignatureEntry:
        entry = SignatureEntry(self._table.log, signature, pod.key)
        unconcerned = self.framework.unconcerned(pod)
        entry.uncached = tuple(self._uncached(signature, unconcerned))
        # A plugin that does not sign is called for all nodes in any case.
        entry.is_vectorized = not any(
            signature.parts.get(name) is not None for name in self._scalar_names - unconcerned
        )
        if self.is_on and not (self._balance < 0 and entry.is_vectorized):
            self.open_caches(entry)
        return entry

    def open_caches(self, entry: SignatureEntry) -> None:
        """Give the entry its row caches. An entry that was new while caching did not pay has none
        until a cycle uses the entry."""
        if not entry.is_open:
            entry.is_open = True
            filters = self._filters.open(entry.signature)
            entry.caches = RowCaches(filters, self._scores.open(entry.signature))

    def _uncached(
        self, signature: PodSignature, unconcerned: Set[str]
    ) -> Iterator[tuple[str, str]]:
        """The instances that are evaluated on all nodes for such pods, each with the reason."""
        for name, plugin in self._plugins.items():
            if name in unconcerned:
                continue
            if plugin.scope != "row":
                yield name, ACROSS_NODES
            elif signature.parts.get(name) is None:
                yield name, UNSIGNED

    # ---- cycles ---------------------------------------------------------------------------

    def steps_aside(self, entry: SignatureEntry) -> bool:
        """Whether calling the plugins for all nodes is faster than using the entry.

        This is so if much changed since the entry was last used. It is also so if caching has not
        paid lately, until pods of this signature come often enough soon after one another. The
        entry stays as it is, and a cycle soon after this one catches up.
        """
        since, generation = entry.generation, self._table.log.generation
        node_count = self._table.node_count
        is_rare = since >= 0 and entry.is_far_behind()
        if not is_rare and self._balance >= 0:
            return False
        if is_rare:
            entry.repeat_count = 0
            # Pods of another signature may have used a ranking that the entry shares.
            ranking = None if entry.sharing is None else entry.sharing.ranking
            if ranking is not None and generation - ranking.generation <= CHANGES_MAX:
                return False
        else:
            entry.repeat_count += since >= 0
            is_cached = entry.rankings or entry.pre_state is not None
            if is_cached or entry.repeat_count >= self._patience:
                return False
        if not entry.is_vectorized or node_count > STEP_ASIDE_NODES_MAX:
            return False
        if is_rare:
            # The rankings are too far behind. The next cycle may come soon after this one, and must
            # not count on them.
            for ranking in list(entry.rankings.values()):
                self.drop_ranking(entry, ranking, TOO_MUCH_CHANGED)
        entry.generation = generation
        entry.evaluated_count += node_count
        return True

    def _invest(self, costs: int) -> None:
        """Record that an attempt took longer than without the cache, to save time in later ones."""
        self._balance = max(self._balance - costs, -_BALANCE_MAX)
        if self._balance < 0 and costs > 1:
            self._patience = min(2 * self._patience, _PATIENCE_MAX)

    def rank(
        self,
        entry: SignatureEntry,
        make_evaluator: Callable[[], SingleNodeEvaluator],
        scored: ScoreTable | None,
    ) -> None:
        """Rank the nodes after a cycle that called the plugins, if pods of this signature come soon
        after one another."""
        comes_soon = entry.generation >= 0 and not entry.is_far_behind()
        self._invest(1)
        entry.generation = self._table.log.generation
        if comes_soon:
            for cache in entry.caches.all:
                cache.catch_up()
            evaluator, caches = make_evaluator(), (entry.caches.filters, entry.caches.scores)
            plan = self._planner.plan_for(*caches, evaluator.state, scored)
            try:
                if plan is not None:
                    self._invest(_RANKING_COSTS)
                    owner = entry.signature
                    ranking = RankedNodes(self._table, plan, evaluator, scored, owner=owner)
                    if entry.add_ranking(ranking):
                        self.flushed_counts[OTHER_PLUGINS] += 1
                    self._share(entry, ranking)
            except RankingInvalid as problem:
                self.flushed_counts[problem.reason] += 1
        self._count_bytes(entry)

    def _share(self, entry: SignatureEntry, ranking: RankedNodes) -> None:
        if ranking.plan.is_complete:
            sharing = self._sharing_of(entry, ranking.plan.skip_set.filters)
            if sharing.ranking is None or ranking.plan.skip_set.scores is not None:
                sharing.share(ranking)

    def shared_ranking(self, entry: SignatureEntry, skipped: Set[str]) -> RankedNodes | None:
        """A complete ranking of another entry, whose signature differs only in the parts of
        plugins that skip such pods. It answers for these pods if PreScore skips the same plugins.

        ``skipped``: the plugins that PreFilter skips.
        """
        ranking = self._sharing_of(entry, skipped).ranking
        if ranking is None:
            return None
        parts, others = entry.signature.parts, ranking.owner.parts
        for score in ranking.plan.scores:
            # A plugin may skip as a Filter, and still score.
            if score.name in skipped and parts[score.name] != others[score.name]:
                return None
        return ranking

    def _sharing_of(self, entry: SignatureEntry, skipped: Set[str]) -> SharedRanking:
        """The value that all entries share whose signatures agree in the parts of the plugins that
        do not skip."""
        sharing = entry.sharing
        if sharing is None or sharing.skipped != skipped:
            parts = entry.signature.parts.items()
            key = frozenset(skipped), tuple([each for each in parts if each[0] not in skipped])
            sharing = self._sharings.get(key)
            if sharing is None:
                if len(self._sharings) >= _SEEN_MAX:
                    self._sharings.clear()
                sharing = self._sharings[key] = SharedRanking(key[0])
            entry.sharing = sharing
        return sharing

    def used(self, entry: SignatureEntry, ranking: RankedNodes, pod_count: int = 1) -> None:
        """Record that a ranking answered for pods of this entry."""
        entry.generation = ranking.generation
        if self._balance < _BALANCE_MAX:
            self._balance = min(self._balance + pod_count, _BALANCE_MAX)
            if self._balance >= 0:
                self._patience = _PATIENCE_MIN
        if ranking.owner is not entry.signature:
            owner = self._entries[ranking.owner]
            owner.generation = ranking.generation
            self._entries.move_to_end(ranking.owner)

    def owner_of(self, ranking: RankedNodes) -> SignatureEntry | None:
        """The entry that the ranking belongs to; None: the ranking was dropped."""
        return None if ranking.is_dropped else self._entries.get(ranking.owner)

    def repeats_left(self, entry: SignatureEntry) -> int:
        """How many cycles would use the entry now, one after another. They use it if it is still in
        the cache, few rows have changed since its last use, caching pays, and no check is due."""
        if self._balance < 0 or entry.generation < 0:
            return 0
        # This does what `is_far_behind` does first, without a call for each cycle.
        changed_count = self._table.log.generation - entry.generation
        if changed_count > CHANGES_MAX and entry.is_far_behind():
            return 0
        if self._entries.get(entry.signature) is not entry:
            return 0
        # The next look-up counts for the check. This is `is_check_due`, without a further call.
        period = CHECK_PERIOD * (1 + self._table.node_count // CHECK_NODES)
        return period - 1 - (self.possible_count + 1) % period

    def narrowed_entry(self, signature: PodSignature) -> SignatureEntry | None:
        """The entry of pods whose PreFilter leaves few nodes. Their cycles count in the entry, and
        use nothing of it. None: nothing is cached."""
        return self._entries.get(signature) if self.is_on else None

    def may_pass(self, entry: SignatureEntry) -> bool:
        """Whether such a cycle would change nothing of the entry but the counts."""
        is_unused = entry.generation < 0 <= self._balance
        return is_unused and self._entries.get(entry.signature) is entry

    def repeated(
        self, entry: SignatureEntry, ranking: RankedNodes | None, run: Sequence[QueuedPodInfo]
    ) -> None:
        """Record attempts at pods that were made without a cycle.

        ``ranking``: the ranking of the entry's own that answered; None: there was one node. The
        caller observes how long they took; see `observe_hinted`.
        """
        count = len(run)
        self.possible_count += count
        self._entries.move_to_end(entry.signature)
        entry.cycle_count += count
        for queued in run:
            entry.pod_count += queued.attempts <= 1
        if ranking is None:
            return
        if self._balance < _BALANCE_MAX or ranking.owner is not entry.signature:
            self.used(entry, ranking, count)
        else:
            entry.generation = ranking.generation
        self.attempt_counts[HINT_USED] += count

    @property
    def observe_hinted(self) -> Observe:
        """The observer of the seconds of an attempt that a ranking answered."""
        return self._observe[True]

    def drop_ranking(self, entry: SignatureEntry, ranking: RankedNodes, reason: str) -> None:
        self.flushed_counts[reason] += 1
        self._entries[ranking.owner].drop_ranking(ranking)
        if ranking.owner is not entry.signature:
            entry.pre_state = None

    def drop_cells(self, entry: SignatureEntry, reason: str) -> None:
        """Drop the cells of an entry. Their ranking stays, as a part of the answer."""
        self.flushed_counts[reason] += 1
        entry.drop_cells()

    def add_cells(self, entry: SignatureEntry, cells: NodeCells) -> None:
        self._invest(_RANKING_COSTS)
        assert entry.cells is None, "the ranking has cells"
        entry.cells = cells
        self._count_bytes(entry)

    def count(self, entry: SignatureEntry, is_hinted: bool, seconds: float) -> None:
        """Count an attempt that used the cache, and whether a ranking answered it."""
        if is_hinted:
            self.attempt_counts[HINT_USED] += 1
        else:
            self.attempt_counts[NO_HINT if entry.generation < 0 else HINT_NOT_USED] += 1
        self._observe[is_hinted](seconds)

    # ---- checks ---------------------------------------------------------------------------

    @property
    def is_check_due(self) -> bool:
        period = CHECK_PERIOD * (1 + self._table.node_count // CHECK_NODES)
        return self.possible_count % period == period - 1

    def compare(
        self, entry: SignatureEntry, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> None:
        """Compare the cached results with an attempt that ran without the cache. Drop and report
        results that differ."""
        for name in mismatches(entry, self.framework, state, pod, nodes=nodes):
            self.mismatch_counts[name] += 1
            self._forget({name}, WRONG, lambda plugin, part: True)
            self._warn(
                f"plugin {name} answered differently for pod {pod.key} than for an earlier pod of "
                f"equal signature: its sign_pod leaves out something that its answers depend on"
            )

    def report_cells(self, entry: SignatureEntry, cells: NodeCells, pod: PodInfo) -> None:
        """Drop and report cells whose answer differs from that of the plugins."""
        names = cells.rule_names()
        for name in names:
            self.mismatch_counts[name] += 1
        self.drop_cells(entry, WRONG)
        self._warn(
            f"the domain rules of {', '.join(names)} answered differently for pod {pod.key} than "
            f"the plugins: the results of the rules are dropped"
        )

    def validate(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> None:
        """Recompute the pod's entry from scratch: rankings from the row caches, and these from the
        plugins. ``state``: after PreFilter and PreScore without the cache. Raises AssertionError
        where they differ."""
        entry = self._entries.get(self.framework.sign_pod(pod))
        if entry is None:
            return
        entry.validate()
        wrong = mismatches(entry, self.framework, state, pod, nodes=nodes)
        assert not wrong, f"cached results for {pod.key} differ: {wrong}"
        pre_state = entry.pre_state
        if pre_state is not None and pre_state.fits(pod, self.object_generation.now()):
            skipped = pre_state.state.skip_filter_plugins
            assert skipped == state.skip_filter_plugins, f"{pod.key}: other plugins skip"

    # ---- dropping -------------------------------------------------------------------------

    def forget_kind(self, kind: str) -> None:
        """Forget the results of the plugins that read objects of this kind, because one changed.
        Where the kind decides which pods concern a plugin, all entries go."""
        if kind in self.framework.concern_kinds:
            while self._entries:
                self._drop_oldest(OBJECT_CHANGED)
            return
        readers = self._readers.get(kind)
        if readers is None:
            readers = self._readers[kind] = frozenset(
                name
                for name, plugin in self._plugins.items()
                if kind in followed_kinds(plugin)
                and not plugin.promises.facets & STORAGE_FACETS.get(kind, 0)
            )
        if readers:
            self._forget(readers, OBJECT_CHANGED, follows_from_objects)

    def _forget(
        self, names: Set[str], reason: str, is_affected: Callable[[Plugin, Hashable], bool]
    ) -> None:
        """Forget the results of these instances for the affected parts of signatures, and the
        rankings that were made from them."""
        forgotten = [
            *self._filters.forget(names, is_affected),
            *self._scores.forget(names, is_affected),
        ]
        if not forgotten:
            return
        for entry in self.entries():
            if any(cache in forgotten for cache in entry.caches.all):
                entry.drop_rankings()
        self.dropped_counts[reason] += 1

    def _count_bytes(self, entry: SignatureEntry) -> None:
        """Count what was learned, and drop the least recently used entries above the bound."""
        for cache in entry.caches.all:
            self.bytes_used += cache.bytes_used - cache.bytes_counted
            cache.bytes_counted = cache.bytes_used
        of_rankings = sum(ranking.bytes_used for ranking in entry.rankings.values())
        of_rankings += 0 if entry.cells is None else entry.cells.bytes_used
        self.bytes_used += _ENTRY_BYTES + of_rankings - entry.bytes_counted
        entry.bytes_counted = _ENTRY_BYTES + of_rankings
        while self.bytes_used > self._bytes_max and len(self._entries) > 1:
            self._drop_oldest()
        if self.bytes_used > self._bytes_max:
            self._warn(
                f"reuse.maxBytes is {self._bytes_max}, and one kind of pods on "
                f"{self._table.node_count} nodes takes {self.bytes_used}: answers are not reused"
            )
            self._drop_oldest()
            self._bytes_max = 0

    def _drop_oldest(self, reason: str = OUT_OF_BYTES) -> None:
        """Drop the entry that was used longest ago."""
        signature, entry = self._entries.popitem(last=False)
        entry.drop_rankings()
        for name, count in entry.row_counts().items():
            self._past_counts[name].add(count)
        _add_prevented(self._past_prevented, entry)
        self.bytes_used -= entry.bytes_counted
        self.bytes_used -= self._filters.close(signature, entry.caches.filters)
        self.bytes_used -= self._scores.close(signature, entry.caches.scores)
        if entry.caches.all:
            self.dropped_counts[reason] += 1


def mismatches(
    entry: SignatureEntry, framework: Framework, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> list[str]:
    """Instances whose cached results differ from what the plugins answer. ``state``: of a cycle
    that ran without the cache."""
    wrong: set[str] = set()
    rows = nodes.table.rows
    for name, outcome in framework.filter_answers(state, pod, nodes):
        results = entry.caches.filters.get(name)
        if results is not None and outcome.error is None:
            valid = places_of(results.valid_now(rows))
            if (results.marks[rows[valid]] != _ids_of(results, outcome)[valid]).any():
                wrong.add(name)
    for call in framework.calls(state, pod).score:
        scores = entry.caches.scores.get(call.name)
        if scores is None or call.name in state.skip_score_plugins:
            continue
        some = nodes.take(places_of(scores.valid_now(rows)))
        if len(some):
            cached = scores.of(some.table.index, len(some))
            if (call.score(state, pod, some) != cached).any():
                wrong.add(call.name)
    return sorted(wrong)


def _ids_of(results: CachedFilterResults, outcome: FilterOutcome) -> Rows:
    """intp[nodes]: the numbers of the verdicts; -1 for a verdict that no node had so far."""
    numbers = np.full(len(outcome.nodes), PASSES, np.intp)
    if len(outcome.entries) == 1 and outcome.entries[0].codes is None:
        entry = outcome.entries[0]
        numbers[entry.positions] = results.number_of(((entry.code, entry.reasons),))
        return numbers
    for position, verdict in verdicts_of(outcome).items():
        numbers[position] = results.number_of(verdict)
    return numbers


def _add_prevented(total: Counter[tuple[str, str]], entry: SignatureEntry) -> None:
    for each in entry.uncached:
        total[each] += entry.cycle_count
