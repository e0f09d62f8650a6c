"""The queue as the scheduler uses it: when a pod is tried and when it is tried again."""

from typing import Any

import pytest

from bayplan.framework.events import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    QueueingHint,
)
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueSettings
from bayplan.state.pods import PodInfo
from tests.queue.factories import (
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    OWN_LABEL,
    OWN_SCALE_DOWN,
    Hint,
    Recorder,
    Rig,
    by_priority,
    by_shape,
    gate,
    on,
    rig,
    waiting_pod,
)

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
FIT_EVENTS = {"Fit": [on(NODE_ADD)], "Claims": [on(NODE_ADD)]}

both_gates = pytest.mark.parametrize("windows", [True, False])


def one_rejected(**value: Any) -> Rig:
    """A pod that Fit rejected at 0 and that waits for a node to be added."""
    setting = rig(events=FIT_EVENTS, **value)
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    return setting


def incoming(setting: Rig) -> dict[str, int]:
    return {f"{queue} {event}": n for (queue, event), n in setting.recorder.incoming_counts.items()}


# ---- adding and popping -----------------------------------------------------------------------


def test_a_new_pod_is_ready_at_once() -> None:
    setting = rig()
    assert not setting.queue.has_ready
    setting.queue.add(waiting_pod())
    assert setting.queue.has_ready
    assert setting.pop().pod.name == "p"
    assert not setting.queue.has_ready


def test_an_empty_queue_returns_nothing() -> None:
    assert rig().queue.pop() is None


def test_a_higher_priority_created_later_is_popped_first() -> None:
    setting = rig()
    setting.queue.add(waiting_pod("old"))
    setting.run_until(1)
    setting.queue.add(waiting_pod("new", priority=5))
    assert [setting.pop().pod.name for _ in range(2)] == ["new", "old"]


def test_pods_of_one_moment_are_popped_in_order_of_arrival() -> None:
    setting = rig()
    for name in ("c", "a", "b"):
        setting.queue.add(waiting_pod(name))
    assert [setting.pop().pod.name for _ in range(3)] == ["c", "a", "b"]


def test_popping_counts_the_attempt_and_puts_the_pod_in_flight() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    result = setting.pop()
    assert result.attempts == 1
    assert setting.state(waiting_pod()) == "IN_FLIGHT"
    setting.queue.done(result.pod.uid)
    assert setting.state(waiting_pod()) == "ABSENT"


def test_done_has_no_effect_on_a_waiting_or_unknown_pod() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    setting.queue.done(waiting_pod().uid)
    setting.queue.done("made-up")
    assert setting.queue.counts()["active"] == 1


def test_a_pod_added_twice_is_one_pod() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    setting.queue.add(waiting_pod(priority=3))
    assert setting.queue.counts()["active"] == 1
    assert setting.pop().priority == 3


def test_a_pod_recreated_under_an_old_name_is_another_pod() -> None:
    setting = rig()
    setting.queue.add(waiting_pod(uid="first"))
    setting.queue.add(waiting_pod(uid="second"))
    setting.queue.delete(waiting_pod(uid="first"))
    assert setting.pop().pod.uid == "second"
    assert setting.queue.pop() is None


def test_the_waiting_time_counts_from_the_first_time_in_activeq() -> None:
    gated = gate()
    setting = rig(events={"Gate": [on(OWN_LABEL)]}, gates=[gated])
    setting.queue.add(waiting_pod())
    setting.run_until(4)
    gated.refuse(False)
    setting.queue.update(waiting_pod(), waiting_pod(labels={"x": "y"}), [OWN_LABEL])
    setting.run_until(9)
    assert setting.pop().initial_attempt_seconds == 4


# ---- after a failed attempt: 5.3, 5.6 ---------------------------------------------------------


def test_a_rejected_pod_waits_for_an_event() -> None:
    setting = one_rejected()
    assert setting.queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    setting.run_until(250)
    assert setting.queue.pop() is None


def test_a_pod_that_failed_with_an_error_is_tried_after_its_delay() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    setting.run_until(0.25)
    setting.try_and_fail()
    assert setting.state(waiting_pod()) == "ERROR_BACKOFF"
    assert not setting.queue.has_ready
    setting.run_until(1.75)
    assert not setting.queue.has_ready
    setting.run_until(2)
    assert setting.pop().attempts == 2


@both_gates
def test_consecutive_errors_double_the_delay_up_to_the_maximum(windows: bool) -> None:
    setting = rig(pop_from_backoff_q=windows)
    setting.queue.add(waiting_pod())
    setting.run_until(0.5)
    tried: list[float] = []
    for _ in range(6):
        while not setting.queue.has_ready:
            setting.run_until(setting.queue.next_deadline_seconds() or 0)
        tried.append(setting.clock.now())
        setting.try_and_fail()
    assert tried == [0.5, 2, 5, 10, 19, 30]


def test_a_rejection_after_errors_counts_rejections_only() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    result = setting.try_and_fail()
    assert (result.consecutive_errors_count, result.unschedulable_count) == (1, 0)
    setting.run_until(2)
    setting.try_and_fail("Fit")
    assert (result.consecutive_errors_count, result.unschedulable_count) == (0, 1)


def test_a_returned_pod_is_behind_pods_that_arrived_meanwhile() -> None:
    setting = rig(max_backoff_seconds=0)
    setting.queue.add(waiting_pod("first"))
    first = setting.pop()
    setting.run_until(1)
    setting.queue.add(waiting_pod("second"))
    setting.run_until(2)
    setting.fail(first)
    assert [setting.pop().pod.name for _ in range(2)] == ["second", "first"]


def test_without_a_maximum_there_is_no_delay() -> None:
    setting = rig(max_backoff_seconds=0)
    setting.queue.add(waiting_pod())
    setting.try_and_fail()
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_a_failure_of_a_pod_that_already_waits_changes_nothing() -> None:
    """The binding fails after the pod was done and an update added it again."""
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    setting.queue.done(entry.pod.uid)
    setting.queue.update(waiting_pod(), waiting_pod())
    setting.fail(entry, "Fit")
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert entry.unschedulable_count == 0


@pytest.mark.parametrize(
    ("rejected_by", "state"),
    [
        pytest.param([], "ERROR_BACKOFF", id="by an error"),
        pytest.param(
            ["Fit"], "ERROR_BACKOFF", id="by a rejection, because missed events are unknown"
        ),
    ],
)
def test_a_pod_whose_binding_failed_after_done_is_tried_again(
    rejected_by: list[str], state: str
) -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    setting.queue.done(entry.pod.uid)
    setting.fail(entry, *rejected_by)
    assert setting.state(waiting_pod()) == state


# ---- events: 5.6, 5.7 -------------------------------------------------------------------------


@both_gates
def test_a_helping_event_during_the_delay_leads_to_the_backoffq(windows: bool) -> None:
    setting = one_rejected(pop_from_backoff_q=windows)
    setting.run_until(0.5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "BACKOFF"
    assert setting.queue.has_ready is windows


@both_gates
def test_a_delay_ends_at_the_next_whole_second(windows: bool) -> None:
    """Tried at 0, activated at 0.5. The delay of one second ends at 1; the check at 2 moves it."""
    setting = one_rejected(pop_from_backoff_q=windows)
    setting.run_until(0.5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.queue.next_deadline_seconds() == 2
    setting.run_until(1.75)
    assert setting.state(waiting_pod()) == "BACKOFF"
    setting.run_until(2)
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert incoming(setting)["active BackoffComplete"] == 1


def test_a_helping_event_after_the_delay_makes_the_pod_ready() -> None:
    setting = one_rejected()
    setting.run_until(2)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert incoming(setting)["active NodeAdd"] == 1


def test_a_pending_pod_has_no_delay() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    setting.try_and_fail(pending=["Claims"])
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "ACTIVE"


@pytest.mark.parametrize("event", [NODE_LABEL, NODE_DELETE])
def test_an_event_that_no_plugin_registered_moves_no_pod(event: Any) -> None:
    setting = one_rejected()
    setting.run_until(5)
    setting.queue.move_all(event, None, "node")
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"


def test_a_hint_that_raises_activates_the_pod_and_is_reported() -> None:
    def boom(*_: Any) -> QueueingHint:
        raise ValueError("boom")

    setting = rig(events={"Fit": [on(NODE_ADD, boom)]})
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert setting.recorder.failures == [("Fit", "NodeAdd", "boom")]


def test_a_pre_check_excludes_waiting_pods_but_not_pods_in_flight() -> None:
    setting = rig(events={"Fit": [on(EVENT_ASSIGNED_POD_DELETE)]})
    for name in ("parked", "flying"):
        setting.queue.add(waiting_pod(name))
    setting.try_and_fail("Fit")
    flying = setting.pop()
    setting.queue.move_all(EVENT_ASSIGNED_POD_DELETE, waiting_pod("gone"), None, lambda _: False)
    assert setting.state(waiting_pod("parked")) == "UNSCHEDULABLE"
    setting.fail(flying, "Fit")
    assert setting.state(waiting_pod("flying")) == "BACKOFF"


def test_each_profile_has_its_own_hints() -> None:
    clock = rig().clock
    profiles = {
        "one": QueueProfile((), {"Fit": [on(NODE_ADD, Hint(SKIP))]}, by_shape),
        "two": QueueProfile((), {"Fit": [on(NODE_ADD, Hint(QUEUE))]}, by_shape),
    }
    setting = Rig(
        SchedulingQueue(profiles, QueueSettings(by_priority), clock.now, Recorder()), clock
    )
    for name in profiles:
        setting.queue.add(waiting_pod(name, scheduler=name))
        setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod("one")) == "UNSCHEDULABLE"
    assert setting.state(waiting_pod("two")) == "ACTIVE"


# ---- while a pod is being tried: 5.5 ----------------------------------------------------------


def test_an_event_during_the_attempt_is_not_lost() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    setting.queue.move_all(NODE_ADD, None, "node")
    setting.fail(entry, "Fit")
    assert setting.state(waiting_pod()) == "BACKOFF"
    assert incoming(setting)["backoff ScheduleAttemptFailure"] == 1


def test_an_event_during_the_attempt_activates_a_pending_pod_at_once() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    setting.queue.move_all(NODE_ADD, None, "node")
    setting.fail(entry, "Fit", pending=["Claims"])
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_an_event_before_the_pop_does_not_count() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod("other"))
    setting.pop()
    setting.queue.move_all(NODE_ADD, None, "node")
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"


def test_the_hint_is_called_with_the_recorded_objects() -> None:
    calls: list[Any] = []

    def hint(*arguments: Any) -> QueueingHint:
        calls.append(arguments)
        return SKIP

    setting = rig(events={"Fit": [on(NODE_ADD, hint)]})
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    setting.queue.move_all(NODE_ADD, "old", "new")
    setting.fail(entry, "Fit")
    assert calls == [(entry.pod, "old", "new")]


def test_an_event_that_no_plugin_registered_is_not_recorded_for_pods_in_flight() -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    setting.pop()
    setting.queue.move_all(NODE_DELETE, "node", None)
    assert setting.queue.in_flight.change_count == 0


def test_an_update_of_the_pod_during_its_attempt_counts_at_its_return() -> None:
    setting = rig(events={"Fit": [on(OWN_SCALE_DOWN)]})
    setting.queue.add(waiting_pod())
    setting.queue.add(waiting_pod("other"))
    entry, other = setting.pop(), setting.pop()
    setting.queue.update(waiting_pod(), waiting_pod(labels={"x": "y"}), [OWN_SCALE_DOWN])
    setting.fail(entry, "Fit")
    setting.fail(other, "Fit")
    assert setting.state(waiting_pod()) == "BACKOFF"
    assert setting.state(waiting_pod("other")) == "UNSCHEDULABLE"


def test_a_pod_deleted_during_its_attempt_is_removed_when_it_is_done() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    setting.pop()
    setting.queue.delete(waiting_pod())
    assert setting.state(waiting_pod()) == "IN_FLIGHT"
    setting.queue.done(waiting_pod().uid)
    assert setting.queue.find(waiting_pod().uid) is None


# ---- gates: 5.4 -------------------------------------------------------------------------------


def test_a_gated_pod_is_never_tried() -> None:
    setting = rig(gates=[gate()])
    setting.queue.add(waiting_pod())
    assert setting.queue.counts()["gated"] == 1
    assert setting.queue.pop() is None
    result = setting.queue.find(waiting_pod().uid)
    assert result is not None
    assert (result.attempts, result.gated) == (0, True)
    assert incoming(setting) == {"unschedulable UnscheduledPodAdd": 1}


def test_an_event_of_the_gating_plugin_opens_the_gate() -> None:
    gated = gate(refuses=lambda pod: "x" not in pod.labels)
    setting = rig(events={"Gate": [on(OWN_LABEL)]}, gates=[gated])
    setting.queue.add(waiting_pod())
    setting.queue.update(waiting_pod(), waiting_pod(labels={"y": ""}), [OWN_LABEL])
    assert setting.state(waiting_pod()) == "GATED"
    setting.queue.update(waiting_pod(), waiting_pod(labels={"x": ""}), [OWN_LABEL])
    assert setting.pop().attempts == 1


def test_events_of_other_plugins_do_not_reach_a_gated_pod() -> None:
    gated = gate(refuses=False)
    setting = rig(events={"Fit": [on(NODE_ADD)], "Gate": [on(NODE_LABEL)]}, gates=[gated])
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    gated.refuse(True)
    setting.queue.activate([waiting_pod()])
    assert setting.state(waiting_pod()) == "GATED"
    gated.refuse(False)
    setting.run_until(5)
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "GATED"
    setting.queue.move_all(NODE_LABEL, None, "node")
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_a_helpful_event_does_not_activate_a_pod_whose_gate_stays_closed() -> None:
    setting = rig(events={"Gate": [on(NODE_ADD)]}, gates=[gate()])
    setting.queue.add(waiting_pod())
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "GATED"
    assert setting.recorder.unschedulable == {"Gate": 1}
    assert incoming(setting)["unschedulable NodeAdd"] == 1


def test_a_returning_pod_may_be_gated() -> None:
    gated = gate(refuses=False)
    setting = rig(events=FIT_EVENTS, gates=[gated])
    setting.queue.add(waiting_pod())
    entry = setting.pop()
    gated.refuse(True)
    setting.fail(entry)
    assert setting.state(waiting_pod()) == "GATED"
    assert setting.recorder.gates == [("p", "Gate", "not yet")]


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
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert len(watched.calls) == 2


# ---- own updates and deletion: 5.7 ------------------------------------------------------------


def test_an_update_of_an_unschedulable_pod_activates_it_if_the_hint_agrees() -> None:
    setting = rig(events={"Fit": [on(OWN_SCALE_DOWN, Hint(lambda pod: QUEUE))]})
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.update(waiting_pod(), waiting_pod(labels={"x": "y"}), [OWN_LABEL])
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"
    setting.queue.update(waiting_pod(), waiting_pod(labels={"x": "y"}), [OWN_LABEL, OWN_SCALE_DOWN])
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert incoming(setting)["active TargetPodUpdatePodScaleDown"] == 1


def test_no_further_event_is_evaluated_after_one_that_activates_the_pod() -> None:
    second = Hint(QUEUE)
    setting = rig(events={"Fit": [on(OWN_LABEL), on(OWN_SCALE_DOWN, second)]})
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    setting.queue.update(waiting_pod(), waiting_pod(), [OWN_LABEL, OWN_SCALE_DOWN])
    assert setting.state(waiting_pod()) == "BACKOFF"
    assert not second.calls


def test_hints_about_an_update_of_the_pod_get_the_new_pod() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels == {"x": "new"} else SKIP)
    setting = rig(events={"Fit": [on(OWN_LABEL, hint)]})
    setting.queue.add(waiting_pod(labels={"x": "old"}))
    setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.update(None, waiting_pod(labels={"x": "new"}), [OWN_LABEL])
    assert setting.state(waiting_pod()) == "ACTIVE"


@pytest.mark.parametrize("waits", ["ACTIVE", "BACKOFF", "ERROR_BACKOFF"])
def test_an_update_replaces_a_pod_in_activeq_or_backoff(waits: str) -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    if waits != "ACTIVE":
        setting.try_and_fail(*(["Fit"] if waits == "BACKOFF" else []))
        setting.queue.move_all(NODE_ADD, None, "node")
    setting.queue.update(waiting_pod(), waiting_pod(priority=7), [OWN_LABEL])
    assert setting.state(waiting_pod()) == waits
    setting.run_until(2)
    assert setting.pop().priority == 7


def test_an_update_may_change_the_position_in_activeq() -> None:
    setting = rig()
    for name in ("a", "b"):
        setting.queue.add(waiting_pod(name))
    setting.queue.update(waiting_pod("b"), waiting_pod("b", priority=1))
    assert setting.pop().pod.name == "b"


def test_an_updated_pod_is_activated_by_an_event_for_its_new_version() -> None:
    hint = Hint(lambda pod: QUEUE if pod.labels == {"shape": "new"} else SKIP)
    setting = rig(events={"Fit": [on(NODE_ADD, hint)]})
    for name in ("p", "same-part"):
        setting.queue.add(waiting_pod(name, labels={"shape": "old"}))
        setting.try_and_fail("Fit")
    setting.run_until(5)
    setting.queue.update(None, waiting_pod(labels={"shape": "new"}))
    setting.queue.move_all(NODE_ADD, None, "node")
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert setting.state(waiting_pod("same-part")) == "UNSCHEDULABLE"


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    setting = rig()
    setting.queue.update(waiting_pod(), waiting_pod(), [OWN_LABEL])
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert incoming(setting) == {"active UnscheduledPodAdd": 1}


def test_a_deleted_pod_leaves_no_state() -> None:
    for failed_by in (["Fit"], []):
        setting = rig(events=FIT_EVENTS)
        setting.queue.add(waiting_pod(nominated="n1"))
        setting.try_and_fail(*failed_by)
        setting.queue.delete(waiting_pod())
        assert setting.queue.find(waiting_pod().uid) is None
        assert not any(setting.queue.counts().values())
        assert not any(setting.recorder.unschedulable.values())
        assert setting.queue.nominator.nominated_nodes() == []
        assert setting.queue.next_deadline_seconds() is None


def test_deleting_an_unknown_pod_has_no_effect() -> None:
    setting = rig()
    setting.queue.delete(waiting_pod())
    assert not any(setting.queue.counts().values())


def test_nominations_follow_the_pod() -> None:
    setting = rig()
    nominator = setting.queue.nominator
    setting.queue.add(waiting_pod(nominated="n1"))
    assert nominator.nominated_nodes() == ["n1"]
    setting.queue.update(waiting_pod(nominated="n1"), waiting_pod(nominated="n2"))
    assert nominator.nominated_nodes() == ["n2"]


def test_a_gated_pod_is_nominated_like_any_other_pod() -> None:
    setting = rig(gates=[gate()])
    setting.queue.add(waiting_pod(nominated="n1"))
    assert setting.queue.nominator.nominated_nodes() == ["n1"]


# ---- activation: 5.7 --------------------------------------------------------------------------


@pytest.mark.parametrize("failed_by", [["Fit"], []])
def test_an_activated_pod_enters_activeq_from_any_state(failed_by: list[str]) -> None:
    setting = rig(events=FIT_EVENTS)
    setting.queue.add(waiting_pod())
    setting.try_and_fail(*failed_by)
    setting.queue.activate([waiting_pod()])
    assert setting.state(waiting_pod()) == "ACTIVE"
    assert incoming(setting)["active ForceActivate"] == 1


def test_activating_a_pod_in_flight_is_remembered() -> None:
    setting = rig(events=FIT_EVENTS)
    for name in ("p", "other"):
        setting.queue.add(waiting_pod(name))
    entry, other = setting.pop(), setting.pop()
    setting.queue.activate([waiting_pod()])
    setting.fail(entry, "Fit")
    setting.fail(other, "Fit")
    assert setting.state(waiting_pod()) == "BACKOFF"
    assert setting.state(waiting_pod("other")) == "UNSCHEDULABLE"
    assert setting.pop().pod.name == "p"


def test_activating_an_unknown_pod_changes_nothing() -> None:
    setting = one_rejected()
    before = setting.queue.counts()
    setting.queue.activate([waiting_pod("made-up")])
    assert setting.queue.counts() == before


def test_activating_a_ready_pod_changes_nothing() -> None:
    setting = rig()
    setting.queue.add(waiting_pod())
    setting.queue.activate([waiting_pod()])
    assert incoming(setting) == {"active UnscheduledPodAdd": 1}


# ---- the flush: 5.7 ---------------------------------------------------------------------------


def test_no_pod_waits_much_longer_than_five_minutes_for_an_event() -> None:
    setting = one_rejected()
    assert setting.queue.next_deadline_seconds() == 330
    setting.run_until(329)
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"
    setting.run_until(330)
    result = setting.pop()
    assert (result.attempts, result.was_flushed) == (2, True)
    assert incoming(setting)["active UnschedulableTimeout"] == 1


def test_a_return_ends_the_flushed_state() -> None:
    setting = one_rejected()
    setting.run_until(330)
    result = setting.try_and_fail("Fit")
    assert (result.was_flushed, result.flushed_at_seconds) == (False, None)


def test_a_gated_pod_is_evaluated_again_five_minutes_after_its_last_flush() -> None:
    gated = gate()
    setting = rig(gates=[gated])
    setting.queue.add(waiting_pod())
    setting.run_until(330)
    assert setting.state(waiting_pod()) == "GATED"
    gated.refuse(False)
    assert setting.queue.next_deadline_seconds() == 660
    setting.run_until(660)
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_a_flush_counts_for_pods_in_flight_too() -> None:
    setting = one_rejected()
    setting.queue.add(waiting_pod("flying"))
    flying = setting.pop()
    setting.run_until(330)
    setting.fail(flying, "Fit")
    assert setting.state(waiting_pod("flying")) == "BACKOFF"


def test_a_wildcard_event_activates_all_pods() -> None:
    setting = one_rejected()
    setting.run_until(5)
    setting.queue.move_all(EVENT_UNSCHEDULABLE_TIMEOUT, None, None)
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_late_timers_catch_up() -> None:
    setting = one_rejected(pop_from_backoff_q=False)
    setting.queue.move_all(NODE_ADD, None, "node")
    setting.clock.advance_to(2.7)
    setting.queue.run_timers()
    assert setting.state(waiting_pod()) == "ACTIVE"


def test_timers_that_run_early_do_nothing() -> None:
    setting = one_rejected()
    setting.queue.run_timers()
    assert setting.state(waiting_pod()) == "UNSCHEDULABLE"


# ---- pending work ---------------------------------------------------------------------------


def test_an_empty_queue_has_no_pending_work() -> None:
    assert rig().queue.waiting_for_retry_only


@both_gates
def test_a_rejected_pod_in_backoff_is_pending_work(windows: bool) -> None:
    setting = one_rejected(pop_from_backoff_q=windows)
    assert setting.queue.waiting_for_retry_only
    setting.queue.move_all(NODE_ADD, None, "node")
    assert not setting.queue.waiting_for_retry_only
    setting.run_until(2)
    assert not setting.queue.waiting_for_retry_only


def test_error_retries_and_the_flush_are_not_pending_work() -> None:
    setting = rig(gates=[gate(refuses=lambda pod: pod.name == "gated")])
    for name in ("gated", "error", "rejected"):
        setting.queue.add(waiting_pod(name))
    setting.try_and_fail()
    setting.try_and_fail("Fit")
    assert setting.queue.waiting_for_retry_only
    assert setting.queue.next_deadline_seconds() == 2


# ---- reports --------------------------------------------------------------------------------


def test_the_gauge_counts_the_rejecting_plugins_of_waiting_pods() -> None:
    setting = rig(events=FIT_EVENTS)
    for name in ("a", "b"):
        setting.queue.add(waiting_pod(name))
        setting.try_and_fail("Fit", pending=["Claims"])
    assert setting.recorder.unschedulable == {"Fit": 2, "Claims": 2}
    setting.queue.activate([waiting_pod("a")])
    assert setting.recorder.unschedulable == {"Fit": 2, "Claims": 2}
    setting.pop()
    assert setting.recorder.unschedulable == {"Fit": 1, "Claims": 1}


def test_pending_pods_are_listed_by_queue_in_order_of_their_keys() -> None:
    setting = rig(gates=[gate(refuses=lambda pod: pod.name == "gated")])
    for name in ("b", "a", "gated"):
        setting.queue.add(waiting_pod(name))

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
    setting.queue.add(waiting_pod())
    setting.try_and_fail("Fit")
    setting.run_until(0.3)
    setting.queue.move_all(NODE_LABEL, "node", "node")
    assert not setting.queue.has_ready
    setting.run_until(0.5)
    setting.queue.move_all(EVENT_ASSIGNED_POD_DELETE, waiting_pod("running", node="n1"), None)


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


def test_a_follower_is_tried_when_its_leader_activates_it() -> None:
    setting = rig(events={"Chain": []})
    setting.queue.add(waiting_pod("follower"))
    setting.try_and_fail("Chain")
    setting.run_until(0.4)
    setting.queue.add(waiting_pod("leader"))
    leader = setting.pop()
    setting.queue.activate([waiting_pod("follower")])
    setting.queue.done(leader.pod.uid)
    assert setting.pop().pod.name == "follower"
    assert setting.clock.now() == 0.4
