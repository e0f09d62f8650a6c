"""The cluster of one workload, as its operations use it: creation of objects, waits for pods.

The user of a benchmark acts between the turns of the scheduler, in the same thread. Nothing is
scheduled while objects are created, so their creation is not part of the time between the bindings.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, final

from bayplan.adapters.embedded.api_errors import AlreadyExistsError
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import NAMESPACE, POD, Pod
from bayplan.clock import Clock
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.keys import Content, ObjectKey, object_key
from bayplan.perf.pod_watch import PodWatch, Wait, has_labels
from bayplan.ports import ApiError

#: How many generated names are tried if they are taken.
_NAME_TRIES = 5
#: The time between two checks whether a wait can still end.
CHECK_SECONDS = 1.0
#: Longer than the longest backoff: a scheduler that is idle for this time, without new events,
#: stays idle.
IDLE_SECONDS_MAX = 30.0


class WorkloadFailed(Exception):
    """A workload failed before its end; the message has the reason."""


@final
class World:
    """One embedded cluster with its scheduler, and the activities around them."""

    def __init__(
        self, scheduler: Scheduler, cluster: EmbeddedCluster, clock: Clock, timeout_seconds: float
    ) -> None:
        """``timeout_seconds``: the longest wait for pods."""
        self.scheduler = scheduler
        self.cluster = cluster
        self.clock = clock
        self.watch = PodWatch()
        cluster.observe(self.watch.observe, (POD,))
        #: Namespace → pods for which a later barrier waits. Every namespace has an entry.
        self.awaited: dict[str, list[ObjectKey]] = {}
        self._timeout_seconds = timeout_seconds
        self._background: set[asyncio.Task[None]] = set()

    # ---- objects ----------------------------------------------------------------------------

    def create(self, content: Content) -> StoredObject:
        """Create an object. Raises WorkloadFailed."""
        tries = 1 if (content.get("metadata") or {}).get("name") else _NAME_TRIES
        while True:
            try:
                return self.cluster.create(content)
            except ApiError as problem:
                tries -= 1
                # If a generated name is taken, the server generates another one.
                if not tries or not isinstance(problem, AlreadyExistsError):
                    raise WorkloadFailed(f"cannot create: {problem}") from None

    def ensure_namespace(self, name: str) -> None:
        self.awaited.setdefault(name, [])
        if self.cluster.get(object_key(NAMESPACE, "", name)) is None:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def pods_in(self, namespace: str, labels: Mapping[str, str]) -> list[ObjectKey]:
        """Existing pods with these labels, in the order of their creation."""
        return [
            stored.key
            for stored in self.cluster.objects(POD)
            if stored.key.namespace == namespace
            and isinstance(stored.object, Pod)
            and has_labels(stored.object, labels)
        ]

    async def taken_in(self, node_name: str) -> None:
        """Wait until the scheduler knows a node, and with it all objects that were created
        before."""
        while self.scheduler.cache.node(node_name) is None:
            await asyncio.sleep(0)

    # ---- waiting ----------------------------------------------------------------------------

    async def reached(self, keys: Iterable[ObjectKey], stage: str) -> None:
        """Wait until these pods are bound or, for the stage Attempted, tried. Raises
        WorkloadFailed."""
        wait = Wait(keys, stage)
        for key in list(wait.outstanding):
            wait.pod_changed(key, self._pod(key), False)
        self.watch.join(wait)
        try:
            await self._patiently(wait, stage)
        finally:
            self.watch.leave(wait)

    async def _patiently(self, wait: Wait, stage: str) -> None:
        begin = idle_since = self.clock.now()
        bound_count = self.watch.bound_count
        while not wait.done.done():
            await asyncio.wait((wait.done,), timeout=CHECK_SECONDS)
            now = self.clock.now()
            if self.watch.bound_count != bound_count or not self._is_idle():
                bound_count, idle_since = self.watch.bound_count, now
            if wait.done.done():
                return
            if now - begin >= self._timeout_seconds:
                raise WorkloadFailed(self._waiting(wait, stage, f"after {now - begin:.0f} s"))
            if now - idle_since >= IDLE_SECONDS_MAX:
                raise WorkloadFailed(self._waiting(wait, stage, "and nothing is left to happen"))

    def _is_idle(self) -> bool:
        nothing_moves = not self._background and not self.cluster.terminating_count
        return nothing_moves and self.scheduler.only_retries_wait

    def _waiting(self, wait: Wait, stage: str, when: str) -> str:
        verb = "bound" if stage == "Scheduled" else "tried"
        key = next(iter(wait.outstanding))
        pod = self._pod(key)
        messages = [
            one.message for one in (pod.status.conditions or () if pod else ()) if one.message
        ]
        example = f"{key.namespace}/{key.name}: {messages[-1] if messages else 'not tried yet'}"
        count = len(wait.outstanding)
        pods = f"{count:,} pods are" if count > 1 else "a pod is"
        return f"{pods} not {verb} {when}; for example {example}"

    def _pod(self, key: ObjectKey) -> Pod | None:
        stored = self.cluster.get(key)
        return stored.object if stored is not None and isinstance(stored.object, Pod) else None

    # ---- beside the operations --------------------------------------------------------------

    def begin(
        self, work: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]
    ) -> None:
        """Start work that runs beside the operations. ``failed``: called with its exception."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._background.discard(task)
            problem = None if task.cancelled() else task.exception()
            if problem is not None:
                failed(problem)

        task.add_done_callback(ended)

    async def end(self) -> None:
        """Cancel the work beside the operations."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
