"""GangScheduling: members of a scheduling.k8s.io PodGroup wait until enough of them are there.

Afterwards the engine's group cycle places the members together. Upstream: plugins/gangscheduling.
"""

from collections.abc import Sequence
from typing import Any, final

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP, CompositePodGroup
from bayplan.api.pod_groups import UPSTREAM_GROUP, GroupKey
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.framework.plugin import EnqueueExtensions, PermitPlugin, PreEnqueuePlugin
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.state.pod_group_trees import GroupTree, PodGroupTrees
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, PodShape

#: The kind of gangs in Kubernetes 1.35.
_WORKLOAD = "scheduling.k8s.io/v1alpha1 Workload"

# Upstream's words, letter for letter.
NO_GROUP = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED = "waiting for minCount pods from a gang to be scheduled"
TREE_WAITS = 'waiting for composite pod group "{}" tree to meet quorum'
NO_OBJECT = "failed to build hierarchy snapshot: {} object not found in state for {}"

#: How long a member waits at Permit, in seconds. Upstream: permitTimeoutDuration.
_PERMIT_TIMEOUT_SECONDS = 300.0


@final
class GangScheduling(PreEnqueuePlugin, PermitPlugin, EnqueueExtensions):
    """Holds back pods whose group lacks its object or members.

    Permit, which 1.38 does not have, holds members while fewer than the minimum have a node. The
    engine's group cycle places the minimum before Permit, so that members wait there only if they
    are placed one by one. Members of a tree of groups wait for the quorum of the tree.
    """

    name = "GangScheduling"

    @property
    def _trees(self) -> PodGroupTrees:
        return self.handle.group_trees

    def concerns(self, shape: PodShape) -> bool:
        return shape.spec.scheduling_group is not None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        state = self._group(pod)
        if state is None:
            return None
        if state.group is None:
            if self._trees.is_on:
                return unresolvable(NO_OBJECT.format("pod group", f"podgroup/{state.key}"))
            return unresolvable(NO_GROUP.format(state.key.name))
        if self._trees.has_parent(state.key):
            return self._wait_for_tree(state)
        return None if state.is_complete else unresolvable(TOO_FEW)

    def _wait_for_tree(self, state: GroupState) -> Status | None:
        tree = self._tree(state)
        if tree is None:
            name = f"compositepodgroup/{self._trees.top_of(state.key)}"
            return unresolvable(NO_OBJECT.format("composite pod group", name))
        return None if tree.is_complete else unresolvable(TREE_WAITS.format(tree.key.name))

    def _tree(self, state: GroupState) -> GroupTree | None:
        """The tree of a group; None: a group above is missing."""
        root = self._trees.root_of(state.key)
        return None if root is None else self._trees.tree(root)

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        members = self._group(pod)
        if members is None:
            return None, 0.0
        is_met, text = members.assigned_count >= members.min_member, TOO_FEW_PLACED
        tree = self._tree(members)
        if tree is not None:
            is_met = tree.is_met(lambda leaf: leaf.assigned_count)
            text = TREE_WAITS.format(tree.key.name)
        return (None, 0.0) if is_met else (Status(Code.WAIT, (text,)), _PERMIT_TIMEOUT_SECONDS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        behaviour = self.handle.behaviour
        gangs = EventResource.POD_GROUP if behaviour.gangs_are_pod_groups else _WORKLOAD
        events = [
            (EventResource.UNSCHEDULED_POD, ActionType.ADD, self._of_its_group),
            (EventResource.ASSIGNED_POD, ActionType.ADD, self._of_its_group),
            (gangs, ActionType.ADD, self._its_group),
        ]
        if behaviour.changed_groups_are_events:
            events.append((gangs, UPDATE, self._its_group))
        if self._trees.is_on:
            events.append((COMPOSITE_POD_GROUP, ActionType.ADD, self._its_tree))
        return [
            ClusterEventWithHint(ClusterEvent(resource, action), hint)
            for resource, action, hint in events
        ]

    def _group(self, pod: PodInfo) -> GroupState | None:
        """The pod's group, if its kind is Kubernetes' own."""
        key = pod.group_key
        if key is None or key.api_group != UPSTREAM_GROUP:
            return None
        return self.handle.pod_groups.of(pod)

    # ---- hints ----------------------------------------------------------------------------

    def _of_its_group(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        """Another member was created or bound."""
        key = new.group_key if isinstance(new, PodInfo) else None
        return self._hint(pod, key)

    def _its_group(self, pod: PodInfo, old: Any, new: Any) -> QueueingHint:
        """The group's object was added or changed."""
        namespace = new.metadata.namespace or DEFAULT_NAMESPACE
        return self._hint(pod, GroupKey(UPSTREAM_GROUP, namespace, new.metadata.name))

    def _its_tree(self, pod: PodInfo, old: Any, new: CompositePodGroup) -> QueueingHint:
        """A group above was added."""
        return self._hint(pod, new.key)

    def _hint(self, pod: PodInfo, key: GroupKey | None) -> QueueingHint:
        """Whether a group is that of the pod, or in the same tree. Upstream: areSameHierarchy."""
        own = pod.group_key
        if own is None or key is None:
            return QueueingHint.QUEUE_SKIP
        roots = {own, key}
        if self._trees.is_on:
            roots = {self._trees.top_of(each) for each in roots}
        return queue_if(len(roots) == 1)
