"""What makes a pod that PodTopologySpread rejected worth another attempt.

A pod whose labels begin or end to match a hard constraint, a node that joins, leaves or moves to
another domain, a taint that may have kept a domain from counting. Upstream:
podtopologyspread/plugin.go; a constraint that does not parse is an error there, which counts as
Queue.
"""

from collections.abc import Sequence
from typing import Final, final

from bayplan.api.objects import Node
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.plugins.pod_topology_spread.constraints import Constraint, SpreadRules
from bayplan.state.pods import PodInfo

_POD_CHANGES = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
_OWN_CHANGES = ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
_NODE_CHANGES = (
    ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
)


@final
class SpreadHints:
    """The hints of one instance."""

    def __init__(self, rules: SpreadRules) -> None:
        self._rules: Final = rules

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
        if any(other is not None and not _involved(other, pod) for other in (old, new)):
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


def _answer(worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if worth_it else QueueingHint.QUEUE_SKIP


def _involved(other: PodInfo, pod: PodInfo) -> bool:
    """Whether a pod can count for the spread of another: it is, or is about to be, somewhere."""
    somewhere = bool(other.node_name or other.nominated_node_name)
    return somewhere and other.namespace == pod.namespace


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
