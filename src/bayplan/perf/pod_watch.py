"""Watches pods for waits, measurements and steady states.

One observer of the embedded API server; listeners join it for a while. A listener is called during
the change: without polling or delay.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol, final

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import Pod
from bayplan.clock import Clock
from bayplan.objects.keys import ObjectKey

ATTEMPTED = "Attempted"
SCHEDULED = "Scheduled"


class Listener(Protocol):
    def pod_changed(self, key: ObjectKey, pod: Pod | None, is_news: bool) -> None:
        """``pod``: None: the pod was deleted. ``is_news``: whether the change is its binding."""
        ...


@final
class PodWatch:
    """An observer that passes changes of pods on to listeners."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        #: The number of pods that were bound so far.
        self.bound_count = 0

    def join(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        if changed is None or not isinstance(changed.object, Pod):
            return
        pod = after.object if after is not None else None
        assert pod is None or isinstance(pod, Pod)
        is_news = is_bound(pod) and not is_bound(before.object if before is not None else None)
        self.bound_count += is_news
        for listener in self._listeners:
            listener.pod_changed(changed.key, pod, is_news)


def is_bound(pod: object) -> bool:
    return isinstance(pod, Pod) and bool(pod.spec.node_name)


def is_attempted(pod: Pod) -> bool:
    """Whether the scheduler has tried the pod: then the pod has its condition, as upstream."""
    return any(one.type == "PodScheduled" for one in pod.status.conditions or ())


def has_labels(pod: Pod, labels: Mapping[str, str]) -> bool:
    own = pod.metadata.labels or {}
    return all(own.get(name) == value for name, value in labels.items())


@final
class Wait:
    """Waits until each of some pods has reached a state. A deleted pod needs no wait."""

    def __init__(self, keys: Iterable[ObjectKey], stage: str) -> None:
        self.outstanding = dict.fromkeys(keys)
        self._stage = stage
        self.done = asyncio.get_running_loop().create_future()
        self._tell()

    def pod_changed(self, key: ObjectKey, pod: Pod | None, is_news: bool) -> None:
        if key in self.outstanding and (pod is None or self.is_there(pod)):
            del self.outstanding[key]
            self._tell()

    def is_there(self, pod: Pod) -> bool:
        return is_bound(pod) or (self._stage == ATTEMPTED and is_attempted(pod))

    def _tell(self) -> None:
        if not self.outstanding and not self.done.done():
            self.done.set_result(None)


@final
class BindingLog:
    """When pods of some namespaces, with some labels, were bound, and where."""

    def __init__(self, clock: Clock, namespaces: Iterable[str], labels: Mapping[str, str]) -> None:
        self._clock = clock
        self._namespaces = frozenset(namespaces)
        self._labels = labels
        self.start_seconds = clock.now()
        self.times: list[float] = []
        self.nodes: set[str] = set()

    def pod_changed(self, key: ObjectKey, pod: Pod | None, is_news: bool) -> None:
        if not is_news or key.namespace not in self._namespaces:
            return
        assert pod is not None
        if has_labels(pod, self._labels):
            self.times.append(self._clock.now())
            self.nodes.add(pod.spec.node_name or "")


@final
class NewlyBound:
    """The pods of one namespace that were bound and not taken out yet."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._keys: list[ObjectKey] = []
        self.some = asyncio.Event()

    def pod_changed(self, key: ObjectKey, pod: Pod | None, is_news: bool) -> None:
        if is_news and key.namespace == self._namespace:
            self._keys.append(key)
            self.some.set()

    def take(self) -> list[ObjectKey]:
        taken, self._keys = self._keys, []
        self.some.clear()
        return taken
