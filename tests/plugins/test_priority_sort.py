"""PrioritySort: the order of pods in the queue."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.testing import pod
from tests.plugins.row_kit import NO_HANDLE

PLUGIN = PrioritySort(None, NO_HANDLE)


def queued(name: str, *, priority: int = 0, at: float = 0.0, sequence: int = 0) -> QueuedPodInfo:
    return QueuedPodInfo(pod(name, priority=priority), at, sequence)


def order(*entries: QueuedPodInfo) -> list[str]:
    return [entry.pod.name for entry in sorted(entries, key=PLUGIN.key)]


ENTRIES = st.builds(
    lambda priority, at, sequence: queued("p", priority=priority, at=at, sequence=sequence),
    st.integers(-2, 2),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 2),
)


@given(ENTRIES, ENTRIES)
def test_the_key_has_the_same_order_as_upstreams_less(
    one: QueuedPodInfo, other: QueuedPodInfo
) -> None:
    less = one.priority > other.priority or (
        one.priority == other.priority and one.timestamp_seconds < other.timestamp_seconds
    )
    if less:
        assert PLUGIN.key(one) < PLUGIN.key(other)
    elif PLUGIN.key(one) < PLUGIN.key(other):
        tied = (one.priority, one.timestamp_seconds) == (other.priority, other.timestamp_seconds)
        assert tied
        assert one.sequence < other.sequence
