"""The cluster as an administrator sees it: pods and nodes, followed by a watch of the tests.

The objects are dictionaries in their newest state. Every change wakes all waiting tasks.
"""

import asyncio
import collections
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.adapters.live.client import ApiClient
from bayplan.ports import ApiError, OutcomeUnknownError, WatchDroppedError

Object = dict[str, Any]
DEADLINE_SECONDS = 120.0
RETRY_SECONDS = 0.1
LOOK_AGAIN_SECONDS = 0.1


class Mirror:
    """Pods and nodes by namespace and name."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.pods: dict[tuple[str, str], Object] = {}
        self.nodes: dict[tuple[str, str], Object] = {}
        #: Called with each new state of a pod.
        self.on_pod: list[Callable[[Object], None]] = []
        self._changed = asyncio.Condition()
        #: uid → all nodes that the pod has ever had.
        self.nodes_of: dict[str, set[str]] = collections.defaultdict(set)

    async def follow(self) -> None:
        """Follow the cluster until cancelled, through all failures of the API server."""
        await asyncio.gather(
            self._follow("/api/v1/pods", self.pods), self._follow("/api/v1/nodes", self.nodes)
        )

    async def _follow(self, path: str, objects: dict[tuple[str, str], Object]) -> None:
        while True:
            try:
                listed = await self._client.get(path)
                objects.clear()
                for content in listed["items"]:
                    self._store(objects, content)
                await self._tell()
                await self._watch(path, objects, listed["metadata"]["resourceVersion"])
            except (ApiError, OutcomeUnknownError, WatchDroppedError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch(self, path: str, objects: dict[tuple[str, str], Object], version: str) -> None:
        remainder = b""
        query = f"{path}?watch=1&resourceVersion={version}"
        async for piece in self._client.stream(query, DEADLINE_SECONDS):
            *lines, remainder = (remainder + piece).split(b"\n")
            for line in lines:
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] == "DELETED":
                    objects.pop(_key(event["object"]), None)
                else:
                    self._store(objects, event["object"])
            await self._tell()

    def _store(self, objects: dict[tuple[str, str], Object], content: Object) -> None:
        objects[_key(content)] = content
        if objects is self.pods:
            if node_name := content["spec"].get("nodeName"):
                self.nodes_of[content["metadata"]["uid"]].add(node_name)
            for tell in self.on_pod:
                tell(content)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(
        self, is_so: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS
    ) -> None:
        """Wait until a condition about the mirror or a scheduler holds. The condition is evaluated
        after every change, and after LOOK_AGAIN_SECONDS without a change."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                while not is_so():
                    await self._next_change()
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {what}") from None

    async def _next_change(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await self._changed.wait()


def _key(content: Object) -> tuple[str, str]:
    return content["metadata"].get("namespace", ""), content["metadata"]["name"]
