"""A port that records all objects that were delivered to one scheduler.

The picture consists of what the port delivered, listing by listing and event by event. It contains
nothing that the scheduler derived. The picture is exact at each decision: a reflector passes on an
event in the step of the event loop in which it receives it, and the runner handles all events
before it tries a pod.

A writing call that has begun continues when its scheduler stops, as a request on the wire does.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar, final

from bayplan import ports
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import ApiObject, Pod
from bayplan.state.pods import PodInfo
from tests.sim.brute_force import (
    POD,
    Content,
    Key,
    Picture,
    Placed,
    is_terminating,
    key_of,
    uid_of,
)
from tests.sim.brute_force_storage import allocated_devices
from tests.sim.silent_releases import SilentReleases

T = TypeVar("T")


@final
class Contents:
    """An observer of the API server: the JSON of every version of every object."""

    def __init__(self) -> None:
        self._by_version: dict[str, Content] = {}

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is not None:
            self._by_version[str(after.version)] = after.content

    def of(self, api_object: ApiObject) -> Content:
        return self._by_version[api_object.metadata.resource_version or ""]


@final
class DeliveringPort:
    """ports.Cluster around another one, for one scheduler."""

    def __init__(self, inner: ports.Cluster, contents: Contents, releases: SilentReleases) -> None:
        self._inner = inner
        self._releases = releases
        self._contents = contents
        self._objects: dict[str, dict[Key, Content]] = {}
        #: Pods with a node that their delivered objects do not have yet, by uid. ``assumed``: the
        #: scheduler's decisions; ``_acknowledged``: bindings that the API acknowledged.
        self.assumed: dict[str, Placed] = {}
        self._acknowledged: dict[str, Placed] = {}
        #: Called with the content of each pod that the scheduler deletes, before the request.
        self.on_delete_pod: Callable[[Content], None] | None = None
        #: Kinds that were listed at least once.
        self.listed: set[str] = set()

    # ---- the picture ------------------------------------------------------------------------

    def picture(self) -> Picture:
        return Picture.of(self._objects, {**self.assumed, **self._acknowledged})

    def content(self, kind: str, key: Key) -> Content | None:
        return self._objects.get(kind, {}).get(key)

    def _store(self, kind: str, api_object: ApiObject) -> None:
        content = self._contents.of(api_object)
        key, objects = key_of(content), self._objects.setdefault(kind, {})
        before = objects.get(key)
        if before is not None and uid_of(before) != uid_of(content):
            self._remove(kind, key)
            before = None
        if before is not None and _version_of(before) > _version_of(content):
            return  # the answer to a patch was newer
        if kind in self.listed:
            self._releases.delivered(kind, before, content, self.picture)
        objects[key] = content
        is_bound = kind == POD and content["spec"].get("nodeName")
        if kind == POD and (is_bound or is_terminating(content)):
            self._forget(content)

    def _remove(self, kind: str, key: Key) -> None:
        removed = self.content(kind, key)
        if removed is None:
            return
        self._releases.delivered(kind, removed, None, self.picture)
        del self._objects[kind][key]
        if kind == POD:
            self._forget(removed)

    def _forget(self, pod: Content) -> None:
        """Drop the assumed node: the delivered object of the pod now has the current state."""
        self.assumed.pop(uid_of(pod), None)
        self._acknowledged.pop(uid_of(pod), None)

    def _answered(self, kind: str, api_object: ApiObject) -> None:
        """Store an answer: the scheduler reads the devices of a claim from the answer to its patch,
        and the lack of devices from a read."""
        current = self.content(
            kind, (api_object.metadata.namespace or "", api_object.metadata.name)
        )
        if current is not None and uid_of(current) == api_object.metadata.uid:
            self._store(kind, api_object)

    # ---- reading ----------------------------------------------------------------------------

    async def list(self, kind: str) -> ports.Listing:
        listing = await self._inner.list(kind)
        there = {key_of(self._contents.of(api_object)) for api_object in listing.objects}
        for key in [key for key in self._objects.get(kind, {}) if key not in there]:
            self._remove(kind, key)
        for api_object in listing.objects:
            self._store(kind, api_object)
        self.listed.add(kind)
        return listing

    async def watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        async for event in self._inner.watch(kind, resource_version):
            if event.type is ports.EventType.DELETED:
                meta = event.object.metadata
                self._remove(kind, (meta.namespace or "", meta.name))
            else:
                self._store(kind, event.object)
            yield event

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return await self._inner.get_pod(namespace, name)

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        api_object = await self._inner.read(kind, namespace, name)
        if kind == RESOURCE_CLAIM and not allocated_devices(self._contents.of(api_object)):
            self._answered(kind, api_object)
        return api_object

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    # ---- writing ----------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await _on_the_wire(lambda: self._inner.bind(pod, node_name))
        content = self.content(POD, (pod.namespace, pod.name))
        if content is not None and uid_of(content) == pod.uid and not _has_node(content):
            self._acknowledged[pod.uid] = Placed(content, node_name)

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        inner = self._inner
        patched = await _on_the_wire(lambda: inner.patch(kind, namespace, name, patch, subresource))
        # A deallocation is known when the watch delivers it.
        if kind == RESOURCE_CLAIM and allocated_devices(self._contents.of(patched)):
            self._answered(kind, patched)
        return patched

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        return await _on_the_wire(lambda: self._inner.create_object(kind, content))

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        await _on_the_wire(lambda: self._inner.delete_object(kind, namespace, name, uid))

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:
        await _on_the_wire(lambda: self._inner.patch_pod_status(patch))

    async def patch_group_status(self, patch: ports.PatchPodGroupStatus) -> None:
        await _on_the_wire(lambda: self._inner.patch_group_status(patch))

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        victim = self.content(POD, (namespace, name))
        if self.on_delete_pod is not None and victim is not None and uid_of(victim) == uid:
            self.on_delete_pod(victim)
        await _on_the_wire(lambda: self._inner.delete_pod(namespace, name, uid))

    async def create_event(self, event: ports.EmitEvent) -> None:
        await _on_the_wire(lambda: self._inner.create_event(event))


def _version_of(content: Content) -> int:
    return int(content["metadata"]["resourceVersion"])


def _has_node(pod: Content) -> bool:
    return bool(pod["spec"].get("nodeName"))


async def _on_the_wire(call: Callable[[], Awaitable[T]]) -> T:
    """Finish the call even if the caller is cancelled."""

    async def outcome() -> tuple[T | None, Exception | None]:
        try:
            return await call(), None
        except Exception as problem:  # noqa: BLE001 - raised again below, if the caller still waits
            return None, problem

    request = asyncio.get_running_loop().create_task(outcome(), name="a request on the wire")
    answer, problem = await asyncio.shield(request)
    if problem is not None:
        raise problem
    return answer  # type: ignore[return-value]  # an answer without a problem
