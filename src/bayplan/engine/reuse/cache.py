"""Shadow: what is kept, compared with what the plugins say now.

Reuse is exact as long as plugins sign all that they read. One attempt in a thousand asks them
anew, goes by that, and names those whose kept answers differ.

Reuse: what is known about pods' likes, one bounded table per profile (KEP-5598).

Upstream's three operations are here, exact and without its limits:
create — the first pod of a signature opens its entry (`known`), which fills as plugins answer;
update — a changed row is forgotten by the answers that read what changed, and asked again when it
is next needed: nothing is done at the change itself;
nominate — a pod of a known signature takes the best node of the entry's ranking (`Picks`) at once,
after what changed since was judged again.
The least recently used entries leave where the table would outgrow its bytes.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TypeVar, final

import numpy as np

from bayplan.engine.reuse.entry import ObjectGeneration, SignatureEntry
from bayplan.engine.reuse.evaluation_plan import EvaluationPlan, EvaluationPlans
from bayplan.engine.reuse.ranked_nodes import CHANGES_MAX, ROWS_MAX, IncrementalScores, RankedNodes
from bayplan.engine.reuse.row_cache import (
    PASSES,
    UNKNOWN,
    CachedFilterResults,
    CachedScores,
    RowCounts,
)
from bayplan.engine.reuse.weighted_score import OTHER_PLUGINS, RankingInvalid
from bayplan.framework.calls import is_concerned
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.plugin import Plugin, ScalarFilterPlugin, ScalarScorePlugin, ScorePlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.score_table import ScoreTable
from bayplan.framework.signing import (
    PodSignature,
    facets_read,
    followed_kinds,
    follows_from_objects,
)
from bayplan.framework.single_node import verdicts_of
from bayplan.framework.timing import Observe
from bayplan.state.columns import Rows, places_of
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.state.storage_objects import STORAGE_FACETS

# ---- shadow ---------------------------------------------------------------------------------


Asked = tuple[CycleState, PodInfo, NodeView]


def mismatches(known: SignatureEntry, framework: Framework, asked: Asked) -> list[str]:
    """Instances whose kept answers are wrong. The state asked with is one without reuse."""
    for part in known.parts:
        part.catch_up()
    wrong = {*_wrong_filters(known, framework, asked), *_wrong_scores(known, framework, asked)}
    return sorted(wrong)


def _wrong_filters(known: SignatureEntry, framework: Framework, asked: Asked) -> Iterator[str]:
    nodes = asked[2]
    for name, outcome in framework.filter_answers(*asked):
        kept = known.verdicts.get(name)
        if kept is None or outcome.error is not None:
            continue
        ids = kept.ids[nodes.selection]
        if ((ids != _numbers_of(kept, outcome)) & (ids != UNKNOWN)).any():
            yield name


def _numbers_of(kept: CachedFilterResults, outcome: FilterOutcome) -> Rows:
    """intp[nodes]: what the verdicts are kept as; of a verdict that no node was given so far -1."""
    numbers = np.full(len(outcome.nodes), PASSES, np.intp)
    for entry in outcome.entries:
        if entry.codes is None and (numbers[entry.positions] == PASSES).all():
            numbers[entry.positions] = kept.find(((entry.code, entry.reasons),))
            continue
        # Some nodes have several reasons, or codes of their own.
        for position, verdict in verdicts_of(outcome).items():
            numbers[position] = kept.find(verdict)
        break
    return numbers


def _wrong_scores(known: SignatureEntry, framework: Framework, asked: Asked) -> Iterator[str]:
    state, pod, nodes = asked
    for call in framework.calls(state, pod).score:
        kept = known.scores.get(call.name)
        if kept is None or call.name in state.skip_score_plugins:
            continue
        said = nodes.take(places_of(kept.known[nodes.selection]))
        if len(said) and (call.score(state, pod, said) != kept.of(said)).any():
            yield call.name


# ---- reuse ----------------------------------------------------------------------------------


_K = TypeVar("_K", CachedFilterResults, CachedScores)

#: Why an entry, or all answers of an instance, were dropped.
OUT_OF_BYTES = "bytes"
OBJECT_CHANGED = "object_changed"
WRONG = "mismatch"

#: Why an instance's results are not reused.
UNSIGNED = "unsigned"
ACROSS_NODES = "across_nodes"

#: How an attempt profited: its like was unknown; its node was found by the ranking; it was found
#: by asking, if only about some rows.
NO_HINT = "no_hint"
HINT_USED = "hint_used"
HINT_NOT_USED = "hint_not_used"

#: One attempt in so many asks all plugins, and compares.
SHADOW_PERIOD = 1000

#: In smaller clusters all nodes are asked about at once faster than many changed ones are followed,
#: if nobody is asked node by node.
ASKED_NODES_MAX = 20_000

#: An entry besides its arrays: objects, dictionaries, its signature. Measured with four plugins.
_ENTRY_BYTES = 2048

#: Totals that one signature has besides those in use; see KnownPods.set_aside.
_ASIDE_MAX = 3

#: Signatures that are remembered where nothing is kept, to count what could have been.
_SEEN_MAX = 4096


@final
class ResultCache:
    """One profile's table."""

    def __init__(
        self,
        framework: Framework,
        table: NodeTable,
        epoch: ObjectGeneration,
        warn: Callable[[str], None],
        took: tuple[Observe, Observe],
    ) -> None:
        """``took``: told how long it took to look here without finding a node, and with.

        A profile that may not keep a byte has what could have been reused counted.
        """
        self.framework = framework
        self._table = table
        #: How long what PreFilter and PreScore say stays as it is.
        self.epoch = epoch
        self._warn = warn
        self._took = took
        self._bytes_max = framework.plugins.reuse_bytes_max
        self._known: OrderedDict[PodSignature, SignatureEntry] = OrderedDict()
        self._verdicts: dict[tuple[str, Hashable], CachedFilterResults] = {}
        self._scores: dict[tuple[str, Hashable], CachedScores] = {}
        plugins = framework.plugins
        self._filters: dict[str, Plugin] = {p.instance_name: p for p in plugins.filter}
        #: All that can score: some are asked by others only.
        self._scorers = {
            p.instance_name: p
            for p in plugins.instances()
            if isinstance(p, ScorePlugin | ScalarScorePlugin)
        }
        #: Those that are asked node by node.
        self._scalar = [
            plugin
            for plugin in (*self._filters.values(), *self._scorers.values())
            if isinstance(plugin, ScalarFilterPlugin | ScalarScorePlugin)
        ]
        #: By kind of object: instances for which no change of a row stands for one of such.
        self._looking: dict[str, frozenset[str]] = {}
        self.bytes_used = 0
        #: By instance, of entries that left.
        self._gone_counts = {name: RowCounts() for name in (*self._filters, *self._scorers)}
        self._likes = EvaluationPlans(plugins)
        #: Attempts at pods whose like was tried before.
        self.possible_count = 0
        #: (instance, reason) → attempts, of entries that left; see `prevented_counts`.
        self._gone_prevented: Counter[tuple[str, str]] = Counter()
        #: By upstream's words for how an attempt profited.
        self.attempt_counts = Counter[str]({NO_HINT: 0, HINT_USED: 0, HINT_NOT_USED: 0})
        #: By instance.
        self.mismatch_counts: Counter[str] = Counter()
        #: Rankings that were thrown away, and what else was, by reason.
        self.flushed_counts: Counter[str] = Counter()
        self.dropped_counts: Counter[str] = Counter()

    @property
    def is_on(self) -> bool:
        return self._bytes_max > 0

    def __len__(self) -> int:
        return len(self._known)

    def row_counts(self) -> Mapping[str, RowCounts]:
        """By instance, up to now."""
        total = {name: replace(counts) for name, counts in self._gone_counts.items()}
        for known in self.kinds():
            known.count_rows()
            _add_up(total, known.counts)
        return total

    def prevented_counts(self) -> Counter[tuple[str, str]]:
        """(instance, reason) → attempts in which its results could not be reused, whether or not
        reuse is on: a Filter or Score that does not sign such pods, or looks across nodes."""
        total = Counter(self._gone_prevented)
        for known in self.kinds():
            _add_prevented(total, known)
        return total

    def kinds(self) -> Iterable[SignatureEntry]:
        """All that are known."""
        return self._known.values()

    # ---- create ---------------------------------------------------------------------------

    def known(self, pod: PodInfo) -> SignatureEntry:
        """What is known of the pod's like; of a new one nothing."""
        signature = self.framework.sign_pod(pod)
        found = self._known.get(signature)
        if found is None:
            found = self._known[signature] = self._opened(signature, pod)
            if not self.is_on and len(self._known) > _SEEN_MAX:
                _add_prevented(self._gone_prevented, self._known.popitem(last=False)[1])
        else:
            self.possible_count += 1
            self._known.move_to_end(signature)
        return found

    def _opened(self, signature: PodSignature, pod: PodInfo) -> SignatureEntry:
        verdicts: dict[str, CachedFilterResults] = {}
        scores: dict[str, CachedScores] = {}
        if self.is_on:
            for name, plugin, part in self._signed(self._filters, signature):
                kept = self._verdicts.get((name, part))
                if kept is None:
                    kept = CachedFilterResults(self._table, *_reads(plugin, part))
                    self._verdicts[(name, part)] = kept
                verdicts[name] = kept
            for name, plugin, part in self._signed(self._scorers, signature):
                found = self._scores.get((name, part))
                if found is None:
                    found = CachedScores(self._table, *_reads(plugin, part))
                    self._scores[(name, part)] = found
                scores[name] = found
        known = SignatureEntry(self._table.log, verdicts, scores, pod.key)
        known.in_full = tuple(self._in_full(signature, pod))
        # Who does not sign is asked about all nodes in any case.
        known.is_vectorised = not any(
            plugin.instance_name in verdicts or plugin.instance_name in scores
            for plugin in self._scalar
            if is_concerned(plugin, pod.shape)
        )
        for part in known.parts:
            part.like_count += 1
        return known

    def _in_full(self, signature: PodSignature, pod: PodInfo) -> Iterator[tuple[str, str]]:
        """(instance, reason) of those that are evaluated on all nodes for such pods."""
        for name, plugin in {**self._filters, **self._scorers}.items():
            if not is_concerned(plugin, pod.shape):
                continue
            if plugin.scope != "row":
                yield name, ACROSS_NODES
            elif signature.parts.get(name) is None:
                yield name, UNSIGNED

    @staticmethod
    def _signed(
        plugins: Mapping[str, Plugin], signature: PodSignature
    ) -> Iterator[tuple[str, Plugin, Hashable]]:
        """Row-wise instances whose answers about such pods may be kept."""
        for name, plugin in plugins.items():
            part = signature.parts.get(name)
            if part is not None and plugin.scope == "row":
                yield name, plugin, part

    # ---- nominate -------------------------------------------------------------------------

    def learn(
        self,
        known: SignatureEntry,
        state: CycleState,
        outcome: FilterOutcome,
        scored: ScoreTable | None,
    ) -> None:
        """A complete answer was found: rank it, or what is kept of it, if such pods come one soon
        after another."""
        generation = self._table.log.generation
        is_soon = known.generation >= 0 and generation - known.generation <= ROWS_MAX
        known.generation = generation
        like: EvaluationPlan | None = None
        if is_soon:
            like = self._likes.of(known.verdicts, known.scores, state, scored, known.counts)
        if like is not None:
            try:
                kind = RankedNodes if like.is_whole else IncrementalScores
                known.put_aside()
                known.picks = kind(self._table, like, outcome, scored)
                self._drop_aside(known)
            except RankingInvalid as problem:
                self.flushed_counts[problem.reason] += 1
        self._count_bytes(known)

    def passes_over(self, known: SignatureEntry) -> bool:
        """Whether so much changed since the last attempt at such a pod that it is faster to ask
        about all nodes, and to leave what is known as it is. Another soon brings it up to date."""
        since, generation = known.generation, self._table.log.generation
        is_rare = since >= 0 and generation - since > CHANGES_MAX
        node_count = self._table.node_count
        if not is_rare or not known.is_vectorised or node_count > ASKED_NODES_MAX:
            return False
        known.generation = generation
        for name in (*known.verdicts, *known.scores):
            known.counts[name].asked += node_count
        return True

    def count(self, known: SignatureEntry, is_hinted: bool, seconds: float) -> None:
        """An attempt looked here, and found its node by a ranking or not."""
        if is_hinted:
            self.attempt_counts[HINT_USED] += 1
        else:
            self.attempt_counts[NO_HINT if known.generation < 0 else HINT_NOT_USED] += 1
        self._took[is_hinted](seconds)

    # ---- shadow ---------------------------------------------------------------------------

    @property
    def is_shadow_turn(self) -> bool:
        return self.possible_count % SHADOW_PERIOD == SHADOW_PERIOD - 1

    def compare(self, known: SignatureEntry, asked: Asked) -> None:
        """An attempt was made without what is kept: see whether that would have been the same."""
        for name in mismatches(known, self.framework, asked):
            self.mismatch_counts[name] += 1
            self._forget({name}, WRONG, lambda plugin, part: True)
            self._warn(
                f"plugin {name} answered otherwise about pod {asked[1].key} than about its like: "
                f"its sign_pod leaves out something that its answers follow from"
            )

    # ---- dropping -------------------------------------------------------------------------

    def drop_picks(self, known: SignatureEntry, reason: str) -> None:
        """The ranking cannot be corrected; the answers it was made from stay."""
        self.flushed_counts[reason] += 1
        if known.picks is not None:
            known.picks.spared.add_up()
            known.picks = None

    def _close(self, known: SignatureEntry) -> None:
        known.count_rows()
        known.picks = known.prepared = None
        known.set_aside.clear()

    def _drop_aside(self, known: SignatureEntry) -> None:
        """There are as many ways to be skipped as pods; the oldest leaves."""
        if len(known.set_aside) > _ASIDE_MAX:
            known.set_aside.pop(0).spared.add_up()
            self.flushed_counts[OTHER_PLUGINS] += 1

    def forget_kind(self, kind: str) -> None:
        """An object of this kind changed: whoever looks such objects up is asked anew."""
        looking = self._looking.get(kind)
        if looking is None:
            looking = self._looking[kind] = frozenset(
                name
                for name, plugin in (*self._filters.items(), *self._scorers.items())
                if kind in followed_kinds(plugin)
                and not plugin.facets & STORAGE_FACETS.get(kind, 0)
            )
        if looking:
            self._forget(looking, OBJECT_CHANGED, follows_from_objects)

    def _forget(
        self, names: Set[str], reason: str, concerns: Callable[[Plugin, Hashable], bool]
    ) -> None:
        """What these answered about the parts that it concerns, and the rankings made from that."""
        forgotten: set[int] = set()
        for plugins, kept_by_part in (
            (self._filters, self._verdicts),
            (self._scorers, self._scores),
        ):
            for (name, part), kept in kept_by_part.items():
                if name in names and concerns(plugins[name], part):
                    kept.forget_all()
                    forgotten.add(id(kept))
        if not forgotten:
            return
        for known in self._known.values():
            if any(id(kept) in forgotten for kept in known.parts):
                self._close(known)
        self.dropped_counts[reason] += 1

    # ---- bytes ----------------------------------------------------------------------------

    def _count_bytes(self, known: SignatureEntry) -> None:
        """Count what was learnt, and let go of what was not used for longest."""
        for part in known.parts:
            self.bytes_used += part.bytes_used - part.bytes_counted
            part.bytes_counted = part.bytes_used
        of_entry = _ENTRY_BYTES + sum(totals.bytes_used for totals in known.all_totals())
        self.bytes_used += of_entry - known.bytes_counted
        known.bytes_counted = of_entry
        while self.bytes_used > self._bytes_max and len(self._known) > 1:
            self._let_go(*self._known.popitem(last=False))
        if self.bytes_used > self._bytes_max:
            self._warn(
                f"reuse.maxBytes is {self._bytes_max}, and one kind of pods on "
                f"{self._table.node_count} nodes takes {self.bytes_used}: answers are not reused"
            )
            self._let_go(*self._known.popitem(last=False))
            self._bytes_max = 0

    def _let_go(self, signature: PodSignature, known: SignatureEntry) -> None:
        self.dropped_counts[OUT_OF_BYTES] += 1
        self._close(known)
        _add_up(self._gone_counts, known.counts)
        _add_prevented(self._gone_prevented, known)
        self.bytes_used -= known.bytes_counted
        for part in known.parts:
            part.like_count -= 1
            self.bytes_used -= 0 if part.like_count else part.bytes_counted
        for name in known.verdicts:
            _drop_unused(self._verdicts, (name, signature.parts[name]))
        for name in known.scores:
            _drop_unused(self._scores, (name, signature.parts[name]))


def _reads(plugin: Plugin, part: Hashable) -> tuple[int, bool]:
    """(facets that answers follow from, whether from amounts alone)"""
    return facets_read(plugin, part), plugin.follows_amounts


def _add_prevented(total: Counter[tuple[str, str]], known: SignatureEntry) -> None:
    for found in known.in_full:
        total[found] += known.cycle_count


def _add_up(total: Mapping[str, RowCounts], counts: Mapping[str, RowCounts]) -> None:
    for name, count in counts.items():
        total[name].asked += count.asked
        total[name].kept += count.kept


def _drop_unused(
    kept_by_part: dict[tuple[str, Hashable], _K], key: tuple[str, Hashable | None]
) -> None:
    if not kept_by_part[key].like_count:
        del kept_by_part[key]
