"""The plugin itself: when PodTopologySpread counts, rejects and scores."""

from collections.abc import Hashable, Iterable, Sequence
from typing import final

from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.interface import (
    CycleState,
    EnqueueExtensions,
    FilterPlugin,
    NormalizeScorePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status
from bayplan.plugins.pod_topology_spread.args import PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.constraints import (
    SELECTING_KINDS,
    SpreadRules,
    has_own,
)
from bayplan.plugins.pod_topology_spread.filtering import HardSpread, hard_spread
from bayplan.plugins.pod_topology_spread.hints import SpreadHints
from bayplan.plugins.pod_topology_spread.scoring import SoftSpread, soft_spread
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo


@final
class PodTopologySpread(
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    NormalizeScorePlugin,
    EnqueueExtensions,
    SignPlugin,
):
    """Keeps the pods of one kind from crowding in one domain, and draws them to emptier ones."""

    name = "PodTopologySpread"
    args_type = PodTopologySpreadArgs
    scope = "cluster"
    facets = Facet.LABELS | Facet.TAINTS | Facet.PODS | Facet.NODE
    signs_shape = True
    prepares_alike = True
    ignores_resizes = True
    kinds = SELECTING_KINDS

    def setup(self) -> None:
        self._rules = SpreadRules(self.args or PodTopologySpreadArgs(), self.handle)
        self._hints = SpreadHints(self._rules)
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
        if not soft.constraints or not nodes.cluster_node_count:
            return SKIP
        require_all = self._rules.requires_all_topologies(pod)
        state[self._soft_key] = soft_spread(soft.constraints, require_all, pod, nodes)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the lower the better, until normalised."""
        return self._soft(state).scores(pod, nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return self._soft(state).normalized(scores)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._hints.events()

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """An empty part says that there is never anything to ask.

        With defaults in force that cannot be said: a Service or an owner that comes between two
        pods of one signature makes the defaults apply to the second, and whether they do is no
        part of the pod. PreFilter and PreScore, which always run, say Skip where they do not.
        """
        return None if self._rules.has_defaults or has_own(pod) else ()

    def _hard(self, state: CycleState) -> HardSpread:
        return state[self._hard_key]

    def _soft(self, state: CycleState) -> SoftSpread:
        return state[self._soft_key]
