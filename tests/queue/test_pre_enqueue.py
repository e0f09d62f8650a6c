"""PreEnqueue."""

from typing import Any

import pytest

from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import Code, Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.queue.entry import State, pod_entry
from bayplan.queue.settings import QueueProfile
from bayplan.queue.sub_queues import PreEnqueueCheck
from bayplan.state.pods import PodInfo
from tests.queue.factories import PROFILE, Recorder, by_shape, gate, queued


def admission(
    *gates: PreEnqueuePlugin, windows: bool = True, recorder: Recorder | None = None
) -> PreEnqueueCheck:
    profile = QueueProfile(gates, {}, by_shape)
    return PreEnqueueCheck({PROFILE: profile}, recorder or Recorder(), pop_from_backoff_q=windows)


class Countdown(PreEnqueuePlugin):
    """Refuses every pod, each time with a new message."""

    name = "Countdown"

    def setup(self) -> None:
        self.count = 0

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.count += 1
        return Status(Code.UNSCHEDULABLE, (f"called {self.count} times",))


def test_a_new_message_of_the_gating_plugin_is_reported() -> None:
    recorder, entry = Recorder(), pod_entry(queued("a"))
    handle: Any = None
    admitted = admission(Countdown(None, handle), recorder=recorder)
    admitted.admits(entry, State.ACTIVE)
    admitted.admits(entry, State.ACTIVE)
    assert recorder.gates == [
        ("a", "Countdown", "called 1 times"),
        ("a", "Countdown", "called 2 times"),
    ]
    assert entry.queued.gating_message == "called 2 times"


def test_a_pod_still_refused_is_counted_and_reported_once() -> None:
    recorder, entry = Recorder(), pod_entry(queued("a"))
    admitted = admission(gate(), recorder=recorder)
    admitted.admits(entry, State.ACTIVE)
    admitted.admits(entry, State.ACTIVE)
    assert recorder.unschedulable == {"Gate": 1}
    assert len(recorder.gates) == 1


@pytest.mark.parametrize(
    "rejected",
    [
        pytest.param(queued(rejected_by=["Gate"]), id="unschedulable"),
        pytest.param(queued(pending=["Gate"]), id="pending"),
    ],
)
def test_a_plugin_that_rejected_the_pod_before_is_not_counted_again(
    rejected: QueuedPodInfo,
) -> None:
    recorder = Recorder()
    admission(gate(), recorder=recorder).admits(pod_entry(rejected), State.ACTIVE)
    assert not recorder.unschedulable


def test_a_plugin_that_raises_gates_its_pod_and_is_named() -> None:
    def boom(_: PodInfo) -> bool:
        raise ValueError("boom")

    recorder, entry = Recorder(), pod_entry(queued("a"))
    assert not admission(gate(refuses=boom), recorder=recorder).admits(entry, State.ACTIVE)
    [(pod, plugin, message)] = recorder.gates
    assert (pod, plugin) == ("a", "Gate")
    assert message.startswith('running PreEnqueue plugin "Gate": ValueError: boom (')


def test_an_explicit_success_passes() -> None:
    spelt: Any = gate()
    spelt.pre_enqueue = lambda pod: Status(Code.SUCCESS)
    assert admission(spelt).admits(pod_entry(queued()), State.ACTIVE)


_EVERY_MOVE = [(source, target) for source in State for target in State]
_WITHOUT_WINDOWS = {move for move in _EVERY_MOVE if move[1] is State.ACTIVE}
_WITH_WINDOWS = {
    (source, target)
    for source, target in _EVERY_MOVE
    if target in (State.ACTIVE, State.BACKOFF, State.ERROR_BACKOFF)
    and source not in (State.BACKOFF, State.ERROR_BACKOFF)
}


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        pytest.param(False, _WITHOUT_WINDOWS, id="on every move into activeQ"),
        pytest.param(True, _WITH_WINDOWS, id="before backoffQ if pods are popped from backoffQ"),
    ],
)
def test_plugins_are_called_before_a_pod_enters_a_queue_from_which_it_can_be_popped(
    windows: bool, expected: set[tuple[State, State]]
) -> None:
    refusing = admission(gate(), windows=windows)
    refused: set[tuple[State, State]] = set()
    for source, target in _EVERY_MOVE:
        entry = pod_entry(queued())
        entry.state = source
        if not refusing.admits(entry, target):
            refused.add((source, target))
    assert refused == expected
