"""Ports for tests of what binds."""

from typing import Any

from bayplan.api.objects import ApiObject, Pod
from bayplan.ports import PatchPodStatus
from bayplan.state.pods import PodInfo


class ReplacedCalls:
    """A cluster with some of its calls replaced."""

    def __init__(self, inner: Any, **calls: Any) -> None:
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._inner, name)


class UnusedPort:
    """A BindPort that fails the test when it is called; a subclass overrides what a test calls."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise AssertionError("unexpected call of bind")

    async def get_pod(self, namespace: str, name: str) -> Pod:
        raise AssertionError("unexpected call of get_pod")

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        raise AssertionError("unexpected call of read")

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        raise AssertionError("unexpected call of patch")

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        raise AssertionError("unexpected call of create_object")

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        raise AssertionError("unexpected call of delete_object")

    async def patch_pod_status(self, patch: PatchPodStatus) -> None:
        raise AssertionError("unexpected call of patch_pod_status")

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        raise AssertionError("unexpected call of delete_pod")

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("unexpected call of sleep")
