"""The outside of a sample cluster: what PreBind and Bind write to in tests."""

from typing import Any, final

import msgspec

from bayplan.adapters.json_merge import merge_patch
from bayplan.api.objects import ApiObject, Pod, decode
from bayplan.ports import PatchPodStatus
from bayplan.state.object_store import ObjectStore
from bayplan.state.pods import PodInfo


@final
class SamplePort:
    """ports.BindPort of a cluster in which everything succeeds at once."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._bound: dict[tuple[str, str], Pod] = {}
        #: What was written about pods: statuses, and the keys of those that were told to go.
        self.patches: list[PatchPodStatus] = []
        self.deleted: list[str] = []

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        self._bound[(pod.namespace, pod.name)] = pod.on_node(node_name).pod

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return self._bound[(namespace, name)]

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        found = self._objects.of(kind).get(name, namespace)
        assert found is not None, f"there is no {kind} {namespace}/{name}"
        return found

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        old = await self.read(kind, namespace, name)
        return self._put(kind, merge_patch(msgspec.to_builtins(old), patch))

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        meta = {"name": "created", "uid": "created", **content.get("metadata", {})}
        return self._put(kind, {**content, "metadata": meta})

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self._objects.of(kind).remove(await self.read(kind, namespace, name))

    async def patch_pod_status(self, patch: PatchPodStatus) -> None:
        self.patches.append(patch)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self.deleted.append(f"{namespace}/{name}")

    def _put(self, kind: str, content: dict[str, Any]) -> ApiObject:
        found = decode(kind, content)
        self._objects.of(kind).put(found)
        return found

    async def sleep(self, seconds: float) -> None: ...
