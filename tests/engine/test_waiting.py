"""Pods that wait at Permit, deadlines and activations."""

from bayplan.clock import ManualClock
from bayplan.engine.waiting import Activations, Deadlines, PodWaitingOnPermit, WaitingPods
from bayplan.framework.status import Code, Status
from bayplan.testing import pod

# ---- waiting --------------------------------------------------------------------------------


Ends = list[tuple[str, Status | None]]


def waiting_pod(ends: Ends, name: str = "p", **timeouts: float) -> PodWaitingOnPermit:
    return PodWaitingOnPermit(
        pod(name), "n1", 10.0, dict(timeouts), lambda who, how: ends.append((who.pod.name, how))
    )


def test_a_waiting_pod_continues_when_the_last_plugin_allows_it():
    ends: Ends = []
    waiting = waiting_pod(ends, A=5.0, B=8.0)
    waiting.allow("A")
    assert (waiting.pending_plugins, ends) == (["B"], [])
    waiting.allow("B")
    assert ends == [("p", None)]


def test_allowing_by_a_plugin_that_is_not_pending_changes_nothing():
    ends: Ends = []
    waiting = waiting_pod(ends, A=5.0)
    waiting.allow("Z")
    assert (waiting.pending_plugins, ends) == (["A"], [])


def test_the_first_deadline_rejects_with_upstreams_message():
    ends: Ends = []
    pods = WaitingPods()
    pods.hold(waiting_pod(ends, A=5.0, B=8.0))
    assert [waiting_pod.deadline_seconds for waiting_pod in pods.all()] == [15.0]
    pods.time_out_until(14.999)
    assert ends == []
    pods.time_out_until(15.0)
    (_, status) = ends[0]
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE
    assert status.plugin == "A"
    assert status.message == "rejected due to timeout after waiting 5s at plugin A"


def test_a_preempted_wait_ends_with_an_error_once() -> None:
    ends: Ends = []
    waiting = waiting_pod(ends, A=5.0)
    assert waiting.preempt("Preemption", "preempted")
    assert not waiting.preempt("Preemption", "preempted")
    ((_, status),) = ends
    assert status == Status(Code.ERROR, ("waiting on permit for pod: preempted",), "Preemption")


def test_simultaneous_timeouts_run_in_the_order_of_their_deadlines():
    ends: Ends = []
    pods = WaitingPods()
    pods.hold(waiting_pod(ends, "late", A=9.0))
    pods.hold(waiting_pod(ends, "early", A=2.0))
    pods.time_out_until(100.0)
    assert [name for name, _ in ends] == ["early", "late"]


def test_waiting_pods_are_listed_by_uid():
    pods = WaitingPods()
    for name in ("b", "a"):
        pods.hold(waiting_pod([], name, A=1.0))
    uids = [waiting.pod.uid for waiting in pods.all()]
    assert uids == sorted(uids)
    pods.leave(uids[0])
    assert len(pods) == 1
    assert pods.get(uids[0]) is None


def test_a_moved_deadline_takes_effect():
    ends: Ends = []
    pods = WaitingPods()
    waiting = waiting_pod(ends, A=5.0, B=8.0)
    pods.hold(waiting)
    waiting.allow("A")
    pods.time_out_until(15.0)
    assert ends == []
    pods.time_out_until(18.0)
    assert [name for name, _ in ends] == ["p"]


def test_a_timeout_without_waiting_pods_does_nothing():
    ends: Ends = []
    pods = WaitingPods()
    pods.hold(waiting_pod(ends, "q", A=7.0))
    pods.hold(waiting_pod(ends, A=0.0))
    pods.time_out_until(10.0)
    assert [name for name, _ in ends] == ["p"]
    pods.leave("uid-default/p")
    pods.time_out_until(17.0)
    assert [name for name, _ in ends] == ["p", "q"]


def test_a_pod_allowed_by_the_end_of_another_wait_does_not_time_out():
    ends: Ends = []
    pods = WaitingPods()
    second = waiting_pod(ends, "second", A=5.0)
    first = PodWaitingOnPermit(
        pod("first"), "n1", 10.0, {"A": 4.0}, lambda who, how: second.allow("A")
    )
    for each in (first, second):
        pods.hold(each)
    pods.time_out_until(100.0)
    assert ends == [("second", None)]


# ---- deadlines ------------------------------------------------------------------------------


def test_a_key_is_taken_once_when_it_is_due() -> None:
    deadlines = Deadlines[str]()
    deadlines["a"] = 10.0
    deadlines["b"] = 5.0
    assert deadlines.next_seconds() == 5.0
    assert deadlines.take_due(9.999) == ["b"]
    assert deadlines.take_due(10.0) == ["a"]
    assert deadlines.take_due(10.0) == []
    assert deadlines.next_seconds() is None


def test_a_removed_or_moved_key_has_only_its_new_time() -> None:
    deadlines = Deadlines[str]()
    deadlines["a"] = 10.0
    deadlines["a"] = 20.0
    assert deadlines.next_seconds() == 20.0
    assert "a" in deadlines
    del deadlines["a"]
    assert "a" not in deadlines
    assert deadlines.next_seconds() is None


# ---- activations ----------------------------------------------------------------------------


def test_each_pod_is_activated_at_its_latest_requested_time() -> None:
    clock = ManualClock()
    activations, a, b = Activations(clock), pod("a"), pod("b")
    activations.add([a, b], 5.0)
    activations.add([b], 7.0)
    clock.advance_to(5.0)
    assert activations.take_due() == [a.uid]
    clock.advance_to(7.0)
    assert activations.take_due() == [b.uid]
    assert activations.take_due() == []


def test_activations_report_the_time_of_the_earliest_request() -> None:
    clock = ManualClock()
    activations, a = Activations(clock), pod("a")
    assert not activations.any_requested_by(9.0)
    clock.advance_to(2.0)
    activations.add([a], 5.0)
    clock.advance_to(3.0)
    activations.add([a], 6.0)
    assert not activations.any_requested_by(1.9)
    assert activations.any_requested_by(2.0)
    clock.advance_to(6.0)
    activations.take_due()
    assert not activations.any_requested_by(6.0)
