"""Pods held at Permit."""

from bayplan.engine.waiting import HeldPod, WaitingPods
from bayplan.framework.status import Code, Status
from bayplan.testing import pod

Ends = list[tuple[str, Status | None]]


def held(ends: Ends, name: str = "p", **timeouts: float) -> HeldPod:
    return HeldPod(
        pod(name), "n1", 10.0, dict(timeouts), lambda who, how: ends.append((who.pod.name, how))
    )


def test_a_pod_goes_on_when_the_last_plugin_allows_it():
    ends: Ends = []
    waiting = held(ends, A=5.0, B=8.0)
    waiting.allow("A")
    assert (waiting.pending_plugins, ends) == (["B"], [])
    waiting.allow("B")
    assert ends == [("p", None)]


def test_allowing_by_a_plugin_that_is_not_pending_changes_nothing():
    ends: Ends = []
    waiting = held(ends, A=5.0)
    waiting.allow("Z")
    assert (waiting.pending_plugins, ends) == (["A"], [])


def test_the_first_deadline_rejects_in_the_words_of_upstream():
    ends: Ends = []
    pods = WaitingPods()
    pods.hold(held(ends, A=5.0, B=8.0))
    assert pods.next_deadline_seconds() == 15.0
    pods.time_out_until(14.999)
    assert ends == []
    pods.time_out_until(15.0)
    (_, status) = ends[0]
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE
    assert status.plugin == "A"
    assert status.message == "rejected due to timeout after waiting 5s at plugin A"


def test_a_wait_ends_once():
    ends: Ends = []
    waiting = held(ends, A=5.0)
    waiting.reject("A", "no")
    waiting.allow("A")
    waiting.reject("A", "no again")
    assert len(ends) == 1


def test_time_outs_of_one_moment_come_in_the_order_of_their_deadlines():
    ends: Ends = []
    pods = WaitingPods()
    pods.hold(held(ends, "late", A=9.0))
    pods.hold(held(ends, "early", A=2.0))
    pods.time_out_until(100.0)
    assert [name for name, _ in ends] == ["early", "late"]


def test_waiting_pods_are_listed_by_uid():
    pods = WaitingPods()
    for name in ("b", "a"):
        pods.hold(held([], name, A=1.0))
    uids = [found.pod.uid for found in pods.all()]
    assert uids == sorted(uids)
    pods.leave(uids[0])
    assert len(pods) == 1
    assert pods.get(uids[0]) is None
