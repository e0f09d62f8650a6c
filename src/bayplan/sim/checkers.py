"""Invariants, checked while a simulation runs and when it is quiet.

They compute from the API server's objects alone, by other means than the scheduler does: a bug in
its columns is seen here. A violation is a bug of ours and ends the run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import final

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import NODE, POD, Pod, is_terminal
from bayplan.api.pod_requests import PODS, requested
from bayplan.engine.scheduler import Scheduler
from bayplan.sim.occupancy import Occupancy, placed_pod


class InvariantBroken(BaseException):
    """The scheduler did what it must never do.

    No ``Exception``: it is raised in the midst of a plugin's call to the API, and what a plugin
    raises fails its pod only.
    """


@final
class CapacityChecker:
    """At every binding: no node takes more than it has of anything the pod asks for.

    An observer of the embedded API server. What was on a node before, or a node that shrank, is
    nobody's fault; a binding on top of it is.
    """

    def __init__(self, cluster: EmbeddedCluster, occupancy: Occupancy | None = None) -> None:
        """``occupancy``: one that observes the cluster already."""
        if occupancy is None:
            occupancy = Occupancy()
            cluster.observe(occupancy.observe)
        self._occupancy = occupancy
        self.bindings_checked = 0

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        bound = placed_pod(after)
        if bound is None or before is None or placed_pod(before) is not None:
            return
        # A node may go while a binding to it is on its way.
        node_name = bound.spec.node_name or ""
        if node_name in self._occupancy.allocatable:
            self._check(bound, node_name)

    def _check(self, pod: Pod, node_name: str) -> None:
        self.bindings_checked += 1
        has, used = self._occupancy.allocatable[node_name], self._occupancy.used[node_name]
        for resource, amount in self._occupancy.taken_by(pod).items():
            if amount and used[resource] > has.get(resource, 0):
                raise InvariantBroken(
                    f"{_key(pod)} was bound to {node_name}, which has {has.get(resource, 0)} "
                    f"{resource} and now {used[resource]} taken"
                )


def differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    """Where the scheduler's picture differs from the API's objects, when all is quiet.

    Nodes, placed pods and their nodes; every pending pod of ours is in the queue or on its way,
    and nothing else is.
    """
    return [
        *_node_differences(scheduler, cluster),
        *_pod_differences(scheduler, cluster),
        *_count_differences(scheduler),
        *_pending_differences(scheduler, cluster),
    ]


def _node_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> Iterator[str]:
    table = scheduler.cache.table
    known = {name for name, row in table.row_of.items() if table.nodes[row] is not None}
    there = {stored.key.name for stored in cluster.objects(NODE)}
    yield from (f"node {name} is known and not there" for name in sorted(known - there))
    yield from (f"node {name} is there and not known" for name in sorted(there - known))


def _pod_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> Iterator[str]:
    there = {_uid(pod): pod for pod in map(placed_pod, cluster.objects(POD)) if pod is not None}
    counted = {pod.uid: pod for pod in scheduler.cache.pods()}
    for uid in sorted(there.keys() | counted.keys()):
        node, ours = _node_of(there.get(uid)), counted.get(uid)
        if ours is None:
            yield f"pod {_key(there[uid])} is on {node} and not counted"
        elif ours.node_name != node and (node or not _is_on_its_way(scheduler, uid)):
            yield f"pod {ours.key} is on {node or 'no node'} and counted on {ours.node_name}"


def _is_on_its_way(scheduler: Scheduler, uid: str) -> bool:
    """At Permit or in a binding a pod counts before the API knows; in both, it is in no queue."""
    is_begun = scheduler.cache.is_assumed(uid) or scheduler.queue.find(uid) is not None
    return is_begun and not scheduler.only_retries_wait


def _count_differences(scheduler: Scheduler) -> Iterator[str]:
    """What the columns say is taken, held against the pods they were counted from."""
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in scheduler.cache.pods():
        taken[pod.node_name].update({**requested(pod.pod), PODS: 1})
    snapshot = scheduler.cache.lend()
    nodes = snapshot.nodes
    names = nodes.names()
    for resource in nodes.resource_names():
        column = nodes.pod_counts() if resource == PODS else nodes.requested(resource)
        for name, count in zip(names, column.tolist(), strict=True):
            if count != taken[name][resource]:
                yield f"node {name} counts {count} {resource}, its pods {taken[name][resource]}"
    snapshot.end()


def _pending_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> Iterator[str]:
    waiting = {pod.uid: pod for pods in scheduler.queue.pending_pods().values() for pod in pods}
    there = {_uid(pod): pod for pod in _pending(scheduler, cluster)}
    for uid in sorted(waiting.keys() - there.keys()):
        yield f"pod {waiting[uid].key} is queued and not pending"
    for uid in sorted(there.keys() - waiting.keys()):
        if not _is_on_its_way(scheduler, uid):
            yield f"pod {_key(there[uid])} is pending and lost"


def _pending(scheduler: Scheduler, cluster: EmbeddedCluster) -> Iterator[Pod]:
    """Pods that the API says are the scheduler's to place."""
    for stored in cluster.objects(POD):
        pod = stored.object
        assert isinstance(pod, Pod)
        is_ours = scheduler.is_responsible_for(pod.spec.scheduler_name)
        if is_ours and not pod.spec.node_name and not is_terminal(pod):
            yield pod


def _node_of(pod: Pod | None) -> str:
    return (pod.spec.node_name or "") if pod is not None else ""


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or ""
