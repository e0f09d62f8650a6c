"""Compares the scheduler's cache and queue with the API's objects.

The expected values are computed from the API's objects alone, by other code than the scheduler's:
a bug in the columns of the cache shows here. The comparison covers nodes, placed pods and their
nodes, and the amounts in the columns. Each pending pod of the scheduler, and each pod that it tries
for a resize, must be in the queue or in flight; no other pod may be there. A change that the watch
has not delivered yet shows as a difference: compare when no change is under way, or compare twice.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import final

from bayplan.api.objects import TERMINAL_PHASES, Node, Pod, PodStatus
from bayplan.api.pod_requests import PODS, requested
from bayplan.engine.scheduler import Scheduler
from bayplan.state.pods import PodShape


def differences(scheduler: Scheduler, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[str]:
    """The differences, as one sentence each. ``nodes`` and ``pods``: all that the API has."""
    return _Comparison(scheduler, nodes, pods).differences()


@final
class _Comparison:
    """One scheduler compared with one listing. Pods that have ended count as deleted."""

    def __init__(self, scheduler: Scheduler, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        self._scheduler = scheduler
        self._node_names = {node.metadata.name for node in nodes}
        self._pods = {
            pod.metadata.uid or "": pod for pod in pods if pod.status.phase not in TERMINAL_PHASES
        }

    def differences(self) -> list[str]:
        return [
            *self._nodes_differ(),
            *self._placed_differ(),
            *self._counts_differ(),
            *self._pending_differ(),
        ]

    def _nodes_differ(self) -> Iterator[str]:
        table, in_api = self._scheduler.cache.table, self._node_names
        cached = {name for name, row in table.row_of.items() if table.nodes[row] is not None}
        yield from (
            f"node {name} is in the cache and not in the API" for name in sorted(cached - in_api)
        )
        yield from (
            f"node {name} is in the API and not in the cache" for name in sorted(in_api - cached)
        )

    def _placed_differ(self) -> Iterator[str]:
        in_api = {uid: pod for uid, pod in self._pods.items() if pod.spec.node_name}
        in_cache = {pod.uid: pod for pod in self._scheduler.cache.pods()}
        for uid in sorted(in_api.keys() | in_cache.keys()):
            node = in_api[uid].spec.node_name if uid in in_api else ""
            cached = in_cache.get(uid)
            if cached is None:
                yield f"pod {_key(in_api[uid])} is on {node} in the API and not in the cache"
            elif cached.node_name != node and (node or not self._is_on_its_way(uid)):
                where = f"is on {node or 'no node'} in the API"
                yield f"pod {cached.key} {where} and on {cached.node_name} in the cache"

    def _is_on_its_way(self, uid: str) -> bool:
        """Whether the pod waits at Permit or is in a binding. It then counts on its node before the
        API knows, and is in no queue."""
        scheduler = self._scheduler
        is_begun = scheduler.cache.is_assumed(uid) or scheduler.queue.find(uid) is not None
        return is_begun and not scheduler.only_retries_wait

    def _counts_differ(self) -> Iterator[str]:
        """The amounts in the columns, compared with the requests of the pods on each node."""
        taken: dict[str, Counter[str]] = defaultdict(Counter)
        #: By shape: a status, and what pods of the shape with this status request.
        requests: dict[PodShape, tuple[PodStatus, dict[str, int]]] = {}
        for pod in self._scheduler.cache.pods():
            same = requests.get(pod.shape)
            if same is None or same[0] != pod.status:
                same = requests[pod.shape] = (pod.status, requested(pod.pod, rules=pod.shape.rules))
            counts = taken[pod.node_name]
            counts[PODS] += 1
            for name, amount in same[1].items():
                counts[name] += amount
        snapshot = self._scheduler.cache.lend()
        nodes = snapshot.nodes
        names = nodes.names()
        for resource in nodes.resources.names():
            column = nodes.pods.counts() if resource == PODS else nodes.requested(resource)
            for name, count in zip(names, column.tolist(), strict=True):
                if count != taken[name][resource]:
                    in_cache, of_pods = f"{count} {resource} in the cache", taken[name][resource]
                    yield f"node {name}: {in_cache}, its pods request {of_pods}"
        snapshot.end()

    def _pending_differ(self) -> Iterator[str]:
        pending = self._scheduler.queue.pending_pods().values()
        waiting = {pod.uid: pod for pods in pending for pod in pods}
        # A running pod is in the queue, too, while its resize is deferred.
        tries_resizes, is_ours = self._scheduler.tries_resizes, self._scheduler.is_responsible_for
        in_api = {
            uid: pod
            for uid, pod in self._pods.items()
            if (not pod.spec.node_name or (tries_resizes and _has_deferred_resize(pod)))
            and is_ours(pod.spec.scheduler_name)
        }
        for uid in sorted(waiting.keys() - in_api.keys()):
            yield f"pod {waiting[uid].key} is in the queue and not pending in the API"
        for uid in sorted(in_api.keys() - waiting.keys()):
            # A pod that is being deleted is not tried any more, even while a finalizer delays it.
            is_leaving = in_api[uid].metadata.deletion_timestamp is not None
            if not is_leaving and not self._is_on_its_way(uid):
                yield f"pod {_key(in_api[uid])} is pending in the API and not in the queue"


def _has_deferred_resize(pod: Pod) -> bool:
    conditions = ((each.type, each.reason) for each in pod.status.conditions or ())
    return ("PodResizePending", "Deferred") in conditions


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
