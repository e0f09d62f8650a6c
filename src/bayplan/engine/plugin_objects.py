"""The objects that plugins look up: a change drops what was computed from objects of its kind.

Pods (as PodInfo) and nodes are among them only if a plugin lists their kind; all other kinds are.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

from bayplan.engine.reuse.cache import ResultCache
from bayplan.framework.runtime import Framework
from bayplan.objects.object_store import ObjectStore
from bayplan.queue.scheduling_queue import SchedulingQueue


@final
class PluginObjects:
    """Writes what listers read."""

    def __init__(
        self,
        objects: ObjectStore[Any],
        frameworks: Mapping[str, Framework],
        reuse: Mapping[str, ResultCache],
        queue: SchedulingQueue,
        *,
        listed_kinds: frozenset[str],
    ) -> None:
        """``frameworks``, ``reuse``: by profile."""
        self._objects = objects
        self._frameworks = frameworks
        self._reuse = reuse
        self._queue = queue
        #: The kinds that plugins look up.
        self.listed_kinds = listed_kinds

    def put(self, kind: str, content: Any) -> Any | None:
        """Store an object. Returns the previous version."""
        previous = self._objects.of(kind).put(content)
        self._forget(kind)
        return previous

    def put_all(self, kind: str, contents: Iterable[Any]) -> None:
        """Store several objects of a kind."""
        store = self._objects.of(kind)
        for content in contents:
            store.put(content)
        self._forget(kind)

    def remove(self, kind: str, content: Any) -> Any | None:
        """Remove an object. Returns the last version; None: there was none."""
        last = self._objects.of(kind).remove(content)
        if last is not None:
            self._forget(kind)
        return last

    def _forget(self, kind: str) -> None:
        for framework in self._frameworks.values():
            if kind in framework.concern_kinds:
                framework.renew_concerns()
                self._queue.renew_concerns()
        for cache in self._reuse.values():
            cache.forget_kind(kind)
