"""Ports for tests of what binds."""

from collections.abc import Sequence
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


class RecordingPort(UnusedPort):
    """A BindPort that records its calls. Binding, status patches and deletions succeed.

    ``bind``: what the first ``failing_binds`` bindings raise. ``reads``: what `get_pod` returns or
    raises, in turn. ``failures``: by name of a pod, what its deletion raises.
    """

    def __init__(
        self,
        bind: Exception | None = None,
        reads: Sequence[Pod | Exception] = (),
        failing_binds: int = 99,
        **failures: Exception,
    ) -> None:
        self._bind, self._reads, self._failures = bind, list(reads), failures
        self._failing_binds = failing_binds
        #: (namespace/name of the pod, node)
        self.bound: list[tuple[str, str]] = []
        self.patches: list[PatchPodStatus] = []
        self.deleted: list[str] = []
        self.slept_seconds: list[float] = []
        #: Writes to pods in their order, as "patch NAME" and "delete NAME".
        self.writes: list[str] = []

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        self.bound.append((pod.key, node_name))
        if self._bind is not None and len(self.bound) <= self._failing_binds:
            raise self._bind

    async def get_pod(self, namespace: str, name: str) -> Pod:
        answer = self._reads.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert (answer.metadata.namespace, answer.metadata.name) == (namespace, name)
        return answer

    async def patch_pod_status(self, patch: PatchPodStatus) -> None:
        self.writes.append(f"patch {patch.name}")
        self.patches.append(patch)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self.writes.append(f"delete {name}")
        if name in self._failures:
            raise self._failures[name]
        self.deleted.append(f"{namespace}/{name}")

    async def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
