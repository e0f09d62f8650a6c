"""Invariants, checked while a simulation runs and when it is quiet.

They compute from the API server's objects alone, by other means than the scheduler does: a bug in
its columns is seen here. A violation is a bug of ours and ends the run.
"""

from typing import cast, final

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import NODE, POD, Node, Pod
from bayplan.engine import cache_check
from bayplan.engine.scheduler import Scheduler
from bayplan.ports import RunAborted
from bayplan.sim.occupancy import Occupancy, placed_pod


class InvariantBroken(RunAborted):
    """The scheduler did what it must never do.

    It is raised in the midst of a plugin's call to the API, and what a plugin raises fails its pod
    only: therefore it aborts the run.
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
    """Where the scheduler's picture differs from the API's objects, when all is quiet."""
    nodes = cast(list[Node], [stored.object for stored in cluster.objects(NODE)])
    pods = cast(list[Pod], [stored.object for stored in cluster.objects(POD)])
    return cache_check.differences(scheduler, nodes, pods)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
