"""Invariants that are checked while a simulation runs, and the resources that placed pods use.

Capacity and usage are computed from the API server's objects alone, by other means than the
scheduler's columns, so that a bug in the columns is detected. A violation is a bug of Bayplan and
ends the run.

After each turn of the scheduler, the checker of gangs counts the members of groups on nodes. It
uses the pods of the node table, not the counts of the groups. Two states are violations:

- A member was placed on a node, and its group has fewer placed members than its minimum, or the
  group has no object.
- Some members gave their nodes back, and other members still wait for them at Permit.

If members are placed one by one, the first state is a violation only for a member that does not
wait. The world may leave a group with fewer placed members than its minimum: it deletes a pod,
raises the minimum, or does not answer a binding. That is no violation until a further member is
placed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import cast, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import NODE, POD, Node, Pod
from bayplan.api.pod_groups import GroupKey
from bayplan.api.pod_requests import PODS, amounts, requested, resize_report
from bayplan.engine import cache_check
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.plugin import GroupPlacement
from bayplan.ports import RunAborted
from bayplan.sim.output.result import NodeUsage, Usage
from bayplan.state.change_log import Facet
from bayplan.state.pods import PodInfo

# ---- occupancy ------------------------------------------------------------------------------


#: Containers whose requests are stored; when there are more, all are dropped.
_REQUESTS_MAX = 1000


@final
class Occupancy:
    """An observer of the embedded API server: used resources. Pods that have ended use none."""

    def __init__(self) -> None:
        #: Existing node → its allocatable resources.
        self.allocatable: dict[str, dict[str, int]] = {}
        #: Node, existing or not → the resources that its pods use.
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        #: Resources that each placed pod uses, by uid.
        self._taken: dict[str, dict[str, int]] = {}
        self._total: Counter[str] = Counter()
        self._peak: Counter[str] = Counter()
        #: By the identity of the containers, which the pods of a template share: what the requests
        #: follow from, and the requests.
        self._requests: dict[int, tuple[tuple[object, ...], dict[str, int]]] = {}

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            self._node(changed.object, after is not None)
            return
        old = None if before is None else before.placed_pod
        new = None if after is None else after.placed_pod
        if old is not None or new is not None:
            self._pod(old, new)

    def usage_of(self, pod: Pod) -> dict[str, int]:
        """The resources that a placed pod uses, including itself as one of ``pods``."""
        return self._taken[_uid(pod)]

    def usage(self) -> tuple[Usage, ...]:
        """The usage of each resource of the nodes, over all nodes; sorted by name."""
        has: Counter[str] = Counter()
        for allocatable in self.allocatable.values():
            has.update(allocatable)
        return tuple(
            Usage(
                resource=resource,
                requested=self._total[resource],
                peak=self._peak[resource],
                allocatable=has[resource],
            )
            for resource in sorted(has)
            if has[resource]
        )

    def node_usage(self) -> dict[str, NodeUsage]:
        """The usage of each existing node, in the order of their names."""
        return {
            name: NodeUsage(
                pods=self.used[name][PODS],
                requested={k: self.used[name][k] for k in sorted(allocatable) if k != PODS},
                allocatable={k: allocatable[k] for k in sorted(allocatable)},
            )
            for name, allocatable in sorted(self.allocatable.items())
        }

    def _node(self, node: Node, is_there: bool) -> None:
        name = node.metadata.name
        self.allocatable.pop(name, None)
        if is_there:
            self.allocatable[name] = amounts(node.status.allocatable)

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None:
            taken = self._taken.pop(_uid(old))
            self.used[old.spec.node_name or ""].subtract(taken)
            self._total.subtract(taken)
        if new is not None:
            taken = self._taken[new.metadata.uid or ""] = self._requests_of(new)
            used, total, peak = self.used[new.spec.node_name or ""], self._total, self._peak
            for resource, amount in taken.items():
                # A missing count of a Counter costs a call.
                used[resource] = used.get(resource, 0) + amount
                sum_now = total[resource] = total.get(resource, 0) + amount
                if sum_now > peak.get(resource, 0):
                    peak[resource] = sum_now

    def _requests_of(self, pod: Pod) -> dict[str, int]:
        """The resources that a pod uses."""
        spec, report = pod.spec, resize_report(pod.status)
        parts = (spec.containers, spec.init_containers, spec.overhead, spec.resources, report)
        computed = self._requests.get(id(spec.containers))
        if computed is None or computed[0] != parts:
            if len(self._requests) >= _REQUESTS_MAX:
                self._requests.clear()
            # The parts hold the containers, so that no other containers get their identity.
            computed = parts, {**requested(pod), PODS: 1}
            self._requests[id(spec.containers)] = computed
        return computed[1]


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or ""


# ---- checkers -------------------------------------------------------------------------------


class InvariantBroken(RunAborted):
    """The scheduler violated an invariant.

    The error is raised within a call of a plugin to the API. A plain exception there would only
    fail the pod; this one aborts the run.
    """


@final
class CapacityChecker:
    """Checks at each binding that the node has enough of all resources that the pod requests.

    An observer of the embedded API server. A node that was full before, or that shrank, is no
    violation; a binding to such a node is one.
    """

    def __init__(self, cluster: EmbeddedCluster, occupancy: Occupancy | None = None) -> None:
        """``occupancy``: an observer that is registered with the cluster already."""
        if occupancy is None:
            occupancy = Occupancy()
            cluster.observe(occupancy.observe, (NODE, POD))
        self._occupancy = occupancy
        self.bindings_checked = 0

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        bound = None if after is None else after.placed_pod
        if bound is None or before is None or before.placed_pod is not None:
            return
        # A node may be deleted while a binding to it is in progress.
        node_name = bound.spec.node_name or ""
        if node_name in self._occupancy.allocatable:
            self._check(bound, node_name)

    def _check(self, pod: Pod, node_name: str) -> None:
        self.bindings_checked += 1
        has, used = self._occupancy.allocatable[node_name], self._occupancy.used[node_name]
        for resource, amount in self._occupancy.usage_of(pod).items():
            if amount and used.get(resource, 0) > has.get(resource, 0):
                raise InvariantBroken(
                    f"{_key(pod)} was bound to {node_name}, which has {has.get(resource, 0)} "
                    f"{resource} and now {used[resource]} taken"
                )


def differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    """Differences between the scheduler's cache and the API's objects, at a quiet moment."""
    nodes = cast(list[Node], [stored.object for stored in cluster.objects(NODE)])
    pods = cast(list[Pod], [stored.object for stored in cluster.objects(POD)])
    return cache_check.differences(scheduler, nodes, pods)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


# ---- gang checker ---------------------------------------------------------------------------


#: The group of a pod; None: the pod names no group.
_Key = GroupKey | None

_FACETS = int(Facet.PODS | Facet.NODE)


@final
class GangChecker:
    """Checks one scheduler after each of its turns. Without groups the check costs nothing."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._generation: int | None = None
        #: Row of the node table → the pods on it at the last check, by uid.
        self._rows: dict[int, dict[str, _Key]] = {}
        self._node_counts: Counter[GroupKey] = Counter()
        #: The number of checks of placed members, and of groups that lost members.
        self.placement_check_count = self.loss_check_count = 0
        scheduler.pod_groups.on_first_group(lambda: scheduler.executor.observe(self.look))

    def look(self) -> None:
        """Raises InvariantBroken."""
        log = self._scheduler.cache.table.log
        if self._generation == log.generation or self._scheduler.pod_groups.is_empty:
            return
        is_first, came, went = self._generation is None, list[PodInfo](), dict[str, _Key]()
        for row in log.rows_since(self._generation or 0, _FACETS).tolist():
            self._compare(row, came, went)
        self._generation = log.generation
        if not is_first:
            here = {pod.uid for pod in came}
            self._check_placements(pod for pod in came if pod.uid not in went)
            self._check_losses({key for uid, key in went.items() if key and uid not in here})

    def _compare(self, row: int, came: list[PodInfo], went: dict[str, _Key]) -> None:
        """Note the changes on one node since the last check."""
        before = self._rows.get(row, {})
        pods = self._scheduler.cache.table.pods[row]
        now = {uid: pod.group_key for uid, pod in pods.items()}
        went.update((uid, key) for uid, key in before.items() if uid not in now)
        came += (pod for uid, pod in pods.items() if uid not in before)
        self._node_counts.subtract(key for key in before.values() if key is not None)
        self._node_counts.update(key for key in now.values() if key is not None)
        self._rows[row] = now

    def _check_placements(self, placed: Iterable[PodInfo]) -> None:
        """Check pods that are on a node since this turn."""
        for pod in placed:
            key = pod.group_key
            if key is None or not self._scheduler.cache.is_assumed(pod.uid):
                continue
            self.placement_check_count += 1
            count, minimum = self._node_counts[key], self._minimum(key)
            if (minimum is None or count < minimum) and not self._waits_alone(pod):
                minimum = "and has no object" if minimum is None else f"of {minimum}"
                raise InvariantBroken(
                    f"{pod.key} was placed on {pod.node_name}: "
                    f"group {key} holds {count} nodes {minimum}"
                )

    def _check_losses(self, left: set[GroupKey]) -> None:
        """Check groups that lost a member since this turn."""
        for key in left:
            self.loss_check_count += 1
            minimum = self._minimum(key)
            if minimum is None or not 0 < self._node_counts[key] < minimum:
                continue
            for waiting_pod in self._scheduler.waiting_pods():
                pod, count = waiting_pod.pod, self._node_counts[key]
                if pod.group_key == key and not self._is_placed_alone(pod):
                    raise InvariantBroken(
                        f"group {key} gave nodes back and holds {count} of {minimum}: "
                        f"{pod.key} waits on {pod.node_name} for members that left"
                    )

    def _minimum(self, key: GroupKey) -> int | None:
        """The minimum as the scheduler knows it; None: the group has no object."""
        state = self._scheduler.pod_groups.get(key)
        group = None if state is None else state.group
        return None if group is None else group.min_member

    def _waits_alone(self, pod: PodInfo) -> bool:
        waiting = (waiting_pod.pod.uid for waiting_pod in self._scheduler.waiting_pods())
        return self._is_placed_alone(pod) and pod.uid in waiting

    def _is_placed_alone(self, pod: PodInfo) -> bool:
        instances = self._scheduler.framework(pod.scheduler_name).plugins.instances()
        return any(isinstance(p, GroupPlacement) and p.places_pod_by_pod for p in instances)
