"""Nominated pods: pods that wait for a node whose other pods are still terminating.

A nomination comes from the pod's status.nominatedNodeName, or from a failed attempt that preempts.
The nomination of an attempt counts at once, before the API server reports it.
Upstream: backend/queue/nominator.go.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import final

from bayplan.framework.types import NominatingMode, Nomination
from bayplan.state.pods import PodInfo


@final
class Nominator:
    """The PodNominator (framework/handle.py).

    ``newest``: uid → the version of the pod in the cache; None: the pod is deleted. A deleted pod
    and a pod on a node are not nominated. Without ``newest``, the given version of a pod counts.
    """

    def __init__(self, newest: Callable[[str], PodInfo | None] | None = None) -> None:
        self._newest = newest
        #: Node name → uid → pod, in the order of the nominations.
        self._pods: dict[str, dict[str, PodInfo]] = {}
        #: Uid → name of the nominated node.
        self.node_of: dict[str, str] = {}
        #: Uids of the pods of the present attempt at a group.
        self._in_flight = frozenset[str]()

    def add_nominated_pod(self, pod: PodInfo, nomination: Nomination | None = None) -> None:
        """Replace the pod's nomination. With NOOP or None, the status of the pod has the new one.
        OVERRIDE with "" removes the nomination."""
        if pod.uid in self.node_of:
            self.delete_nominated_pod_if_exists(pod)
        node_name = pod.status.nominated_node_name or ""
        if nomination is not None and nomination.mode is NominatingMode.OVERRIDE:
            node_name = nomination.node_name
        if node_name and self._is_waiting(pod):
            self.node_of[pod.uid] = node_name
            self._pods.setdefault(node_name, {})[pod.uid] = pod

    def delete_nominated_pod_if_exists(self, pod: PodInfo) -> None:
        node_name = self.node_of.pop(pod.uid, None)
        if node_name is None:
            return
        pods = self._pods[node_name]
        del pods[pod.uid]
        if not pods:
            del self._pods[node_name]

    def update_nominated_pod(self, old: PodInfo, new: PodInfo) -> None:
        """Follow a change of the pod. A nomination that was never in its status stays."""
        nomination: Nomination | None = None
        if not (old.status.nominated_node_name or new.status.nominated_node_name):
            node_name = self.node_of.get(old.uid, "")
            nomination = Nomination(NominatingMode.OVERRIDE, node_name)
        self.delete_nominated_pod_if_exists(old)
        self.add_nominated_pod(new, nomination)

    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]:
        """The pods that are nominated to the node, in the order of the nominations."""
        pods = self._pods.get(node_name, {}).values()
        return [pod for pod in pods if pod.uid not in self._in_flight]

    def nominated_ahead(self, pod: PodInfo) -> dict[str, list[PodInfo]]:
        """By node name: the other pods of equal or higher priority that are nominated there, in the
        order of the nominations. Nodes without such pods are left out."""
        priority, uid, ahead = pod.priority, pod.uid, dict[str, list[PodInfo]]()
        for name, pods in self._pods.items():
            for other in pods.values():
                # This is `PodInfo.priority`, without a call for each nominated pod.
                is_ahead = (other.shape.spec.priority or 0) >= priority and other.uid != uid
                if is_ahead and other.uid not in self._in_flight:
                    ahead.setdefault(name, []).append(other)
        return ahead

    @contextmanager
    def without(self, uids: Iterable[str]) -> Generator[None]:
        """Leave pods out of `nominated_pods_for_node` while they are tried together.

        They must not reserve room from one another. Upstream has no nominations of pods in flight.
        """
        self._in_flight = frozenset(uids)
        try:
            yield
        finally:
            self._in_flight = frozenset[str]()

    def nominated_nodes(self) -> list[str]:
        """The names of the nodes with nominated pods, sorted."""
        return sorted(self._pods)

    def nominated_node(self, pod: PodInfo) -> str:
        """The node to which the pod is nominated; "" for none."""
        return self.node_of.get(pod.uid, "")

    def _is_waiting(self, pod: PodInfo) -> bool:
        newest = pod if self._newest is None else self._newest(pod.uid)
        return newest is not None and not newest.node_name
