"""Invariants that are checked while a simulation runs.

Capacity and usage are computed from the API server's objects alone, by other means than the
scheduler's columns, so that a bug in the columns is detected. A violation is a bug of Bayplan and
ends the run. If devices serve a request for an extended resource, the claim that the pod's status
names must have them.

After each turn of the scheduler, the checker of gangs counts the members of groups on nodes. It
uses the pods of the node table, not the counts of the groups. Two states are violations:

- A member was placed on a node, and its group has fewer placed members than its minimum, or the
  group has no object.
- Some members gave their nodes back, and other members still wait for them at Permit.

If members are placed one by one, the first state is a violation only for a member that does not
wait. The world may leave a group with fewer placed members than its minimum, because it deletes a
pod, raises the minimum, or does not answer a binding. That is no violation until a further member
is placed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import cast, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.api.objects import NODE, POD, ContainerExtendedResourceRequest, Node, Pod
from bayplan.api.pod_groups import GroupKey
from bayplan.api.pod_requests import PODS, all_containers, amounts, is_counted
from bayplan.engine import cache_check
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.plugin import GroupPlacement
from bayplan.objects.keys import object_key
from bayplan.objects.workloads import pod_name
from bayplan.ports import RunAborted
from bayplan.sim.world.occupancy import OCCUPANCY_KINDS, Occupancy
from bayplan.state.change_log import Facet
from bayplan.state.device_table import DeviceId
from bayplan.state.pods import PodInfo

# ---- checkers -------------------------------------------------------------------------------


class InvariantBroken(RunAborted):
    """The scheduler violated an invariant.

    The error is raised within a call of a plugin to the API. A plain exception there would only
    fail the pod; this one aborts the run.
    """


@final
class CapacityChecker:
    """Checks at each binding that the node has enough of all resources that the pod requests.

    It observes the embedded API server. A node that was full before, or that shrank, is no
    violation, but a binding to such a node is one.
    """

    def __init__(self, cluster: EmbeddedCluster, occupancy: Occupancy | None = None) -> None:
        """``occupancy``: an observer that is registered with the cluster already."""
        if occupancy is None:
            occupancy = Occupancy()
            cluster.observe(occupancy.observe, OCCUPANCY_KINDS)
        self._cluster = cluster
        self._occupancy = occupancy
        self.bindings_checked = 0

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        bound = None if after is None else after.placed_pod
        if bound is None or before is None or before.placed_pod is not None:
            return
        # A node may be deleted while a binding to it is in progress.
        node_name = bound.spec.node_name or ""
        has = self._occupancy.allocatable.get(node_name)
        if has is None:
            return
        self.bindings_checked += 1
        used = self._occupancy.used[node_name]
        for resource, amount in self._occupancy.taken[bound.metadata.uid or ""].items():
            # A stored pod may request what no scheduler counts, or less than nothing.
            if amount <= 0 or not (resource == PODS or is_counted(resource)):
                continue
            if resource in has and used[resource] <= has[resource]:
                continue
            if not has.get(resource, 0) and (mappings := _mappings(bound, resource)):
                self._check_devices(bound, resource, mappings)
                continue
            raise InvariantBroken(
                f"{pod_name(bound)} was bound to {node_name}, which has {has.get(resource, 0)} "
                f"{resource} and now {used[resource]} taken"
            )

    def _check_devices(
        self, pod: Pod, resource: str, mappings: Iterable[ContainerExtendedResourceRequest]
    ) -> None:
        """Check the devices of a pod. ``mappings``: which container gets the devices of which
        request, for this resource."""
        status = pod.status.extended_resource_claim_status
        assert status is not None
        namespace, name = pod.metadata.namespace or "", status.resource_claim_name
        stored = self._cluster.get(object_key(RESOURCE_CLAIM, namespace, name))
        claim = None if stored is None else cast(ResourceClaim, stored.object)
        bound = f"{pod_name(pod)} was bound to {pod.spec.node_name}"
        if claim is None or claim.allocation is None:
            raise InvariantBroken(f"{bound}, and its claim {name} has no devices")
        if not claim.is_reserved_for(pod.metadata.uid or ""):
            raise InvariantBroken(f"{bound}, and its claim {name} is not reserved for it")
        device_counts = Counter(result.request for result in claim.allocation.results)
        for container in all_containers(pod.spec):
            requests = container.resources.requests if container.resources is not None else None
            amount = amounts(requests).get(resource, 0)
            names = {
                each.request_name for each in mappings if each.container_name == container.name
            }
            device_count = sum(device_counts[each] for each in names)
            if device_count < amount:
                raise InvariantBroken(
                    f"{bound}: its container {container.name} requests {amount} {resource}, and "
                    f"its claim {name} has {device_count} devices for it"
                )


@final
class DeviceChecker:
    """Checks at each allocation that no other claim has the same device.

    It observes the embedded API server. It ignores devices that several claims may use, and claims
    that had an allocation when they were created.
    """

    def __init__(self) -> None:
        #: Device → the claim that has it, "namespace/name".
        self._claims: dict[DeviceId, str] = {}

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        old, new = _exclusive_devices(before), _exclusive_devices(after)
        for device in old - new:
            self._claims.pop(device, None)
        for device in new - old:
            assert after is not None
            claim = cast(ResourceClaim, after.object).key
            owner = self._claims.setdefault(device, claim)
            if owner != claim and before is not None:
                raise InvariantBroken(
                    f"device {device} was allocated to claim {claim}, and claim {owner} has it"
                )


def _exclusive_devices(stored: StoredObject | None) -> set[DeviceId]:
    """The devices that a claim has for itself."""
    allocation = None if stored is None else cast(ResourceClaim, stored.object).allocation
    return {
        DeviceId(result.driver, result.pool, result.device)
        for result in (() if allocation is None else allocation.results)
        if result.share_id is None and not result.admin_access
    }


def _mappings(pod: Pod, resource: str) -> list[ContainerExtendedResourceRequest]:
    status = pod.status.extended_resource_claim_status
    mappings = () if status is None else status.request_mappings or ()
    return [each for each in mappings if each.resource_name == resource]


def differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    """Differences between the scheduler's cache and the API's objects, at a quiet moment."""
    nodes = cast(list[Node], [stored.object for stored in cluster.objects(NODE)])
    pods = cast(list[Pod], [stored.object for stored in cluster.objects(POD)])
    return cache_check.differences(scheduler, nodes, pods)


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
