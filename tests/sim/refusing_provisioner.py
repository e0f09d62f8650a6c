"""A provisioner that refuses by chance: it removes the scheduler's node from a claim.

A provisioner does so when it cannot provision a volume for the node, for instance without free
capacity. The scheduler then has to choose a node again.

Upstream: sig-storage-lib-external-provisioner, rescheduleProvisioning.
"""

from collections import Counter
from collections.abc import Callable
from typing import final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM
from bayplan.api.storage_objects import SELECTED_NODE
from bayplan.ports import ApiError
from bayplan.rng import Stream
from bayplan.sim.loop import running_loop
from tests.sim.brute_force import Content


@final
class RefusingProvisioner:
    """An observer of the API server. It acts before the volume controller if it is drawn."""

    def __init__(self, cluster: EmbeddedCluster, random: Stream, chance: float) -> None:
        self._cluster = cluster
        self._random = random
        self._chance = chance
        self.is_calm: Callable[[], bool] = lambda: False
        self.counts: Counter[str] = Counter()
        cluster.observe(self._observe, (PERSISTENT_VOLUME_CLAIM,))

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        is_selected = (
            before is not None and after is not None and _node(after) and not _node(before)
        )
        if is_selected and not self.is_calm() and self._random.random() < self._chance:
            assert after is not None
            running_loop().call_soon(self._refuse, after)

    def _refuse(self, selected: StoredObject) -> None:
        stored = self._cluster.get(selected.key)
        if stored is None or stored.content["spec"].get("volumeName") or not _node(stored):
            return
        meta = stored.content["metadata"]
        notes = {key: text for key, text in meta["annotations"].items() if key != SELECTED_NODE}
        try:
            self._cluster.update({**stored.content, "metadata": {**meta, "annotations": notes}})
        except ApiError:
            return
        self.counts["provisioner refused a node"] += 1


def _node(stored: StoredObject) -> str:
    content: Content = stored.content
    return (content["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
