"""Pod groups in the queue."""

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.queued_group import QueuedPodGroupInfo, QueueGroup
from bayplan.queue.entry import State
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.queue.factories import Recorder, by_priority

KEY = GroupKey("scheduling.x-k8s.io", "default", "g")
PROFILE = "default-scheduler"
SHORT = QueueGroup(KEY, 0.0, is_complete=False)
COMPLETE = QueueGroup(KEY, 0.0, is_complete=True)


class GroupQueue:
    """What the queue is told of every pod."""

    def __init__(self) -> None:
        self.answer: QueueGroup | None = SHORT
        profile = QueueProfile((), {}, lambda _, __: None)
        settings = QueueSettings(by_priority, queue_group=self.queue_group)
        self.queue = SchedulingQueue({PROFILE: profile}, settings, lambda: 0.0, Recorder())

    def queue_group(self, pod: PodInfo) -> QueueGroup | None:
        return self.answer


def test_a_group_with_missing_members_is_not_tried() -> None:
    told = GroupQueue()
    told.queue.add(pod("a"))
    assert told.queue.state_of(pod("a").uid) is State.GATED
    assert told.queue.pop() is None
    assert told.queue.counts()["gated"] == 1


def test_members_are_tried_together_once_there_are_enough() -> None:
    told = GroupQueue()
    pods = [pod("a"), pod("b")]
    told.queue.add(pods[0])
    told.answer = COMPLETE
    told.queue.add(pods[1])
    popped = told.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    assert [queued.pod.name for queued in popped.members.values()] == ["a", "b"]
    assert told.queue.counts() == dict.fromkeys(told.queue.counts(), 0)


def test_a_group_with_met_quorum_leaves_its_waiting_members_alone() -> None:
    told = GroupQueue()
    pods = [pod("a"), pod("b")]
    for each in pods:
        told.queue.add(each)
    told.queue.groups.regroup(KEY, None)
    names = [popped.pod.name for _ in pods if (popped := told.queue.pop()) is not None]
    assert names == ["a", "b"]
    assert told.queue.groups.get(KEY) is None


def test_single_pods_join_their_group_when_it_needs_them() -> None:
    told = GroupQueue()
    told.answer = None
    pods = [pod(name) for name in "abcdefgh"]
    for each in pods:
        told.queue.add(each)
    told.queue.groups.regroup(KEY, COMPLETE, pods)
    popped = told.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    # Not in the order of a set, which is another one in each process.
    assert "".join(queued.pod.name for queued in popped.members.values()) == "abcdefgh"
    assert told.queue.pop() is None


def test_the_last_member_takes_the_entry_along() -> None:
    told = GroupQueue()
    told.queue.add(pod("a"))
    told.queue.delete(pod("a"))
    assert told.queue.groups.get(KEY) is None
    assert told.queue.counts()["gated"] == 0
