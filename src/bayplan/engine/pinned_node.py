"""PinnedNode: the one node that PreFilter leaves of all nodes, for the pods of one template.

The theory. The template of a pod may name its node, as that of a DaemonSet's pod does. PreFilter
narrows the nodes to this one. If each plugin promises that its PreFilter depends on nothing but the
template, the owner and the objects that it looks up (`Caching.pre_state_per_template`), then the
next pod of the template is left with the same node. Each Filter plugin that takes part answers from
the signed part of the pod and the row of the node. So a plugin is called again only if a facet of
the row that it reads changed since the pod before, and that is mostly the plugin of the amounts.

What would break it: a plugin that looks across nodes, or that does not sign the pod. Such a plugin
rules the node out, unless PreFilter skips it.
"""

from collections.abc import Mapping, Sequence
from typing import final

from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import RankingInvalid, SingleNodeEvaluator
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX
from bayplan.engine.ranking.row_cache import RowCounts
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.scoring import Choice
from bayplan.framework.signing import PodSignature, facets_read
from bayplan.journal import NodeScore, RejectionCount
from bayplan.state.cache import ClusterView
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import all_true
from bayplan.state.node_table import NodeTable
from bayplan.state.pods import PodInfo


@final
class PinnedNode:
    """The node, and the generation up to which it passed every filter. Answers a run as
    `CycleAnswer` answers a cycle."""

    __slots__ = (
        "_filters",
        "_generation",
        "_narrowing",
        "_rejections",
        "_row",
        "_table",
        "name",
        "object_generation",
        "owners",
    )

    def __init__(
        self,
        table: NodeTable,
        name: str,
        filters: Sequence[tuple[str, int]],
        rejection: RejectionCount,
        *,
        cycle: Cycle,
        object_generation: int,
    ) -> None:
        """``filters``: each instance that takes part, with the facets that it reads.
        ``rejection``: of the other nodes. ``cycle``: in which the node passed."""
        self._table = table
        self.name = name
        self._row = table.row_of[name]
        self._filters = filters
        self._rejections = (rejection,)
        self._generation = cycle.snapshot.generation
        self._narrowing = cycle.narrowing
        #: All that the notes of PreFilter depend on, besides the template.
        self.owners = cycle.pod.metadata.owner_references
        self.object_generation = object_generation

    @property
    def feasibility(self) -> "PinnedNode":
        return self

    def for_journal(self) -> tuple[int, tuple[RejectionCount, ...]]:
        """One node is feasible. PreFilter left the other nodes out."""
        absent_count, (rejection,) = self._table.node_count - 1, self._rejections
        if rejection.nodes != absent_count:
            plugin, code, reason = rejection.plugin, rejection.code, rejection.reason
            self._rejections = (RejectionCount(plugin, code, reason, nodes=absent_count),)
        return 1, self._rejections if absent_count else ()

    def choose(self, seed: int, pod_uid: str, attempt: int) -> Choice:
        """The node, whatever is drawn."""
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
        calls: Calls,
        state: CycleState,
        pod: PodInfo,
        *,
        counts: Mapping[str, RowCounts],
    ) -> bool:
        """Whether the node passes every filter. Calls the filters that read what changed.
        ``state``: the notes of PreFilter. False also where a plugin fails."""
        table, row, log = self._table, self._row, self._table.log
        if table.row_of.get(self.name) != row or table.nodes[row] is None:
            return False
        bits = self._changed_facets()
        if bits:
            nodes = cluster.lend().nodes
            evaluator = SingleNodeEvaluator(calls, state, pod, nodes, counts=counts)
            try:
                for name, facets in self._filters:
                    if facets & bits and evaluator.filter_row(name, row):
                        return False
            except RankingInvalid:
                return False
            finally:
                cluster.take_back()
        self._generation = log.generation
        return True

    def _changed_facets(self) -> int:
        """Of the row, since the last pod."""
        log, row, bits = self._table.log, self._row, 0
        if log.generation == self._generation:
            return 0
        changes = log.few_since(self._generation, CHANGES_MAX)
        if changes is None:
            return int(ALL_FACETS)
        for changed_row, facets in changes:
            if changed_row == row:
                bits |= facets
        return bits


def pinned_node_of(
    cycle: Cycle, signature: PodSignature, table: NodeTable, object_generation: int
) -> PinnedNode | None:
    """The node that a cycle was left with, and chose. None: other plugins decide about the next
    pod than those that answer from the template and the row."""
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
        plugin, part = by_name[name], signature.parts.get(name)
        if plugin.scope != "row" or part is None:
            return None
        filters.append((name, int(facets_read(plugin, part) | Facet.NODE)))
    absent = cycle.absent_status
    rejection = RejectionCount(
        ", ".join(sorted(cycle.narrowing)),
        str(absent.code),
        absent.reasons[0],
        nodes=0,
    )
    name = choice.node_name
    return PinnedNode(
        table, name, filters, rejection, cycle=cycle, object_generation=object_generation
    )
