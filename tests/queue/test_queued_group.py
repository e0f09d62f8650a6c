"""A group in the queue."""

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.testing import pod


def test_a_queue_sort_compares_a_group_like_a_pod() -> None:
    key = GroupKey("scheduling.x-k8s.io", "default", "g")
    first = QueuedPodInfo(pod("a", priority=7), 5.0)
    group = QueuedPodGroupInfo(first.pod, 1.0, key=key, members={first.pod.uid: first})
    assert (group.priority, group.timestamp_seconds) == (7, 1.0)
