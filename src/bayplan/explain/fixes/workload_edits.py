"""Make room: which pods of other workloads to remove from which node.

A pod without a controller is deleted. A pod of a controller goes when the controller gets smaller.
Then the controller chooses the pods: a StatefulSet removes its highest ordinals, and a ReplicaSet
removes the pods that its ranking puts first. If the ranking would choose other pods, an annotation
puts the right pods first. Whether the right pods go is tried with the controller itself
(`consequences`).

These pods stay: critical pods, pods of DaemonSets and static pods, pods of the workload that waits,
pods whose budget allows no disruption, the last pod of a controller, and pods that a controller of
an unknown kind, or an autoscaler, would bring back.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge, nsmallest
from itertools import islice
from typing import final

from bayplan.answers.amounts import counted
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.object_meta import controller_of
from bayplan.api.objects import (
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.api.selectors import SelectorError, label_selector
from bayplan.explain.diagnosis import NodeDiagnosis, pods_on, requested_amount
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.commands import (
    NoCommandError,
    annotation_command,
    deletion_command,
    patch_command,
    scale_command,
)
from bayplan.explain.fixes.edits import Harm, ObjectEdit, deletion_of
from bayplan.explain.fixes.owners import Owners, manager_of, owner_text
from bayplan.framework.status import Code
from bayplan.model.autoscalers import autoscaled
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey
from bayplan.objects.workloads import DELETION_COST_ANNOTATION, is_mirror, ordinal_of, pod_name
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

#: The number of nodes that are tried, the nearest first; and the most pods that are removed from
#: one of them.
_NODES_MAX = 5
_REMOVED_MAX = 12
#: Controllers whose size is a number that can be lowered.
SCALABLE = frozenset((DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER, JOB))
#: Controllers for which the annotation counts.
_RANKING = frozenset((DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER))
_COST = -1000
#: Upstream: pkg/apis/scheduling (HighestUserDefinablePriority).
_CRITICAL_FROM = 1_000_000_001


def room_edits(
    model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis
) -> Iterator[ObjectEdit]:
    """Pods to remove from one node, as few as suffice there."""
    room = _Room(model, owners, diagnosis)
    for node in room.nearest_nodes():
        lacking = diagnosis.amounts.lacking_on(node)
        pods = sorted(pods_on(model, node), key=lambda pod: _order(pod, lacking))
        yield from room.edits(room.first_to_go(pods, {node}), lacking)
    if diagnosis.attempt.pod.group_key is not None:
        # Members of a group take room on several nodes. Any first removal may help, because what
        # the whole group lacks is not known.
        rejected = diagnosis.rejected.items()
        nodes = {name for name, status in rejected if status.code is Code.UNSCHEDULABLE}
        pods = model.once(PlacedPods).in_order(diagnosis.pod.requests)
        yield from room.edits(room.first_to_go(pods, nodes), {})


@final
class _Room:
    """The search for pods that may go."""

    def __init__(self, model: ClusterModel, owners: Owners, diagnosis: NodeDiagnosis) -> None:
        self._model = model
        self._owners = owners
        self._diagnosis = diagnosis
        self._pod = diagnosis.attempt.pod
        self._workload = owners.of(self._pod)

    def nearest_nodes(self) -> list[str]:
        """The nodes on which the removal of pods may help, those that lack the least first."""
        rejected, amounts = self._diagnosis.rejected, self._diagnosis.amounts
        helped = [name for name, status in rejected.items() if status.code is Code.UNSCHEDULABLE]
        shortage = amounts.shortage(self._diagnosis.pod.requests)
        shares = (shortage.item(amounts.places[name]) for name in helped)
        nearest = nsmallest(_NODES_MAX, zip(shares, helped, strict=True))
        return [name for _, name in nearest]

    # ---- which pods may go ------------------------------------------------------------------

    def first_to_go(self, pods: Iterable[PodInfo], nodes: Collection[str]) -> list[PodInfo]:
        """The first pods on these nodes that may go, as many as are removed at most."""
        there = (pod for pod in pods if pod.node_name in nodes and self._may_go(pod, nodes))
        return list(islice(there, _REMOVED_MAX))

    def _may_go(self, pod: PodInfo, nodes: Collection[str]) -> bool:
        if pod.priority >= _CRITICAL_FROM or is_mirror(pod.metadata):
            return False
        if pod.metadata.deletion_timestamp or self._allowed(pod) == 0:
            return False
        owner = self._owners.of(pod)
        if owner is None:
            return True
        if owner == self._workload or owner.kind not in SCALABLE or self._is_sized(owner):
            return False
        if owner.kind == STATEFUL_SET and not self._is_above_all(pod, owner, nodes):
            return False
        if owner.kind == JOB and not self._is_one_of_equals(pod):
            return False  # The Job chooses, and no annotation counts for it.
        return self._owners.size(owner) > 1 and not self._rolls_out(owner)

    def _is_sized(self, owner: ObjectKey) -> bool:
        """Whether an autoscaler, or an operator, sets the size of a controller again."""
        if owner in self._autoscaled:
            return True
        parent = self._owners.parent_of(owner)
        return parent is not None and not parent.kind.endswith(" CronJob")

    def _is_above_all(self, pod: PodInfo, owner: ObjectKey, nodes: Collection[str]) -> bool:
        """Whether all pods of a StatefulSet with higher ordinals may go with a pod."""
        higher = (
            self._model.placed(pod_name(each))
            for each in self._owners.pods(owner)
            if ordinal_of(owner.name, each.metadata.name) > ordinal_of(owner.name, pod.name)
        )
        return all(each is not None and each.node_name in nodes for each in higher)

    def _rolls_out(self, owner: ObjectKey) -> bool:
        """Whether a Deployment has pods of several revisions, among which it divides a new size."""
        pods = self._owners.pods(owner) if owner.kind == DEPLOYMENT else ()
        return len({self._owners.parent(pod.metadata, owner.namespace) for pod in pods}) > 1

    @cached_property
    def _autoscaled(self) -> set[ObjectKey]:
        return set(autoscaled(self._model))

    # ---- budgets ----------------------------------------------------------------------------

    def _allowed(self, pod: PodInfo) -> int | None:
        """How many disruptions the budgets of a pod allow; None: no budget covers it."""
        allowed = [budget.status.disruptions_allowed for budget in self._budgets_of(pod)]
        return min(allowed, default=None)

    def _budgets_of(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        return [
            budget
            for budget, covers in self._budgets
            if budget.metadata.namespace == pod.namespace and covers(pod.labels)
        ]

    @cached_property
    def _budgets(self) -> list[tuple[PodDisruptionBudget, Callable[[Mapping[str, str]], bool]]]:
        budgets: list[tuple[PodDisruptionBudget, Callable[[Mapping[str, str]], bool]]] = []
        for each in self._model.objects(POD_DISRUPTION_BUDGET):
            if isinstance(each, PodDisruptionBudget):
                try:
                    budgets.append((each, label_selector(each.spec.selector).matches))
                except SelectorError:
                    continue  # The API server refuses such a budget, so it covers nothing.
        return budgets

    def _respects_budgets(self, pods: Sequence[PodInfo]) -> bool:
        return all(count <= allowed for _, count, allowed in self._disruptions(pods))

    def _disruptions(self, pods: Sequence[PodInfo]) -> list[tuple[str, int, int]]:
        """Yields (name, pods that go, pods that may go) of each budget."""
        counts: Counter[str] = Counter()
        allowed: dict[str, int] = {}
        for pod in pods:
            for budget in self._budgets_of(pod):
                name = f"{budget.metadata.namespace}/{budget.metadata.name}"
                counts[name] += 1
                allowed[name] = budget.status.disruptions_allowed
        return [(name, count, allowed[name]) for name, count in sorted(counts.items())]

    # ---- edits ------------------------------------------------------------------------------

    def edits(self, pods: Sequence[PodInfo], lacking: Mapping[str, int]) -> Iterator[ObjectEdit]:
        """The edits. ``pods``: the pods in the order in which they go. ``lacking``: what the node
        lacks."""
        chosen = self._enough(pods, lacking)
        if not chosen or not self._respects_budgets(chosen) or not self._leaves_one(chosen):
            return
        ranked = [pod for pod in chosen if self._is_ranked(pod)]
        is_marked = not all(map(self._is_one_of_equals, ranked))
        if not is_marked or not any(self._owners.is_made_up(pod.pod) for pod in ranked):
            yield self._edit(chosen, is_marked=is_marked)

    def _is_ranked(self, pod: PodInfo) -> bool:
        owner = self._owners.of(pod)
        return owner is not None and owner.kind in _RANKING

    def _is_one_of_equals(self, pod: PodInfo) -> bool:
        """Whether any pod of the controller may go, because all of them are on one node."""
        owner = self._owners.of(pod)
        pods = [] if owner is None else self._owners.pods(owner)
        return all(each.spec.node_name == pod.node_name for each in pods)

    def _leaves_one(self, pods: Sequence[PodInfo]) -> bool:
        """Whether each controller keeps a pod."""
        return all(count < self._owners.size(owner) for owner, count in self._by_owner(pods))

    def _by_owner(self, pods: Iterable[PodInfo]) -> list[tuple[ObjectKey, int]]:
        owners = (self._owners.of(pod) for pod in pods)
        return list(Counter(owner for owner in owners if owner is not None).items())

    def _enough(self, pods: Sequence[PodInfo], lacking: Mapping[str, int]) -> list[PodInfo]:
        """The first pods whose removal gives the pod a node, without the pods that may stay."""
        removed: list[PodInfo] = []
        with self._model.trial():
            for each in pods:
                self._model.remove(POD, each.namespace, each.name)
                removed.append(each)
                if _may_suffice(removed, lacking) and self._model.attempt(self._pod.key).fits:
                    break
            else:
                return []
        for each in removed[:-1]:
            fewer = [other for other in removed if other is not each]
            if _may_suffice(fewer, lacking) and self._suffices(fewer):
                removed = fewer
        return removed

    def _suffices(self, pods: Iterable[PodInfo]) -> bool:
        with self._model.trial():
            for each in pods:
                self._model.remove(POD, each.namespace, each.name)
            return self._model.attempt(self._pod.key).fits

    def _edit(self, pods: Sequence[PodInfo], *, is_marked: bool) -> ObjectEdit:
        """The edit. ``is_marked``: whether annotations make the controllers remove these pods
        first."""
        drafts: list[_Part] = []
        bare = [pod for pod in pods if self._owners.of(pod) is None]
        if bare:
            names = ", ".join(
                f"{printable(pod.key)} from {printable(pod.node_name)}" for pod in bare
            )
            drafts.append(_Part(f"remove {names}"))
        for pod in bare:
            key = ObjectKey(POD, pod.namespace, pod.name)
            drafts.append(_Part("", deletion_of(key), lambda key=key: deletion_command(key)))
        for owner, count in self._by_owner(pods):
            own = [pod for pod in pods if self._owners.of(pod) == owner]
            if is_marked and owner.kind in _RANKING:
                names = ", ".join(printable(pod.key) for pod in own)
                drafts.append(_Part(f"mark {names} as the first to go"))
                drafts += (_mark(pod) for pod in own)
            drafts.append(_smaller(owner, self._owners.size(owner), count))
        commands = [part.written() for part in drafts if part.change is not None]
        return ObjectEdit(
            "; ".join(part.text for part in drafts if part.text),
            tuple(part.change for part in drafts if part.change is not None),
            tuple(each for each in commands if each) if all(commands) else (),
            "workload",
            Harm.WORKLOAD,
            family=f"room on {', '.join(sorted({pod.node_name for pod in pods}))}",
            note="; ".join(self._notes(pods)),
            needs_controllers=True,
        )

    def _notes(self, pods: Sequence[PodInfo]) -> Iterator[str]:
        for name, count, allowed in self._disruptions(pods):
            yield printable(
                f"PodDisruptionBudget {name} allows {counted(allowed, 'disruption')}, "
                f"this takes {count}"
            )
        for owner, _ in self._by_owner(pods):
            manager = manager_of(self._owners.content(owner))
            if manager:
                yield f"{manager} writes {owner_text(owner)}: change it there, too"


@final
class _Part:
    """One step of an edit."""

    def __init__(
        self, text: str, change: Change | None = None, command: Callable[[], str] | None = None
    ) -> None:
        self.text = text
        self.change = change
        self._command = command

    def written(self) -> str:
        """The command; "": no command can name the object."""
        try:
            return "" if self._command is None else self._command()
        except NoCommandError:
            return ""


def _mark(pod: PodInfo) -> _Part:
    key = ObjectKey(POD, pod.namespace, pod.name)
    annotations = {**pod.annotations, DELETION_COST_ANNOTATION: str(_COST)}
    path = "/metadata/annotations"
    change = Change(
        verb="patch",
        kind=POD,
        name=pod.name,
        namespace=pod.namespace,
        patch=({"op": "add", "path": path, "value": annotations},),
    )
    return _Part("", change, lambda: annotation_command(key, DELETION_COST_ANNOTATION, _COST))


def _smaller(owner: ObjectKey, size: int, count: int) -> _Part:
    """A controller with ``count`` pods fewer."""
    target = size - count
    text = f"{owner_text(owner)} from {size} to {target}"
    field = "parallelism" if owner.kind == JOB else "replicas"
    patch = ({"op": "replace", "path": f"/spec/{field}", "value": target},)
    change = Change(
        verb="patch", kind=owner.kind, name=owner.name, namespace=owner.namespace, patch=patch
    )
    if owner.kind == JOB:
        text = f"lower the parallelism of {text}"
        return _Part(text, change, lambda: patch_command(owner, patch))
    return _Part(f"scale {text}", change, lambda: scale_command(owner, target))


@final
class PlacedPods:
    """The placed pods of a model in the order in which they go. They are sorted once, also for the
    states in a trial, where only the changed pods are sorted again."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        #: By priority and requests: pods in order.
        self._groups: dict[Hashable, list[PodInfo]] = {}
        #: The identities of these pods.
        self._known: set[int] = set()

    def in_order(self, lacking: Mapping[str, int]) -> Iterator[PodInfo]:
        """All placed pods as they are now. ``lacking``: what their removal is to free."""
        pods = self._model.scheduler.cache.pods()
        if not self._groups:
            self._groups, self._known = _grouped(pods), set(map(id, pods))
        present = set(map(id, pods))
        new = _grouped(pod for pod in pods if id(pod) not in self._known)
        equal: dict[tuple[int, float], list[list[PodInfo]]] = defaultdict(list)
        for group in (*self._groups.values(), *new.values()):
            equal[_order(group[0], lacking)[:2]].append(group)
        for _, groups in sorted(equal.items()):
            merged = merge(*groups, key=_order_of_equals)
            yield from (pod for pod in merged if id(pod) in present)


def _grouped(pods: Iterable[PodInfo]) -> dict[Hashable, list[PodInfo]]:
    groups: dict[Hashable, list[PodInfo]] = defaultdict(list)
    for pod in pods:
        groups[pod.priority, frozenset(pod.requests.items())].append(pod)
    for group in groups.values():
        group.sort(key=_order_of_equals)
    return groups


def _order(pod: PodInfo, lacking: Mapping[str, int]) -> tuple[int, float, int, str]:
    """The sort key: the least important pods come first, and among equal ones those that free the
    most of what is lacking."""
    freed = sum(min(requested_amount(pod, name) / lack, 1.0) for name, lack in lacking.items())
    return (pod.priority, -freed, *_order_of_equals(pod))


def _order_of_equals(pod: PodInfo) -> tuple[int, str]:
    return _last_first(pod), pod.key


def _last_first(pod: PodInfo) -> int:
    """The sort key that puts the highest ordinal of a StatefulSet first; 0 for other
    controllers."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != "StatefulSet":
        return 0
    return -ordinal_of(owner.name, pod.name)


def _may_suffice(removed: Sequence[PodInfo], lacking: Mapping[str, int]) -> bool:
    """Whether pods free what their node lacks. A removal that frees less is not tried."""
    return all(
        sum(requested_amount(each, resource) for each in removed) >= amount
        for resource, amount in lacking.items()
    )
