"""PinnedNode: the one node that PreFilter leaves of all nodes, for pods that a run serves.

The theory. The template of a pod may name its node. PreFilter narrows the nodes to this one. If
each plugin promises that its PreFilter depends on nothing but the template, the owner and the
objects that it looks up (`Caching.pre_state_per_template`), then the next pod of the template is
left with the same node. Each Filter plugin that takes part answers from the signed part of the pod
and the row of the node. So a plugin is called again only if a facet of the row that it reads
changed since the pod before, and that is mostly the plugin of the amounts.

The pods of a DaemonSet differ in nothing but the node that they name (`PodShape.pin`). A plugin
that does not read the pin answers for each of them alike, and one with `Caching.follows_pin`
answers for its node as without the pin. So one pod without a pin stands for all of them: each node
passes its filters or does not. The filters are called for one node at a time, and for all nodes at
once after they were called often.

What would break it: a plugin that looks across nodes, or that does not sign the pod. Such a plugin
rules the node out, unless PreFilter skips it.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import final

from msgspec.structs import replace

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import (
    PLUGIN_FAILED,
    RankingInvalid,
    SingleNodeEvaluator,
)
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX
from bayplan.engine.ranking.row_cache import RowCounts
from bayplan.engine.ranking.score_index import as_array
from bayplan.engine.reuse.entry import SignatureEntry
from bayplan.framework.calls import with_parts
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.runtime import Framework
from bayplan.framework.scoring import Choice
from bayplan.framework.signing import facets_read, ignores_pin
from bayplan.journal import NodeScore, RejectionCount
from bayplan.state.cache import ClusterView
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import all_true
from bayplan.state.node_table import NodeTable
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: After so many single nodes, and one more for each so many nodes of the cluster, the filters are
#: called for all nodes: calling them takes about as long then.
_SINGLE_MAX, _NODES_PER_SINGLE = 8, 256


@final
class PinnedNode:
    """The node of the last pod, and the generation up to which each node passed every filter.
    Answers a run as `CycleAnswer` answers a cycle."""

    __slots__ = (
        "_filters",
        "_narrowing",
        "_passed",
        "_rejections",
        "_single_count",
        "_table",
        "_unpinned",
        "name",
        "object_generation",
        "owners",
    )

    def __init__(
        self,
        table: NodeTable,
        filters: Sequence[tuple[str, int]],
        rejection: RejectionCount,
        *,
        cycle: Cycle,
        name: str,
        unpinned: PodInfo | None,
        object_generation: int,
    ) -> None:
        """``filters``: each instance that takes part, with the facets that it reads. ``rejection``:
        the one of the other nodes. ``cycle``: the cycle in which the node ``name`` passed.
        ``unpinned``: the pod that stands for all pods that differ in their pin; None: all pods name
        the same node."""
        self._table = table
        self.name = name
        self._filters = filters
        self._rejections = (rejection,)
        #: By row, the generation up to which the node passed; 0: it was not evaluated, or it did
        #: not pass.
        self._passed = array("q", bytes(8 * table.capacity))
        self._passed[table.row_of[name]] = cycle.snapshot.generation
        self._single_count = 0
        self._narrowing = cycle.narrowing
        self._unpinned = unpinned
        #: All that the notes of PreFilter depend on, besides the template.
        self.owners = cycle.pod.metadata.owner_references
        self.object_generation = object_generation

    @property
    def serves_all_pins(self) -> bool:
        """Whether the pods may name different nodes."""
        return self._unpinned is not None

    @property
    def feasibility(self) -> "PinnedNode":
        return self

    def for_journal(self) -> tuple[int, tuple[RejectionCount, ...]]:
        """What the journal says: one node is feasible, and PreFilter left the other nodes out."""
        absent_count, (rejection,) = self._table.node_count - 1, self._rejections
        if rejection.nodes != absent_count:
            plugin, code, reason = rejection.plugin, rejection.code, rejection.reason
            self._rejections = (RejectionCount(plugin, code, reason, nodes=absent_count),)
        return 1, self._rejections if absent_count else ()

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node, whichever number is drawn."""
        return Choice(self.name)

    def best_scores(self, count_max: int) -> tuple[NodeScore, ...]:
        """One feasible node gets no scores."""
        return ()

    def show_in(self, cycle: Cycle) -> None:
        """Give the cycle the results of the steps that it would have run."""
        nodes = cycle.snapshot.nodes
        cycle.node_names, cycle.narrowing = frozenset((self.name,)), self._narrowing
        cycle.candidates = nodes.take(nodes.positions([self.name]))
        cycle.outcome = FilterOutcome(cycle.candidates, all_true(1))

    def passes(
        self,
        cluster: ClusterView,
        framework: Framework,
        notes: CycleState,
        pod: PodInfo,
        *,
        is_sampled: bool,
        counts: Mapping[str, RowCounts],
    ) -> bool:
        """Whether the pod's node passes every filter. Calls the filters that read what changed.
        ``notes``: of PreFilter. False also where a plugin fails."""
        table = self._table
        if self._unpinned is not None:
            assert pod.shape.pin is not None, "each pod names its node"
            self.name, pod = pod.shape.pin.node_name, self._unpinned
        row = table.row_of.get(self.name)
        if row is None or table.nodes[row] is None:
            return False
        if len(self._passed) < table.capacity:
            self._passed.frombytes(bytes(8 * (table.capacity - len(self._passed))))
        bits = self._changed_facets(row)
        if bits:
            state = notes.clone()
            state.record_plugin_metrics = is_sampled
            calls, nodes = framework.calls(state, pod), cluster.lend().nodes
            evaluator = SingleNodeEvaluator(calls, state, pod, nodes, counts=counts)
            try:
                if not self._evaluate(evaluator, row, bits):
                    return False
            except RankingInvalid:
                return False
            finally:
                cluster.take_back()
        self._passed[row] = table.log.generation
        return True

    def _evaluate(self, evaluator: SingleNodeEvaluator, row: int, bits: int) -> bool:
        """Whether a row passes in which these facets changed."""
        if self._unpinned is not None and bits == ALL_FACETS:
            nodes = evaluator.nodes
            if self._single_count >= _SINGLE_MAX + len(nodes) // _NODES_PER_SINGLE:
                self._single_count = 0
                self._evaluate_all(evaluator, nodes)
                return self._passed[row] > 0
            self._single_count += 1
        # A generator would be resumed for each filter.
        for name, facets in self._filters:
            if facets & bits and evaluator.filter_row(name, row):
                return False
        return True

    def _evaluate_all(self, evaluator: SingleNodeEvaluator, nodes: NodeView) -> None:
        """Call the filters for all nodes. Raises RankingInvalid if one of them fails."""
        outcome = FilterOutcome(nodes, all_true(len(nodes)))
        for name, _ in self._filters:
            call = evaluator.calls.filter_of[name]
            outcome.evaluate(name, call, evaluator.state, evaluator.pod)
        if outcome.error is not None:
            raise RankingInvalid(PLUGIN_FAILED)
        rows, passed = nodes.table.rows, as_array(self._passed)
        passed[:] = 0
        passed[rows[outcome.feasible]] = self._table.log.generation

    def _changed_facets(self, row: int) -> int:
        """The facets of the row that changed since it passed; all facets if it did not pass."""
        table, since = self._table, self._passed[row]
        log = table.log
        if max(table.generation_of(row), log.all_rows_generation) <= since:
            return 0
        changes = log.few_since(since, CHANGES_MAX) if since else None
        if changes is None:
            return int(ALL_FACETS)
        bits = 0
        for changed_row, facets in changes:
            if changed_row == row:
                bits |= facets
        return bits


def pinned_node_of(
    cycle: Cycle,
    entry: SignatureEntry,
    table: NodeTable,
    object_generation: int,
    *,
    cluster: ClusterView,
) -> PinnedNode | None:
    """The node that PreFilter left to a cycle, and that the cycle chose. None: other plugins decide
    about the next pod than those that answer from the template and the row; or no such pod has come
    before, and the next one may be another."""
    state, choice, names = cycle.state, cycle.choice, cycle.node_names
    calls, skipped = cycle.framework.calls(state, cycle.pod), state.skip_filter_plugins
    plugins = cycle.framework.plugins
    if (
        choice is None
        or names != frozenset((choice.node_name,))
        or not cycle.narrowing
        or not calls.pre_state_per_template
        or cycle.pod.shape.has_affinity
        or any(p.scope != "row" and p.instance_name not in skipped for p in plugins.pre_filter)
    ):
        return None
    filters: list[tuple[str, int]] = []
    by_name = {plugin.instance_name: plugin for plugin in plugins.filter}
    for name, _ in calls.filter:
        if name in skipped:
            continue
        plugin, part = by_name[name], entry.signature.parts.get(name)
        if plugin.scope != "row" or part is None:
            return None
        filters.append((name, int(facets_read(plugin, part) | Facet.NODE)))
    try:
        unpinned = _unpinned(cycle, cluster.lend().nodes)
    finally:
        cluster.take_back()
    if unpinned is None and entry.cycle_count <= 1:
        return None
    absent = cycle.absent_status
    rejection = RejectionCount(
        ", ".join(sorted(cycle.narrowing)),
        str(absent.code),
        absent.reasons[0],
        nodes=0,
    )
    return PinnedNode(
        table,
        filters,
        rejection,
        cycle=cycle,
        name=choice.node_name,
        unpinned=unpinned,
        object_generation=object_generation,
    )


def _unpinned(cycle: Cycle, nodes: NodeView) -> PodInfo | None:
    """A pod that stands for all pods that differ from the cycle's pod in the pin alone. None: the
    pod has no pin, or a plugin may answer by it that does not promise `Caching.follows_pin`."""
    pod, framework = cycle.pod, cycle.framework
    pin = pod.shape.pin
    if pin is None or not framework.signer.signs_templates:
        return None
    following: set[str] = set()
    for plugin in with_parts(framework.plugins.instances()):
        if plugin.promises.follows_pin:
            following.add(plugin.instance_name)
        elif not ignores_pin(plugin, pod, nodes):
            return None
    if not cycle.narrowing <= following:
        return None
    return replace(pod, shape=pin.unpinned, node_name="")
