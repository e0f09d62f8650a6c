"""What placed pods take of the nodes, from the API server's objects alone.

Computed by other means than the scheduler's columns: what one gets wrong, the other shows.
"""

from collections import Counter, defaultdict
from typing import final

from bayplan.adapters.object_store import Stored
from bayplan.api.objects import Node, Pod, is_terminal
from bayplan.api.pod_requests import PODS, amounts, requested
from bayplan.sim.result import NodeUsage, Usage


@final
class Occupancy:
    """An observer of the embedded API server. Pods that have ended take nothing."""

    def __init__(self) -> None:
        #: Per node there is: what it has.
        self.allocatable: dict[str, dict[str, int]] = {}
        #: Per node, whether it is there or not: what the pods on it take.
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        #: What each placed pod takes, by its uid.
        self._taken: dict[str, dict[str, int]] = {}
        self._total: Counter[str] = Counter()
        self._peak: Counter[str] = Counter()

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            self._node(changed.object, after is not None)
        elif isinstance(changed.object, Pod):
            self._pod(placed_pod(before), placed_pod(after))

    def taken_by(self, pod: Pod) -> dict[str, int]:
        """What a placed pod takes: resource → amount, itself among them."""
        return self._taken[_uid(pod)]

    def usage(self) -> tuple[Usage, ...]:
        """Each resource that a node has, over all nodes; sorted by name."""
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
        """Each node that is there, in the order of their names."""
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
            taken = self._taken[_uid(new)] = {**requested(new), PODS: 1}
            self.used[new.spec.node_name or ""].update(taken)
            self._total.update(taken)
            for resource in taken:
                self._peak[resource] = max(self._peak[resource], self._total[resource])


def placed_pod(stored: Stored | None) -> Pod | None:
    """The pod that is on a node and has not ended."""
    if stored is None or not isinstance(stored.object, Pod):
        return None
    pod = stored.object
    return pod if pod.spec.node_name and not is_terminal(pod) else None


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or ""
