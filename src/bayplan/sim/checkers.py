"""Invariants, checked while a simulation runs and when it is quiet.

They compute from the API server's objects alone, by other means than the scheduler does: a bug in
its columns is seen here. A violation is a bug of ours and ends the run.
"""

from collections import Counter, defaultdict
from typing import final

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import NODE, POD, Node, Pod, is_terminal
from bayplan.api.pod_requests import PODS, amounts, requested
from bayplan.engine.scheduler import Scheduler


class InvariantBroken(AssertionError):
    """The scheduler did what it must never do."""


@final
class CapacityChecker:
    """At every binding: no node takes more than it has of anything the pod asks for.

    An observer of the embedded API server. What was on a node before, or a node that shrank, is
    nobody's fault; a binding on top of it is.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._allocatable: dict[str, dict[str, int]] = {}
        self.bindings_checked = 0

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            self._node(changed.object, after is not None)
        elif isinstance(changed.object, Pod):
            self._pod(before, after)

    def _node(self, node: Node, is_there: bool) -> None:
        name = node.metadata.name
        self._allocatable.pop(name, None)
        if is_there:
            self._allocatable[name] = amounts(node.status.allocatable)

    def _pod(self, before: Stored | None, after: Stored | None) -> None:
        old, new = _placed(before), _placed(after)
        if old is not None:
            self._used[old.spec.node_name or ""].subtract(_taken(old))
        if new is None:
            return
        node_name = new.spec.node_name or ""
        self._used[node_name].update(_taken(new))
        bound_now = before is not None and isinstance(before.object, Pod) and old is None
        if bound_now and node_name in self._allocatable:
            self._check(new, node_name)

    def _check(self, pod: Pod, node_name: str) -> None:
        self.bindings_checked += 1
        has, used = self._allocatable[node_name], self._used[node_name]
        for resource, amount in _taken(pod).items():
            if amount and used[resource] > has.get(resource, 0):
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                raise InvariantBroken(
                    f"{name} was bound to {node_name}, which has {has.get(resource, 0)} {resource} "
                    f"and now {used[resource]} taken"
                )


def _placed(stored: Stored | None) -> Pod | None:
    if stored is None or not isinstance(stored.object, Pod):
        return None
    pod = stored.object
    return pod if pod.spec.node_name and not is_terminal(pod) else None


def _taken(pod: Pod) -> dict[str, int]:
    return {**requested(pod), PODS: 1}


def differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    """Where the scheduler's picture differs from the API's objects, when all is quiet.

    Nodes, placed pods and their nodes; every pending pod of ours is in the queue or on its way,
    and nothing else is.
    """
    return [
        *_node_differences(scheduler, cluster),
        *_pod_differences(scheduler, cluster),
        *_pending_differences(scheduler, cluster),
    ]


def _node_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    table = scheduler.cache.table
    known = {name for name, row in table.row_of.items() if table.nodes[row] is not None}
    there = {stored.key.name for stored in cluster.objects(NODE)}
    return [f"node {n} is known and not there" for n in sorted(known - there)] + [
        f"node {n} is there and not known" for n in sorted(there - known)
    ]


def _pod_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    found = [_placed(stored) for stored in cluster.objects(POD)]
    there = {p.metadata.uid or "": p.spec.node_name or "" for p in found if p is not None}
    counted = {p.uid: p.node_name for p in scheduler.cache.pods()}
    lines = [
        f"pod {uid} is on {there.get(uid)!r} and counted on {counted.get(uid)!r}"
        for uid in sorted(there.keys() | counted.keys())
        if there.get(uid) != counted.get(uid)
    ]
    table = scheduler.cache.table
    by_node = Counter(counted.values())
    for name, row in sorted(table.row_of.items()):
        if int(table.pod_counts.values[row]) != by_node[name]:
            lines.append(f"node {name} counts other pods than are on it")
    return lines


def _pending_differences(scheduler: Scheduler, cluster: EmbeddedCluster) -> list[str]:
    waiting = {p.uid for pods in scheduler.queue.pending_pods().values() for p in pods}
    there = {
        stored.object.metadata.uid or ""
        for stored in cluster.objects(POD)
        if isinstance(stored.object, Pod)
        and not stored.object.spec.node_name
        and not is_terminal(stored.object)
        and scheduler.is_responsible_for(stored.object.spec.scheduler_name)
    }
    held = {held.pod.uid for held in scheduler.waiting_pods()}
    return [f"pod {uid} is queued and not pending" for uid in sorted(waiting - there)] + [
        f"pod {uid} is pending and lost" for uid in sorted(there - waiting - held)
    ]
