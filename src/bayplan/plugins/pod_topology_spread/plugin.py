"""The extension points and hints of PodTopologySpread.

A rejected pod is tried again when a pod begins or ceases to match one of its hard constraints, when
a node joins, leaves or moves to another domain, and when a taint changes that may exclude a domain.
Upstream: podtopologyspread/plugin.go. A constraint that cannot be parsed is an error upstream,
which counts as Queue.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, final

from bayplan.api.objects import Node
from bayplan.framework import plugin
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.domain_rules import DomainPlugin, DomainRules
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status
from bayplan.framework.types import PreFilterResult
from bayplan.plugins.pod_topology_spread.constraints import (
    SELECTING_KINDS,
    Constraint,
    PodTopologySpreadArgs,
    SpreadRules,
    has_own,
)
from bayplan.plugins.pod_topology_spread.domain_rules import spread_domain_rules
from bayplan.plugins.pod_topology_spread.filtering import HardSpread, hard_spread
from bayplan.plugins.pod_topology_spread.scoring import SoftSpread, soft_spread
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

# ---- hints ----------------------------------------------------------------------------------


_POD_CHANGES = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
_OWN_CHANGES = ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
_NODE_CHANGES = (
    ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
)


@final
class SpreadHints:
    """The hints of one instance."""

    def __init__(self, rules: SpreadRules, *, counts_nominated: bool = True) -> None:
        """``counts_nominated``: whether nominated pods count as assigned ones."""
        self._rules: Final = rules
        self._counts_nominated = counts_nominated

    def events(self) -> Sequence[ClusterEventWithHint]:
        assigned = ClusterEvent(EventResource.ASSIGNED_POD, _POD_CHANGES)
        target = ClusterEvent(EventResource.TARGET_POD, _OWN_CHANGES)
        node = ClusterEvent(EventResource.NODE, _NODE_CHANGES)
        return [
            ClusterEventWithHint(assigned, self.after_pod),
            ClusterEventWithHint(target, self.after_own_update),
            ClusterEventWithHint(node, self.after_node),
        ]

    def after_pod(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        """A placed, or nominated, pod of the namespace came, went or changed its labels."""
        if any(other is not None and not self._is_involved(other, pod) for other in (old, new)):
            return QueueingHint.QUEUE_SKIP
        hard = self._rules.hard(pod)
        if hard.error is not None:
            return QueueingHint.QUEUE
        if old is not None and new is not None:
            return _answer(_begins_or_ends_to_match(old, new, hard.constraints))
        other = new if new is not None else old
        assert other is not None, "an event without an object"
        return _answer(any(c.selector.matches(other.labels) for c in hard.constraints))

    def after_own_update(self, pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
        """The waiting pod itself changed."""
        hard = self._rules.hard(pod)
        if hard.error is not None:
            return QueueingHint.QUEUE
        tolerates_more = old.shape.tolerations != new.shape.tolerations
        return _answer(
            (tolerates_more and any(c.honors_taints for c in hard.constraints))
            or _begins_or_ends_to_match(old, new, hard.constraints)
        )

    def after_node(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """A node came, went or changed; without hard constraints each one counts."""
        hard = self._rules.hard(pod)
        if hard.error is not None:
            return QueueingHint.QUEUE
        keys = [constraint.topology_key for constraint in hard.constraints]
        was_eligible, is_eligible = _has_all(old, keys), _has_all(new, keys)
        if old is None or new is None or was_eligible != is_eligible:
            return _answer(was_eligible or is_eligible)
        return _answer(is_eligible and _moved_or_tainted(old, new, keys))

    def _is_involved(self, other: PodInfo, pod: PodInfo) -> bool:
        """Whether a pod can count for the spread of another: it is, or is about to be,
        somewhere."""
        nominated = other.nominated_node_name if self._counts_nominated else ""
        return bool(other.node_name or nominated) and other.namespace == pod.namespace


def _answer(worth_it: bool) -> QueueingHint:
    return queue_if(worth_it)


def _begins_or_ends_to_match(old: PodInfo, new: PodInfo, constraints: Sequence[Constraint]) -> bool:
    return any(
        c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in constraints
    )


def _has_all(node: Node | None, keys: Sequence[str]) -> bool:
    if node is None:
        return False
    labels = node.metadata.labels or {}
    return all(key in labels for key in keys)


def _moved_or_tainted(old: Node, new: Node, keys: Sequence[str]) -> bool:
    before, after = old.metadata.labels or {}, new.metadata.labels or {}
    if any(before[key] != after[key] for key in keys):
        return True
    return (old.spec.taints or ()) != (new.spec.taints or ())


# ---- plugin ---------------------------------------------------------------------------------


@final
class PodTopologySpread(
    plugin.PreFilterPlugin[PodTopologySpreadArgs],
    plugin.PreFilterExtensions,
    plugin.FilterPlugin,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.NormalizeScorePlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
    DomainPlugin,
):
    """Rejects domains with too many matching pods, and prefers emptier domains."""

    name = "PodTopologySpread"
    scope = "cluster"
    caching = plugin.Caching(
        facets=Facet.LABELS | Facet.TAINTS | Facet.PODS | Facet.NODE,
        signs_template=True,
        pre_state_per_template=True,
    )
    ignores_resizes = True
    kinds = SELECTING_KINDS

    def setup(self) -> None:
        self._rules = SpreadRules(self.args or PodTopologySpreadArgs(), self.handle)
        counts_nominated = self.handle.behaviour.nominated_pods_are_assigned
        self._hints = SpreadHints(self._rules, counts_nominated=counts_nominated)
        self._hard_key = f"PreFilter{self.instance_name}"
        self._soft_key = f"PreScore{self.instance_name}"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        hard = self._rules.hard(pod)
        if hard.error is not None:
            return Status(Code.ERROR, (f"get constraints from pod: {hard.error}",))
        if not hard.constraints:
            return SKIP
        state[self._hard_key] = hard_spread(hard.constraints, pod, nodes)
        return None

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._hard(state).change(pod, added, node, 1)
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._hard(state).change(pod, removed, node, -1)
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        return self._hard(state).rejections(pod, nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        soft = self._rules.soft(pod)
        if soft.error is not None:
            return Status(Code.ERROR, (f"calculating preScoreState: {soft.error}",))
        if not soft.constraints or not nodes.table.node_count:
            return SKIP
        require_all = self._rules.requires_all_topologies(pod)
        state[self._soft_key] = soft_spread(soft.constraints, require_all, pod, nodes)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the lower the better, until normalised."""
        return self._soft(state).scores(pod, nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return self._soft(state).normalized(scores)

    def domain_rules(self, pod: PodInfo, nodes: NodeView) -> DomainRules | None:
        hard, soft = self._rules.hard(pod), self._rules.soft(pod)
        if hard.error is not None or soft.error is not None:
            return None
        require_all = self._rules.requires_all_topologies(pod)
        return spread_domain_rules(
            hard.constraints, soft.constraints, pod, nodes, require_all=require_all
        )

    def domain_note_keys(self) -> Iterable[Hashable]:
        return self._hard_key, self._soft_key

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._hints.events()

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """An empty signature means that the plugin never concerns the pod.

        With default constraints this does not hold: a Service or an owner that comes between two
        pods of one signature makes the defaults apply to the second, and whether they do is no part
        of the pod. PreFilter and PreScore, which always run, say Skip where they do not.
        """
        return None if self._rules.has_defaults or has_own(pod) else ()

    def _hard(self, state: CycleState) -> HardSpread:
        return state[self._hard_key]

    def _soft(self, state: CycleState) -> SoftSpread:
        return state[self._soft_key]
