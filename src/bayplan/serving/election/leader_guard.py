"""A cluster that refuses writes as soon as this replica does not hold the lease.

The lease may end between a decision and its request, because the process was suspended or the API
server was slow. So every write checks the lease at the last moment. Reads are always allowed: a
standby keeps its caches current.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, final

from bayplan import ports
from bayplan.api.objects import ApiObject, Pod
from bayplan.state.pods import PodInfo


class NotLeaderError(ports.ApiError):
    """This replica may not write; nothing was sent."""

    def __init__(self) -> None:
        super().__init__(503, "NotLeader", "this replica does not hold the lease any more")


@final
class FencedCluster:
    """ports.Cluster whose writes are refused unless ``may_act``."""

    def __init__(self, cluster: ports.Cluster, may_act: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._may_act = may_act

    async def sleep(self, seconds: float) -> None:
        await self._cluster.sleep(seconds)

    async def list(self, kind: str) -> ports.Listing:
        return await self._cluster.list(kind)

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        return self._cluster.watch(kind, resource_version)

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return await self._cluster.get_pod(namespace, name)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        self._check()
        await self._cluster.bind(pod, node_name)

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        return await self._cluster.read(kind, namespace, name)

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        self._check()
        return await self._cluster.patch(kind, namespace, name, patch, subresource)

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        self._check()
        return await self._cluster.create_object(kind, content)

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self._check()
        await self._cluster.delete_object(kind, namespace, name, uid)

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:
        self._check()
        await self._cluster.patch_pod_status(patch)

    async def patch_group_status(self, patch: ports.PatchPodGroupStatus) -> None:
        self._check()
        await self._cluster.patch_group_status(patch)

    async def create_event(self, event: ports.EmitEvent) -> None:
        self._check()
        await self._cluster.create_event(event)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self._check()
        await self._cluster.delete_pod(namespace, name, uid)

    def _check(self) -> None:
        """Raises NotLeaderError."""
        if not self._may_act():
            raise NotLeaderError


def fenced_ask(ask: ports.Ask, may_act: Callable[[], bool]) -> ports.Ask:
    """Call extenders only as leader, because they bind pods and reserve resources."""

    async def guarded_ask(question: ports.AskExtender) -> ports.ExtenderAnswer:
        if not may_act():
            raise NotLeaderError
        return await ask(question)

    return guarded_ask
