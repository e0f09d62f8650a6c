"""A fake of the kubelets: the only mocked component, which does what a scheduler can observe.

Nodes are Ready when they are created; a bound pod runs; a terminating pod is removed at once.
"""

import asyncio
import contextlib
from typing import Any

from bayplan.adapters.live.client import STRATEGIC_MERGE_PATCH, ApiClient
from bayplan.ports import ApiError, OutcomeUnknownError
from tests.kit.manifests import node
from tests.live.mirror import Mirror, Object

WORKERS = 8
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "kubelet is posting ready status",
}


class Kubelet:
    """One object acts for all kubelets."""

    def __init__(self, client: ApiClient, mirror: Mirror) -> None:
        self._client = client
        self._waiting: asyncio.Queue[tuple[str, Object]] = asyncio.Queue()
        #: The handled changes: (uid, what).
        self._handled: set[tuple[str, str]] = set()
        mirror.on_pod.append(self._see)

    async def run(self) -> None:
        """Run until cancelled."""
        await asyncio.gather(*(self._work() for _ in range(WORKERS)))

    def _see(self, pod: Object) -> None:
        if not pod["spec"].get("nodeName"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._enqueue("remove", pod)
        elif pod["status"].get("phase") == "Pending":
            self._enqueue("start", pod)

    def _enqueue(self, what: str, pod: Object) -> None:
        key = (pod["metadata"]["uid"], what)
        if key not in self._handled:
            self._handled.add(key)
            self._waiting.put_nowait((what, pod))

    async def _work(self) -> None:
        while True:
            what, pod = await self._waiting.get()
            path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
            with contextlib.suppress(ApiError, OutcomeUnknownError):
                if what == "start":
                    await self._start(path, pod["metadata"]["uid"])
                else:
                    # A new pod may have the name of the terminating pod.
                    options = {"preconditions": {"uid": pod["metadata"]["uid"]}}
                    await self._client.request("DELETE", path, {"gracePeriodSeconds": 0, **options})

    async def _start(self, path: str, uid: str) -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await self._client.request(
            "PATCH",
            f"{path}/status",
            {"metadata": {"uid": uid}, "status": status},
            media_type=STRATEGIC_MERGE_PATCH,
        )


def ready_node(name: str, *, room: Object | None = None, **options: Any) -> Object:
    """A Ready node, with the options of tests.kit.manifests.node. ``room``: further resources."""
    labels = {"kubernetes.io/hostname": name, **options.pop("labels", {})}
    content = node(name, labels=labels, **{"cpu": 8, "memory": "32Gi", **options})
    offered = {**content["status"]["allocatable"], **(room or {})}
    status = {"allocatable": offered, "capacity": offered, "conditions": [READY]}
    return {**content, "status": status}


def large_nodes(count: int, cpu: int = 64) -> list[Object]:
    return [
        ready_node(f"n{number:02}", cpu=cpu, memory="256Gi", pods=500) for number in range(count)
    ]
