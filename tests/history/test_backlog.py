"""The backlog of a running scheduler's page: what reaches the fold when, and its limits."""

from bayplan.api.objects import NODE, POD, ApiObject
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.history.backlog import LENGTH_MAX, Backlog
from bayplan.history.entries import ObjectChange
from bayplan.journal import AttemptRecord
from bayplan.plugins.registry import default_registry
from bayplan.ports import EventType
from bayplan.testing import api_pod, node


def new_backlog() -> tuple[Backlog, ManualClock]:
    clock = ManualClock()
    scheduler = Scheduler(config_from(DEFAULT_CONFIG), default_registry(), clock)
    return Backlog(scheduler, clock, 40_000), clock


def added(kind: str, each: ApiObject, at_seconds: float = 0.0) -> ObjectChange:
    return ObjectChange(at_seconds=at_seconds, type=EventType.ADDED, kind=kind, object=each)


def attempt(pod: str, at_seconds: float) -> AttemptRecord:
    return AttemptRecord(
        at_seconds=at_seconds,
        pod=pod,
        uid=pod.partition("/")[2],
        profile="default-scheduler",
        attempt=1,
        result="unschedulable",
    )


def test_the_fold_gets_nothing_until_the_page_is_read() -> None:
    backlog, _ = new_backlog()
    backlog.put(added(NODE, node("n1")))
    for number in range(100):
        backlog.put(added(POD, api_pod(f"p{number}")))
    assert backlog.change_count == 0
    backlog.catch_up(1.0)
    assert backlog.change_count == 101
    assert not backlog


def test_changes_have_the_times_of_their_events_and_records() -> None:
    backlog, clock = new_backlog()
    backlog.put(added(POD, api_pod("p", uid="p"), 3.0))
    backlog.write(attempt("default/p", 4.0))
    clock.advance_to(9.0)
    backlog.catch_up(1.0)
    line = backlog.fold.timeline(backlog.seconds_until(clock.now()))
    assert line.seconds.tolist() == [0.0, 3.0, 4.0]
    assert line.end_seconds == 9.0


def test_the_timeline_ends_at_the_last_change_of_the_fold() -> None:
    backlog, clock = new_backlog()
    for number in range(400):
        backlog.put(added(POD, api_pod(f"p{number}"), 5.0))
    backlog.catch_up(0.0)
    clock.advance_to(8.0)
    assert backlog
    assert backlog.seconds_until(clock.now()) == 5.0


def test_the_lengths_of_the_queues_between_two_events_count_once() -> None:
    backlog, _ = new_backlog()
    for _ in range(10):
        backlog.look()
    assert len(backlog) == 1
    backlog.put(added(NODE, node("n1")))
    backlog.look()
    assert len(backlog) == 3


def test_the_backlog_is_bounded() -> None:
    backlog, _ = new_backlog()
    one = api_pod("p", uid="p")
    for _ in range(LENGTH_MAX + 1):
        backlog.put(added(POD, one))
        assert len(backlog) <= LENGTH_MAX
    assert backlog.change_count == 1


def test_kinds_that_the_page_does_not_show_are_left_out() -> None:
    backlog, _ = new_backlog()
    backlog.put(added("storage.k8s.io/v1 CSINode", node("n1")))
    assert not backlog


def test_a_closed_backlog_accepts_nothing() -> None:
    backlog, _ = new_backlog()
    backlog.close()
    backlog.put(added(NODE, node("n1")))
    backlog.write(attempt("default/p", 1.0))
    assert not backlog
