"""PrioritySort: the higher priority first, among equals the one that waits longer.

Upstream: plugins/queuesort.
"""

from typing import final

from bayplan.framework.plugin import QueueSortPlugin
from bayplan.framework.types import QueuedPodInfo


@final
class PrioritySort(QueueSortPlugin):
    """The order of activeQ."""

    name = "PrioritySort"

    def key(self, queued: QueuedPodInfo) -> tuple[int, float, int]:
        """Ours is total: at one moment, first come, first served."""
        priority = queued.pod.shape.spec.priority or 0
        return -priority, queued.timestamp_seconds, queued.sequence
