"""Objects that are being deleted and that stay, because of finalizers or because no kubelet ends
them.

A pod keeps its room on its node until its finalizers are gone, and a node keeps its pods. Nothing
in a simulation removes a finalizer that it does not know, so notes name the objects that are left.
A pod also stays on a node whose kubelet does not answer, until the node answers again, is marked as
out of service, or is deleted.
"""

from itertools import islice
from typing import final

from bayplan.adapters.embedded.api_server import finalizers_of
from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from bayplan.objects.keys import ObjectKey

#: The finalizer that its controller removes when nothing uses the object.
_USED = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, RESOURCE_CLAIM)
#: The claims and volumes that have a note of their own.
_NAMED_MAX = 5


@final
class PendingDeletions:
    """Follows the objects of one cluster. It must see every change, from the first."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._server = cluster.server
        self._objects: dict[ObjectKey, StoredObject] = {}
        #: The claims and volumes that were being deleted at the beginning, and those that are gone.
        self._begun: set[ObjectKey] = set()
        self._released: dict[ObjectKey, None] = {}
        cluster.observe(self._observe, ignored_kinds=(EVENT,), ignored_changes=tuple(PodChange))

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if before is None and after is not None and finalizers_of(after):
            if after.object.metadata.deletion_timestamp is not None and after.key.kind in _USED:
                self._begun.add(after.key)
        elif after is None and before is not None and before.key in self._begun:
            self._released[before.key] = None
        if after is not None:
            if after.object.metadata.deletion_timestamp is not None:
                self._objects[after.key] = after
        elif before is not None:
            self._objects.pop(before.key, None)

    def objects(self) -> list[StoredObject]:
        return list(self._objects.values())

    def notes(self) -> list[str]:
        """A note for each kind and each reason."""
        groups: dict[tuple[str, str, tuple[str, ...], bool], list[StoredObject]] = {}
        for stored in self._objects.values():
            finalizers = finalizers_of(stored)
            node = "" if finalizers else self._server.unreachable_node(stored)
            if finalizers or node:
                is_placed = stored.placed_pod is not None
                group = (stored.key.kind, node, tuple(finalizers), is_placed)
                groups.setdefault(group, []).append(stored)
        gone = [
            f"{key} was being deleted in the input, and nothing uses it: its controller has removed"
            " its finalizers, and it is gone"
            for key in islice(self._released, _NAMED_MAX)
        ]
        return [*gone, *(_note(node, names, of) for (_, node, names, _), of in groups.items())]


def _note(node: str, finalizers: tuple[str, ...], group: list[StoredObject]) -> str:
    first, more = group[0], len(group) - 1
    names = f"{first.key} and {more:,} more are" if more else f"{first.key} is"
    stay = "stay" if more else "stays"
    if (pod := first.placed_pod) is not None:
        stay = "keep their room" if more else f"keeps its room on {pod.spec.node_name}"
    if node:
        return f"{names} being deleted and {stay}: the kubelet of {node} does not answer"
    they = "they have" if more else "it has"
    plural = "s" if len(finalizers) > 1 else ""
    return f"{names} being deleted and {stay}: {they} the finalizer{plural} {', '.join(finalizers)}"
