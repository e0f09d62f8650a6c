"""Objects that are being deleted and that stay because they have finalizers.

A pod keeps its room on its node until its finalizers are gone, and a node keeps its pods. Nothing
in a simulation removes a finalizer that it does not know, so notes name the objects that are left.
"""

from typing import final

from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject
from bayplan.objects.keys import ObjectKey


@final
class PendingDeletions:
    """Follows the objects of one cluster. It must see every change, from the first."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._objects: dict[ObjectKey, StoredObject] = {}
        cluster.observe(self._observe, ignored_kinds=(EVENT,), ignored_changes=tuple(PodChange))

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is not None:
            if after.object.metadata.deletion_timestamp is not None:
                self._objects[after.key] = after
        elif before is not None:
            self._objects.pop(before.key, None)

    def objects(self) -> list[StoredObject]:
        return list(self._objects.values())

    def notes(self) -> list[str]:
        """A note for each kind and each set of finalizers."""
        groups: dict[tuple[str, tuple[str, ...], bool], list[StoredObject]] = {}
        for stored in self._objects.values():
            finalizers: list[str] = stored.content["metadata"].get("finalizers") or []
            if finalizers:
                group = (stored.key.kind, tuple(finalizers), stored.placed_pod is not None)
                groups.setdefault(group, []).append(stored)
        return [_note(finalizers, group) for (_, finalizers, _), group in groups.items()]


def _note(finalizers: tuple[str, ...], group: list[StoredObject]) -> str:
    first, more = group[0], len(group) - 1
    names = f"{first.key} and {more:,} more are" if more else f"{first.key} is"
    stay = "stay" if more else "stays"
    if (pod := first.placed_pod) is not None:
        stay = "keep their room" if more else f"keeps its room on {pod.spec.node_name}"
    they = "they have" if more else "it has"
    plural = "s" if len(finalizers) > 1 else ""
    return f"{names} being deleted and {stay}: {they} the finalizer{plural} {', '.join(finalizers)}"
