"""Who is nominated where: pods that expect room on a node which others still occupy.

A nomination comes from the pod's status.nominatedNodeName or from a failed attempt that is making
room; what an attempt decided is known here before the API server tells it back.
Upstream: backend/queue/nominator.go.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import final

from bayplan.framework.types import NominatingMode, Nomination
from bayplan.state.pods import PodInfo


@final
class Nominator:
    """framework.handle.PodNominator.

    ``newest`` gives the API's present version of a pod by uid, None if it is gone: such a pod, and
    one that is on a node, is not nominated. Without it the pods handed in are taken as they are.
    """

    def __init__(self, newest: Callable[[str], PodInfo | None] | None = None) -> None:
        self._newest = newest
        #: Node name → uid → the pod, in the order they were nominated.
        self._pods: dict[str, dict[str, PodInfo]] = {}
        #: Where pods are nominated, by uid.
        self.node_of: dict[str, str] = {}
        #: Uids of pods that are being tried together.
        self._in_flight = frozenset[str]()

    def add_nominated_pod(self, pod: PodInfo, nomination: Nomination | None = None) -> None:
        """Replace the pod's nomination. NOOP or None: by its status; OVERRIDE "": by none."""
        if pod.uid in self.node_of:
            self.delete_nominated_pod_if_exists(pod)
        node_name = pod.nominated_node_name
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
        """The pod changed; a nomination its status never knew of stays."""
        nomination: Nomination | None = None
        if not old.nominated_node_name and not new.nominated_node_name:
            node_name = self.node_of.get(old.uid, "")
            nomination = Nomination(NominatingMode.OVERRIDE, node_name)
        self.delete_nominated_pod_if_exists(old)
        self.add_nominated_pod(new, nomination)

    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]:
        """In the order they were nominated."""
        pods = self._pods.get(node_name, {}).values()
        return [pod for pod in pods if pod.uid not in self._in_flight]

    @contextmanager
    def without(self, uids: Iterable[str]) -> Generator[None]:
        """Pods that are tried together keep no room from one another: meanwhile they are not among
        `nominated_pods_for_node`. Upstream knows no requests of pods that are in flight."""
        self._in_flight = frozenset(uids)
        try:
            yield
        finally:
            self._in_flight = frozenset[str]()

    def nominated_nodes(self) -> list[str]:
        """Nodes that some pod is nominated to, sorted."""
        return sorted(self._pods)

    def nominated_node(self, pod: PodInfo) -> str:
        """Where the pod is nominated; "" for nowhere."""
        return self.node_of.get(pod.uid, "")

    def _is_waiting(self, pod: PodInfo) -> bool:
        newest = pod if self._newest is None else self._newest(pod.uid)
        return newest is not None and not newest.node_name
