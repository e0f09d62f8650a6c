"""The queue as the scheduler uses it: when a pod is tried and when it is tried again."""

from typing import Any

import pytest

from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    QueueingHint,
)
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.queue.factories import (
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    OWN_LABEL,
    Hint,
    Rig,
    gate,
    on,
    rig,
)

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
FIT_EVENTS = {"Fit": [on(NODE_ADD)], "Claims": [on(NODE_ADD)]}

both_gates = pytest.mark.parametrize("windows", [True, False])


def one_rejected(**value: Any) -> Rig:
    """A pod that Fit rejected at 0 and that waits for a node to be added."""
    setting = rig(events=FIT_EVENTS, **value)
    setting.queue.add(pod())
    setting.try_and_fail("Fit")
    return setting


def incoming(setting: Rig) -> dict[str, int]:
    return {f"{queue} {event}": n for (queue, event), n in setting.queue.sizes.pods_entered.items()}


# ---- adding and popping -----------------------------------------------------------------------


def test_the_waiting_time_counts_from_the_first_time_in_activeq() -> None:
    gated = gate()
    setting = rig(events={"Gate": [on(OWN_LABEL)]}, gates=[gated])
    setting.queue.add(pod())
    setting.run_until(4)
    gated.refuse(False)
    setting.queue.update(pod(), pod(labels={"x": "y"}), [OWN_LABEL])
    setting.run_until(9)
    assert setting.pop().initial_attempt_seconds == 4


# ---- after a failed attempt: 5.3, 5.6 ---------------------------------------------------------


@both_gates
def test_consecutive_errors_double_the_delay_up_to_the_maximum(windows: bool) -> None:
    setting = rig(pop_from_backoff_q=windows)
    setting.queue.add(pod())
    setting.run_until(0.5)
    tried: list[float] = []
    for _ in range(6):
        while not setting.queue.has_ready:
            setting.run_until(setting.queue.next_deadline_seconds() or 0)
        tried.append(setting.clock.now())
        setting.try_and_fail()
    assert tried == [0.5, 2, 5, 10, 19, 30]


def test_a_failure_of_a_pod_that_already_waits_changes_nothing() -> None:
    """The binding fails after the pod was done and an update added it again."""
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(pod())
    entry = setting.pop()
    setting.queue.done(entry.pod.uid)
    setting.queue.update(pod(), pod())
    setting.fail(entry, "Fit")
    assert setting.state(pod()) == "ACTIVE"
    assert entry.unschedulable_count == 0


# ---- events: 5.6, 5.7 -------------------------------------------------------------------------


@both_gates
def test_a_delay_ends_at_the_next_whole_second(windows: bool) -> None:
    """Tried at 0, activated at 0.5. The delay of one second ends at 1; the check at 2 moves it."""
    setting = one_rejected(pop_from_backoff_q=windows)
    setting.run_until(0.5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.queue.next_deadline_seconds() == 2
    setting.run_until(1.75)
    assert setting.state(pod()) == "BACKOFF"
    setting.run_until(2)
    assert setting.state(pod()) == "ACTIVE"
    assert incoming(setting)["active BackoffComplete"] == 1


# ---- while a pod is being tried: 5.5 ----------------------------------------------------------


def test_an_event_that_no_plugin_registered_is_not_recorded_for_pods_in_flight() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(pod())
    setting.pop()
    setting.queue.move_all(NODE_DELETE, "node", None)
    assert setting.queue.in_flight.change_count == 0


# ---- gates: 5.4 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "calls_before"),
    [
        pytest.param(True, 2, id="called before the pod enters the backoffQ"),
        pytest.param(False, 1, id="called before the pod leaves the backoffQ"),
    ],
)
def test_pre_enqueue_is_called_once_on_the_way_through_the_backoffq(
    windows: bool, calls_before: int
) -> None:
    watched = gate(refuses=False)
    setting = one_rejected(gates=[watched], pop_from_backoff_q=windows)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert len(watched.calls) == calls_before
    setting.run_until(2)
    assert setting.state(pod()) == "ACTIVE"
    assert len(watched.calls) == 2


# ---- own updates and deletion: 5.7 ------------------------------------------------------------


def test_hints_about_an_update_of_the_pod_get_the_new_pod() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels == {"x": "new"} else SKIP)
    setting = rig(events={"Fit": [on(OWN_LABEL, hint)]})
    setting.queue.add(pod(labels={"x": "old"}))
    setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.update(None, pod(labels={"x": "new"}), [OWN_LABEL])
    assert setting.state(pod()) == "ACTIVE"


def test_nominations_follow_the_pod() -> None:
    setting = rig()
    nominator = setting.queue.nominator
    setting.queue.add(pod(nominated_node="n1"))
    assert nominator.nominated_nodes() == ["n1"]
    setting.queue.update(pod(nominated_node="n1"), pod(nominated_node="n2"))
    assert nominator.nominated_nodes() == ["n2"]


def test_a_gated_pod_is_nominated_like_any_other_pod() -> None:
    setting = rig(gates=[gate()])
    setting.queue.add(pod(nominated_node="n1"))
    assert setting.queue.nominator.nominated_nodes() == ["n1"]


# ---- the flush: 5.7 ---------------------------------------------------------------------------


def test_no_pod_waits_much_longer_than_five_minutes_for_an_event() -> None:
    setting = one_rejected()
    assert setting.queue.next_deadline_seconds() == 330
    setting.run_until(329)
    assert setting.state(pod()) == "UNSCHEDULABLE"
    setting.run_until(330)
    result = setting.pop()
    assert (result.attempts, result.was_flushed) == (2, True)
    assert incoming(setting)["active UnschedulableTimeout"] == 1


# ---- reports --------------------------------------------------------------------------------


def test_pending_pods_are_listed_by_queue_in_order_of_their_keys() -> None:
    setting = rig(gates=[gate(refuses=lambda pod: pod.name == "gated")])
    for name in ("b", "a", "gated"):
        setting.queue.add(pod(name))

    def names(listed: dict[str, list[PodInfo]]) -> dict[str, list[str]]:
        return {queue: [pod_info.name for pod_info in pods] for queue, pods in listed.items()}

    assert names(setting.queue.pending_pods()) == {
        "active": ["a", "b"],
        "backoff": [],
        "unschedulable": [],
        "gated": ["gated"],
    }


# ---- backoff, second by second --------------------------------------------------------------


def small_node_is_freed(setting: Rig) -> None:
    """A pod too large for the node; at 0.3 a label changes, at 0.5 room becomes free."""
    setting.queue.add(pod())
    setting.try_and_fail("Fit")
    setting.run_until(0.3)
    setting.queue.move_all(NODE_LABEL, "node", "node")
    assert not setting.queue.has_ready
    setting.run_until(0.5)
    setting.queue.move_all(EVENT_ASSIGNED_POD_DELETE, pod("running", node="n1"), None)


def test_released_resources_are_used_at_once_if_the_scheduler_is_idle() -> None:
    setting = rig(events={"Fit": [on(EVENT_ASSIGNED_POD_DELETE)]})
    small_node_is_freed(setting)
    assert setting.pop().attempts == 2
    assert setting.clock.now() == 0.5


def test_without_the_gate_released_resources_are_used_after_the_delay() -> None:
    setting = rig(events={"Fit": [on(EVENT_ASSIGNED_POD_DELETE)]}, pop_from_backoff_q=False)
    small_node_is_freed(setting)
    assert not setting.queue.has_ready
    due = setting.queue.next_deadline_seconds()
    assert due is not None
    assert 1.0 <= due <= 2.0
    setting.run_until(due)
    assert setting.pop().attempts == 2
    assert incoming(setting) == {
        "active UnscheduledPodAdd": 1,
        "unschedulable ScheduleAttemptFailure": 1,
        "backoff AssignedPodDelete": 1,
        "active BackoffComplete": 1,
    }


def test_a_pod_added_twice_is_one_pod() -> None:
    setting = rig()
    setting.queue.add(pod())
    setting.queue.add(pod(priority=3))
    assert setting.queue.counts()["active"] == 1
    assert setting.pop().priority == 3


@pytest.mark.parametrize("priority", [-1, 0, 1])
@pytest.mark.parametrize("has_others", [False, True])
def test_pods_that_a_run_returns_keep_their_order_beside_one_that_entered(
    priority: int, has_others: bool
) -> None:
    setting = rig()
    equal = [pod(name) for name in "abcd"]
    for each in equal:
        setting.queue.add(each)
    if has_others:
        setting.queue.add(pod("z", priority=-2))
    shape = equal[0].shape
    run = setting.queue.pop_run(9, {shape})
    assert [each.pod.name for each in run] == ["a", "b", "c", "d"]
    mark = setting.queue.run_mark()
    setting.fail(run[0], "Fit")
    assert setting.queue.run_mark() == mark
    setting.queue.add(pod("new", priority=priority))
    assert setting.queue.run_mark() != mark
    setting.queue.put_back(run, 1)
    assert [each.pod.name for each in run] == ["a"]
    order = [setting.pop().pod.name for _ in range(4)]
    assert order == (["new", "b", "c", "d"] if priority > 0 else ["b", "c", "d", "new"])


def test_a_deleted_pod_leaves_no_state() -> None:
    for failed_by in (["Fit"], []):
        setting = rig(events=FIT_EVENTS)
        setting.queue.add(pod(nominated_node="n1"))
        setting.try_and_fail(*failed_by)
        setting.queue.delete(pod())
        assert setting.queue.find(pod().uid) is None
        assert not any(setting.queue.counts().values())
        assert not any(setting.recorder.unschedulable.values())
        assert setting.queue.nominator.nominated_nodes() == []
        assert setting.queue.next_deadline_seconds() is None
