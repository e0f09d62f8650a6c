"""Pod groups in the queue."""

from bayplan.api.pod_groups import GroupKey
from bayplan.queue.entry import QueuedPodGroupInfo, QueueGroup, State
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.queue.factories import Recorder, by_priority

KEY = GroupKey("scheduling.x-k8s.io", "default", "g")
PROFILE = "default-scheduler"
SHORT = QueueGroup(KEY, 0.0, is_complete=False)
COMPLETE = QueueGroup(KEY, 0.0, is_complete=True)


def member(name: str) -> PodInfo:
    """A pod that names the group."""
    return pod(name, labels={"scheduling.x-k8s.io/pod-group": "g"})


class GroupQueue:
    """A queue with one profile; ``answer`` is the group of every member."""

    def __init__(self) -> None:
        self.answer: QueueGroup | None = SHORT
        profile = QueueProfile((), {}, lambda _, __: None)
        settings = QueueSettings(by_priority, queue_group=self.queue_group)
        self.queue = SchedulingQueue({PROFILE: profile}, settings, lambda: 0.0, Recorder())

    def queue_group(self, pod: PodInfo) -> QueueGroup | None:
        return self.answer


def test_a_group_with_missing_members_is_not_tried() -> None:
    result = GroupQueue()
    result.queue.add(member("a"))
    assert result.queue.state_of(member("a").uid) is State.GATED
    assert result.queue.pop() is None
    assert result.queue.counts()["gated"] == 1


def test_members_are_tried_together_once_there_are_enough() -> None:
    result = GroupQueue()
    pods = [member("a"), member("b")]
    result.queue.add(pods[0])
    result.answer = COMPLETE
    result.queue.add(pods[1])
    popped = result.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    assert [queued.pod.name for queued in popped.members.values()] == ["a", "b"]
    assert result.queue.counts() == dict.fromkeys(result.queue.counts(), 0)


def test_a_group_with_met_quorum_leaves_its_waiting_members_alone() -> None:
    result = GroupQueue()
    pods = [member("a"), member("b")]
    for each in pods:
        result.queue.add(each)
    result.queue.groups.regroup(KEY, None)
    names = [popped.pod.name for _ in pods if (popped := result.queue.pop()) is not None]
    assert names == ["a", "b"]
    assert result.queue.groups.get(KEY) is None


def test_single_pods_join_their_group_when_it_appears() -> None:
    result = GroupQueue()
    result.answer = None
    pods = [member(name) for name in "abcdefgh"]
    for each in pods:
        result.queue.add(each)
    result.queue.groups.regroup(KEY, COMPLETE, pods)
    popped = result.queue.pop()
    assert isinstance(popped, QueuedPodGroupInfo)
    # Not in the order of a set, which differs from process to process.
    assert "".join(queued.pod.name for queued in popped.members.values()) == "abcdefgh"
    assert result.queue.pop() is None


def test_the_entry_of_a_group_leaves_with_its_last_member() -> None:
    result = GroupQueue()
    result.queue.add(member("a"))
    result.queue.delete(member("a"))
    assert result.queue.groups.get(KEY) is None
    assert result.queue.counts()["gated"] == 0
