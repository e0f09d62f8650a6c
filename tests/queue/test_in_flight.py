"""Events that happen during attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.queue.hints import Change
from bayplan.queue.scheduling_queue import InFlight
from bayplan.testing import pod
from tests.queue.factories import NODE_ADD, OWN_LABEL


def change(number: int) -> Change:
    return Change(NODE_ADD, None, number)


def seen(in_flight: InFlight, uid: str) -> list[int]:
    return [each.new for each in in_flight.changes_since(uid)]


def test_pods_in_flight_and_their_recorded_events_are_counted() -> None:
    result = InFlight()
    assert result.counts() == {"PodPopped": 0}
    result.start("a")
    result.start("b")
    for _ in range(2):
        result.record(change(1))
    result.record_for("a", Change(OWN_LABEL, None, pod("a")))
    assert result.counts() == {"PodPopped": 2, "NodeAdd": 2, "TargetPodUpdatePodLabel": 1}
    result.finish_all("ab")
    assert result.counts() == {"PodPopped": 0}


def test_recording_ends_when_the_last_pod_is_done() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    in_flight.record(change(1))
    in_flight.finish("a")
    assert in_flight.change_count == 0
    assert len(in_flight) == 0


def test_finishing_twice_is_harmless() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    in_flight.finish("a")
    in_flight.finish("a")
    assert "a" not in in_flight


def test_a_pod_is_not_tried_twice_at_once() -> None:
    in_flight = InFlight()
    in_flight.start("a")
    with pytest.raises(AssertionError, match="two attempts"):
        in_flight.start("a")


def test_events_that_no_pod_needs_are_dropped_while_other_pods_are_in_flight() -> None:
    in_flight = InFlight()
    for number in range(10_000):
        in_flight.start(f"p{number}")
        in_flight.record(change(number))
        if number:
            in_flight.finish(f"p{number - 1}")
    assert in_flight.change_count < 200
    assert seen(in_flight, "p9999") == [9999]


steps = st.lists(
    st.tuples(st.sampled_from(["start", "finish", "record", "record_for"]), st.integers(0, 5)),
    max_size=300,
)


@given(steps)
def test_every_pod_sees_exactly_the_events_that_concern_it(done: list[tuple[str, int]]) -> None:
    in_flight, model = InFlight(), dict[str, list[int]]()
    for number, (what, which) in enumerate(done):
        uid = f"p{which}"
        if what == "start" and uid not in model:
            in_flight.start(uid)
            model[uid] = []
        elif what == "finish":
            in_flight.finish(uid)
            model.pop(uid, None)
        elif what == "record":
            in_flight.record(change(number))
            for since in model.values():
                since.append(number)
        elif what == "record_for" and uid in model:
            in_flight.record_for(uid, change(number))
            model[uid].append(number)
        assert {uid: seen(in_flight, uid) for uid in model} == model
