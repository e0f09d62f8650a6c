"""TaintToleration: reject nodes with taints that the pod does not tolerate, and prefer nodes
without them.

NoSchedule and NoExecute taints reject a node; PreferNoSchedule taints that are not tolerated are
counted, and the fewest are the best. Nodes share few distinct lists of taints: the results for each
list are a table, which is stored with the pod's shape, and each node's result is looked up in the
table. Upstream: plugins/tainttoleration (v1.37, without the alpha operators Lt and Gt).
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, final

import numpy as np

from bayplan.api.objects import (
    PREFER_NO_SCHEDULE,
    Node,
    Taint,
    Toleration,
)
from bayplan.api.selectors import EXISTS, first_untolerated, keeps_away, tolerates
from bayplan.framework import plugin
from bayplan.framework.arithmetic import uniform
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ClusterEventWithHint, QueueingHint, queue_if, taint_events
from bayplan.framework.status import Code, Rejection, Status
from bayplan.framework.types import Normalizer, PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, Mask, NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

UNTOLERATED = "node(s) had untolerated taint(s)"

Tolerations = tuple[Toleration, ...]


@final
class TaintToleration(
    plugin.PreFilterPlugin,
    plugin.FilterPlugin,
    plugin.RowFilter,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Weighs the taints of nodes against the tolerations of a pod."""

    name = "TaintToleration"
    caching = plugin.Caching(facets=Facet.TAINTS, signs_template=True, pre_state_per_template=True)
    ignores_resizes = True
    normalizer = Normalizer.MAX_REVERSED

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Upstream's runs for every pod and never skips."""
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        verdicts = _verdicts(pod, nodes)
        if verdicts.any_rejected:
            rows = verdicts.rejected.take(nodes.taints.set_ids())
            yield Rejection(rows, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (UNTOLERATED,))

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        if _refuses(node.taints, pod):
            return ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (UNTOLERATED,)),)
        return ()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Upstream's never skips: a node without a taint scores 100."""
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how many PreferNoSchedule taints the pod does not tolerate."""
        verdicts = _verdicts(pod, nodes)
        if not verdicts.any_disliked:
            return uniform(0, len(nodes))
        return verdicts.disliked_counts.take(nodes.taints.set_ids())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return taint_events(_after_node, _after_tolerations)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.shape.once_per_spec("TaintToleration.sign", _canonical)


# ---- hints ---------------------------------------------------------------------------------


def _after_node(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """QUEUE if the pod tolerates the node, and did not tolerate it or the node did not exist
    before."""
    was_closed = old is None or _closed(old, pod)
    return queue_if(was_closed and not _closed(new, pod))


def _after_tolerations(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """An update can only add tolerations, and any of them may be the one that is missing."""
    return QueueingHint.QUEUE


def _closed(node: Node, pod: PodInfo) -> bool:
    return _refuses(node.spec.taints or (), pod)


def _refuses(taints: Sequence[Taint], pod: PodInfo) -> bool:
    if not taints:
        return False
    return first_untolerated(taints, pod.shape.tolerations, keeps_away) is not None


# ---- verdicts ------------------------------------------------------------------------------


class _Verdicts:
    """The results of one pod shape for each distinct list of taints, by the list's id.

    The cluster's vocabulary of lists only grows, and the tables grow with it.
    """

    def __init__(self, tolerations: Tolerations) -> None:
        self._tolerations = tolerations
        self._taint_sets: Sequence[tuple[Taint, ...]] = ()
        self._clear()

    def _clear(self) -> None:
        self.rejected: Mask = np.zeros(0, np.bool_)
        self.disliked_counts: Int64s = np.zeros(0, np.int64)
        self.any_rejected = self.any_disliked = False

    def follow(self, taint_sets: Sequence[tuple[Taint, ...]]) -> None:
        """Have an answer for each of these lists, the cluster's vocabulary."""
        if taint_sets is not self._taint_sets:  # another cluster in the same process
            self._taint_sets = taint_sets
            self._clear()
        previous_count = len(self.rejected)
        if previous_count == len(taint_sets):
            return
        unknown = taint_sets[previous_count:]
        rejected = [self._rejects(taints) for taints in unknown]
        counts = [self._disliked_count(taints) for taints in unknown]
        self.rejected = np.append(self.rejected, np.array(rejected, np.bool_))
        self.disliked_counts = np.append(self.disliked_counts, np.array(counts, np.int64))
        self.any_rejected = self.any_rejected or any(rejected)
        self.any_disliked = self.any_disliked or any(counts)

    def _rejects(self, taints: Iterable[Taint]) -> bool:
        return first_untolerated(taints, self._tolerations, keeps_away) is not None

    def _disliked_count(self, taints: Iterable[Taint]) -> int:
        return sum(
            taint.effect == PREFER_NO_SCHEDULE
            and not any(tolerates(toleration, taint) for toleration in self._tolerations)
            for taint in taints
        )


def _verdicts(pod: PodInfo, nodes: NodeView) -> _Verdicts:
    verdicts = pod.shape.once("TaintToleration.verdicts", _no_verdicts)
    verdicts.follow(nodes.taints.sets())
    return verdicts


def _no_verdicts(shape: PodShape) -> _Verdicts:
    return _Verdicts(shape.tolerations)


def _canonical(shape: PodShape) -> Hashable:
    """Tolerations that match the same taints sign equal values; tolerationSeconds does not
    matter."""
    return tuple(sorted({_matching_part(toleration) for toleration in shape.tolerations}))


def _matching_part(toleration: Toleration) -> tuple[str, str, str, str]:
    operator = toleration.operator or "Equal"
    value = "" if operator == EXISTS else toleration.value or ""
    return toleration.key or "", operator, value, toleration.effect or ""
