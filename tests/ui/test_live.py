"""The page of a running scheduler: its contents, its updates, and its access control."""

import asyncio
import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any, final
from urllib.request import urlopen

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.api.objects import NODE, POD, ApiObject
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.history.past_state import StateRing
from bayplan.history.state_log import LiveStateLog
from bayplan.history.timeline import ChangeKind
from bayplan.journal import Journal, MemorySink
from bayplan.plugins.registry import default_registry
from bayplan.ports import EventType, WatchEvent
from bayplan.serving.access import Denial, Owner
from bayplan.serving.page import LEADING, STANDBY, PageSources, ReplicaPhase
from bayplan.testing import api_pod
from bayplan.testing import node as sample_node
from bayplan.ui import answers, pages, tables
from bayplan.ui.live import TICK_SECONDS, SchedulerSubject
from bayplan.ui.subjects import NotReady
from tests.kit.manifests import node, pod
from tests.ui.fetching import PAGE
from tests.ui.live_client import get
from tests.ui.live_scheduler import LiveScheduler, live_scheduler

GATED = pod("gated", schedulingGates=[{"name": "example.com/quota"}])


@pytest.fixture(scope="module")
def live() -> Iterator[LiveScheduler]:
    nodes = [node(f"n{number}", labels={"zone": "ab"[number % 2]}) for number in range(4)]
    huge = pod("huge", cpu="900")
    pods = [pod(f"web-{number}", cpu="1") for number in range(6)]
    with live_scheduler(*nodes, huge, GATED, *pods) as scheduler:
        until(lambda: overview(scheduler).placed == 6)
        yield scheduler


def until(holds: Callable[[], bool]) -> None:
    async def wait() -> None:
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.1)

    asyncio.run(wait())


def overview(live: LiveScheduler) -> answers.Overview:
    return msgspec.json.decode(get(f"{live.url}api/overview")[2], type=answers.Overview)


# ---- contents -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("sources", list[answers.Source]),
        ("moment?step=-1", answers.Moment),
        ("overview", answers.Overview),
        ("series?points=20", answers.SeriesAnswer),
        ("heat?color=cpu&group=zone", answers.Heat),
        ("nodes?search=n&limit=2", answers.NodePage),
        ("node?name=n0", answers.NodeAnswer),
        ("pods?search=web&limit=5", answers.PodPage),
        ("pod?name=default/huge", answers.PodAnswer),
        ("decision?pod=default/huge&attempt=1", answers.Decision),
        ("waiting", answers.WaitingPage),
        ("groups", answers.GroupPage),
    ],
)
def test_every_view_has_the_same_type_as_for_a_run(
    live: LiveScheduler, path: str, kind: Any
) -> None:
    status, _, body = get(f"{live.url}api/{path}")
    assert status == 200, body
    assert msgspec.json.decode(body, type=kind, strict=True)


def test_the_overview_is_that_of_the_scheduler(live: LiveScheduler) -> None:
    view = overview(live)
    assert (view.nodes, view.placed, view.waiting) == (4, 6, 2)
    assert view.waiting_kinds == {"gated": 1, "unschedulable": 1}
    assert view.queues["gated"] == 1
    assert view.usage[0] == answers.Usage(resource="cpu", used=6000, allocatable=16_000)


def test_a_decision_is_the_record_of_the_journal(live: LiveScheduler) -> None:
    _, _, body = get(f"{live.url}api/decision?pod=default/huge&attempt=1")
    decision = msgspec.json.decode(body, type=answers.Decision)
    assert [one.reason for one in decision.record.rejections] == ["Insufficient cpu"]


def test_the_page_goes_back_in_time(live: LiveScheduler) -> None:
    live.create(pod("late", cpu="1"))
    until(lambda: overview(live).placed == 7)
    before = msgspec.json.decode(
        get(f"{live.url}api/pod?name=default/late")[2], type=answers.PodAnswer
    ).changes[0]
    at = f"at={before.seconds - 0.001}"
    _, _, body = get(f"{live.url}api/overview?{at}")
    assert msgspec.json.decode(body, type=answers.Overview).placed == 6
    live.delete_pod("late")
    until(lambda: overview(live).placed == 6)
    after = msgspec.json.decode(
        get(f"{live.url}api/pod?name=default/late")[2], type=answers.PodAnswer
    )
    assert after.pod.state == "gone"
    assert after.changes[-1].what == "pod_deleted"


def test_a_moment_before_the_first_one_is_not_remembered(live: LiveScheduler) -> None:
    status, _, body = get(f"{live.url}api/overview?at=-5")
    assert status == 404
    assert b"no longer remembers this moment" in body


def test_no_answer_has_the_whole_cluster(live: LiveScheduler) -> None:
    for path in ("pods", "nodes", "groups"):
        _, _, body = get(f"{live.url}api/{path}?limit=100000")
        assert len(json.loads(body)["rows"]) <= answers.PAGE_MAX


# ---- following ------------------------------------------------------------------------------


def test_a_browser_receives_a_change_within_seconds(live: LiveScheduler) -> None:
    with urlopen(f"{live.url}api/events", timeout=20) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        first = tick(stream)
        assert (first.replica, first.reason) == (LEADING, "")
        live.create(pod("heard", cpu="100m"))
        second = tick(stream)
        assert second.change > first.change
        assert second.seconds - first.seconds < 5
    live.delete_pod("heard")


def test_a_browser_receives_the_name_of_another_leader(live: LiveScheduler) -> None:
    with urlopen(f"{live.url}api/events", timeout=20) as stream:
        tick(stream)
        live.replica = ReplicaPhase(STANDBY, "other-replica")
        later = tick(stream)
        while later.replica != STANDBY:
            later = tick(stream)
        assert later.leader == "other-replica"
    live.replica = ReplicaPhase(LEADING)


def test_a_tick_waits_until_a_burst_of_pods_is_bound(live: LiveScheduler) -> None:
    """The browsers ask at each tick, on the event loop that sends the bindings."""
    in_flight = live.scheduler.queue.in_flight
    burst = [f"uid-{number}" for number in range(50)]
    ends: list[int] = []

    def end() -> None:
        ends.append(len(in_flight))
        in_flight.finish_all(burst)

    def begin() -> None:
        for uid in burst:
            in_flight.start(uid)
        live.cluster.create(pod("first-of-the-burst", cpu="100m"))
        live.loop.call_later(2 * TICK_SECONDS, end)

    with urlopen(f"{live.url}api/events", timeout=20) as stream:
        tick(stream)
        live.create(pod("before-the-burst", cpu="100m"))
        before = tick(stream)
        live.call(begin)
        later = tick(stream)
    assert ends, "the tick came before the end of the burst"
    assert later.change > before.change
    for name in ("first-of-the-burst", "before-the-burst"):
        live.delete_pod(name)
    until(lambda: overview(live).placed == 6)


def test_browsers_receive_the_reason_for_the_end_of_the_scheduler() -> None:
    with (
        live_scheduler(node("n1")) as scheduler,
        urlopen(f"{scheduler.url}api/events", timeout=20) as stream,
    ):
        tick(stream)
        scheduler.end("This replica lost the lease: b holds the lease.")
        later = tick(stream)
        while not later.reason:
            later = tick(stream)
        assert later.reason == "This replica lost the lease: b holds the lease."
        assert not stream.read().strip()


def tick(stream: Any) -> answers.Tick:
    while True:
        line = stream.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            return msgspec.json.decode(line[6:], type=answers.Tick)


# ---- access ---------------------------------------------------------------------------------


def test_the_page_is_served_below_its_path(live: LiveScheduler) -> None:
    status, headers, body = get(live.url.rstrip("/"))
    assert status == 200
    assert b'src="static/app.js"' in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert get(f"{live.url}static/app.js")[0] == 200
    assert get(f"{live.url}static/nothing.js")[0] == 404


@pytest.mark.parametrize(
    "headers", [{"Host": "example.com"}, {"Origin": "http://example.com"}, {"Origin": "null"}]
)
@pytest.mark.parametrize("path", ["", "api/overview", "api/events"])
def test_requests_from_pages_of_other_hosts_are_refused(
    live: LiveScheduler, headers: dict[str, str], path: str
) -> None:
    assert get(live.url + path, headers)[0] == 403


class OneToken:
    """Accepts one token, and records the paths."""

    def __init__(self) -> None:
        self.paths: set[str] = set()

    async def denial(
        self, path: str, authorization: str, owner: Owner | None, peer: str = ""
    ) -> Denial | None:
        self.paths.add(path)
        return None if authorization == "Bearer right" else Denial(401, "Unauthorized")


def test_beyond_loopback_the_page_has_the_access_control_of_all_endpoints() -> None:
    access = OneToken()
    with live_scheduler(node("n1"), access=access) as scheduler:
        page = scheduler.url
        assert get(page)[0] == 401
        assert get(page, {"Authorization": "Bearer wrong"})[0] == 401
        assert get(page, {"Authorization": "Bearer right"})[0] == 200
        cookie = {"Cookie": "bayplan-ui-token=right"}
        assert get(f"{page}api/overview", cookie)[0] == 200
        assert get(f"{page}api/overview", {**cookie, "Origin": "https://example.com"})[0] == 403
        # The page's cookie opens no other endpoint; one path is reviewed for the whole page.
        assert get(page.replace("/ui/", "/metrics"), cookie)[0] == 401
        assert access.paths == {"/ui/", "/metrics"}


def test_the_token_of_the_address_becomes_a_cookie() -> None:
    with live_scheduler(node("n1"), access=OneToken()) as scheduler:
        connection = HTTPConnection("127.0.0.1", scheduler.port, timeout=20)
        connection.request("GET", "/ui/?token=right")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Location"]) == (303, "/ui/")
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("bayplan-ui-token=right; ")
        for part in ("HttpOnly", "Path=/ui/", "SameSite=Strict"):
            assert part in cookie
        connection.close()


# ---- memory ---------------------------------------------------------------------------------


@final
class Unattended:
    """A scheduler and its page without a runner, with the clock of the test."""

    def __init__(self, changes_max: int) -> None:
        self.clock = ManualClock()
        memory = MemorySink()
        self.log = LiveStateLog(StateRing(100).put, self.clock.now)
        self.scheduler = Scheduler(
            config_from(DEFAULT_CONFIG),
            default_registry(),
            self.clock,
            journal=Journal([memory]),
            state_log=self.log,
        )
        sources = PageSources(
            scheduler=self.scheduler,
            memory=memory,
            log=self.log,
            clock=self.clock,
            name="test",
            phase=lambda: ReplicaPhase(LEADING),
        )
        self.subject = SchedulerSubject(sources, changes_max)

    def handle(self, change: EventType, kind: str, event_object: ApiObject) -> None:
        event = WatchEvent(change, kind, event_object)
        self.clock.advance_to(self.clock.now() + 1)
        self.scheduler.handle(event)
        while self.scheduler.schedule_one():
            pass


def test_the_page_of_a_scheduler_that_runs_for_long_has_the_last_changes() -> None:
    world = Unattended(changes_max=100)
    world.handle(EventType.ADDED, NODE, sample_node("n1", cpu=4))
    world.handle(EventType.ADDED, POD, api_pod("stays", cpu=900))
    for number in range(400):
        one = api_pod(f"short-{number}", cpu=1, node="n1")
        world.handle(EventType.ADDED, POD, one)
        world.handle(EventType.DELETED, POD, one)
    line = world.subject.timeline
    assert 100 <= line.last_change - line.first_change <= 125
    assert len(line.pods) <= 70
    assert len(line.seconds) <= 140
    assert len(line.placements) <= 70
    # A pod that still exists has its changes from the beginning.
    answer = pages.pod_answer(line.state(line.last_change), "default/stays")
    assert answer.pod.since_seconds == 2
    assert answer.cause is not None
    assert answer.attempts[-1].attempt == answer.pod.attempts > 300
    assert world.subject.tick().change > 2 * 400
    with pytest.raises(tables.NoSuchObject):
        pages.pod_answer(line.state(line.last_change), "default/short-0")


def test_the_end_of_a_pod_is_a_change() -> None:
    world = Unattended(changes_max=100)
    running = api_pod("job", cpu=1, node="n1")
    world.handle(EventType.ADDED, POD, running)
    ended = replace(running, status=replace(running.status, phase="Succeeded"))
    world.handle(EventType.DELETED, POD, ended)
    line = world.subject.timeline
    happenings = [ChangeKind(what) for what in line.changes.what[1:]]
    assert happenings == [ChangeKind.POD_CREATED, ChangeKind.POD_ENDED]


def test_a_bug_of_the_page_ends_the_page_and_not_the_scheduler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Unattended(changes_max=100)
    broken = replace(api_pod("broken"), spec=None)
    world.log.handled(WatchEvent(EventType.ADDED, POD, broken))
    source = world.subject.answer()
    assert source.phase == "failed"
    assert "The page records nothing more: internal error" in source.problem
    assert caplog.messages == ["The page ends, the scheduler goes on"]
    with pytest.raises(NotReady):
        _ = world.subject.timeline
    world.handle(EventType.ADDED, NODE, sample_node("n1", cpu=4))
    world.handle(EventType.ADDED, POD, api_pod("p", cpu=1))
    assert world.scheduler.metrics.bugs is not None
    assert [type(one).__name__ for one in world.scheduler.take_effects()]


def test_a_failure_on_the_page_stands_once_in_the_log(
    live: LiveScheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("name")

    monkeypatch.setattr(pages, "node_kinds", fail)
    (error,) = {json.loads(get(f"{live.url}api/kinds")[2])["error"] for _ in range(2)}
    assert error.startswith("internal error")
    lines = [one for one in caplog.records if one.name == "bayplan.page"]
    assert [line.getMessage() for line in lines] == ["A question of the page has no answer"]
    assert vars(lines[0])["bayplan_keys"] == {"err": error}


# ---- questions for the engine ---------------------------------------------------------------


def computed(live: LiveScheduler, question: str) -> Any:
    """The answer to a question that takes longer than one request."""
    answer: dict[str, Any] = {}

    def is_there() -> bool:
        status, _, body = get(f"{live.url}api/{question}", PAGE)
        assert status == 200, body
        answer.update(json.loads(body))
        return answer["phase"] != "computing"

    until(is_there)
    return answer


def test_what_if_answers_about_the_present_and_changes_nothing(live: LiveScheduler) -> None:
    before = overview(live)
    answer = computed(live, "whatif?drain=n0&force=1&snapshot=1")
    assert answer["phase"] == "ready", answer["problem"]
    value = answer["value"]
    assert value["before"]["nodes"] == value["after"]["nodes"] == 4
    assert value["after"]["schedulableNodes"] == 3
    on_node = json.loads(get(f"{live.url}api/pods?node=n0")[2])["total"]
    (gone,) = (one for one in value["reasons"] if one["outcome"] == "gone")
    assert gone["pods"] == on_node > 0
    grown = computed(live, "whatif?add=n0=2&snapshot=1")
    assert (grown["value"]["before"]["nodes"], grown["value"]["after"]["nodes"]) == (4, 6)
    assert overview(live).placed == before.placed


def test_questions_of_one_snapshot_are_about_one_state(live: LiveScheduler) -> None:
    question = "whatif?cordon=n1&snapshot="
    first = computed(live, f"{question}2")["value"]["before"]["pods"]
    live.create(pod("newer", cpu="100m"))
    until(lambda: json.loads(get(f"{live.url}api/pods?search=newer")[2])["total"] == 1)
    assert computed(live, f"{question}3")["value"]["before"]["pods"] == first + 1
    assert computed(live, f"{question}2")["value"]["before"]["pods"] == first
    live.delete_pod("newer")


def test_a_past_attempt_is_repeated_for_any_node(live: LiveScheduler) -> None:
    """The attempt that placed the pod, with the nodes as they were then."""
    page = json.loads(get(f"{live.url}api/pod?name=default/web-0")[2])
    node_name = page["pod"]["node"]
    for name in {f"n{index}" for index in range(4)}:
        verdict = computed(live, f"verdict?pod=default/web-0&attempt=1&node={name}")
        assert verdict["phase"] == "ready", verdict["problem"]
        assert verdict["value"]["isExact"]
        assert verdict["value"]["scores"][0]["node"] == name
        assert verdict["value"]["scores"][-1]["node"] == node_name


def test_an_attempt_that_is_too_old_is_not_repeated(
    live: LiveScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StateRing, "before", lambda ring, uid, attempt: None)
    verdict = computed(live, "verdict?pod=default/web-1&attempt=1&node=n0")
    assert verdict["phase"] == "failed"
    assert "no longer remembers" in verdict["problem"]


def test_a_pod_that_waits_gets_fixes(live: LiveScheduler) -> None:
    answer = computed(live, "explanation?pod=default/huge&snapshot=3")
    assert answer["phase"] == "ready", answer["problem"]
    assert answer["value"]["causes"][0]["reason"] == "Insufficient cpu"
    assert answer["value"]["fixes"]


def test_a_node_has_the_rejections_that_it_would_cause(live: LiveScheduler) -> None:
    answer = computed(live, "rejections?node=n0&snapshot=4")
    assert answer["value"]["isNow"]
    assert [row["reason"] for row in answer["value"]["rows"]] == ["Insufficient cpu"]


def test_the_engine_gives_no_answers_about_earlier_moments(live: LiveScheduler) -> None:
    status, _, body = get(f"{live.url}api/whatif?drain=n0&at=1", PAGE)
    assert status == 400
    assert b"the engine answers about the present" in body
