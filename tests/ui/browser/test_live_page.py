"""The page of a running scheduler in a browser: updates, earlier moments, and the leader."""

import re
import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from bayplan import rng
from bayplan.api.objects import NODE, POD
from bayplan.ports import EventType, WatchEvent
from bayplan.serving.page import LEADING, STANDBY, ReplicaPhase
from bayplan.testing import api_pod
from bayplan.testing import node as sample_node
from tests.kit.manifests import Content, node, pod, pod_group
from tests.ui.browser.visits import MARKUP, go, screenshot, settle, violations, visit
from tests.ui.example_run import GROUP_LABEL, ZONE
from tests.ui.live_scheduler import LiveScheduler, live_scheduler

_ALLOCATABLE = {"cpu": "16", "memory": "64Gi", "pods": "40"}
#: No test sets this event.
_PAUSE = threading.Event()
_SIZES = ("500m", "1", "2", "4")
VIEWS = {
    "overview": "overview",
    "nodes": f"nodes?group={ZONE}&node=n3",
    "waiting": "waiting",
    "pods": "pods",
    "decision": "pods?name=default/huge",
    "group": "groups?name=default/train",
}
#: The views in the pictures of docs/ui.md.
PICTURES = ("live-overview", "live-waiting")


def _node(number: int) -> Content:
    labels = {ZONE: "abc"[number % 3], "pool": "general" if number < 30 else "spot"}
    taints = [{"key": "maintenance", "value": "disk", "effect": "NoSchedule"}]
    spec = {"taints": taints} if number % 13 == 5 else {}
    return node(f"n{number}", labels=labels, spec=spec, status={"allocatable": _ALLOCATABLE})


def _job(number: int) -> Content:
    cpu = rng.stream(number, "job").choice(_SIZES)
    return pod(f"job-{number:04d}", cpu=cpu)


@pytest.fixture(scope="module")
def live() -> Iterator[LiveScheduler]:
    nodes = [_node(number) for number in range(40)]
    huge = pod("huge", cpu="900")
    gated = [
        pod(f"gated-{number}", schedulingGates=[{"name": "example.com/quota"}])
        for number in range(3)
    ]
    members = [
        pod(f"train-{number}", labels={GROUP_LABEL: "train"}, cpu="2") for number in range(3)
    ]
    first = (*nodes, huge, *gated, pod_group("train", 4), *members)
    with live_scheduler(*first) as scheduler:
        for number in range(260):
            scheduler.create(_job(number))
            if number % 3 == 2 and number > 60:
                scheduler.delete_pod(f"job-{number - 60:04d}")
            _PAUSE.wait(0.02)
        scheduler.create(
            *(pod(f"large-{n}", cpu="15") for n in range(4)),
        )
        yield scheduler


@pytest.fixture
def page(browser: Browser, live: LiveScheduler) -> Iterator[Page]:
    with visit(browser, live.url) as opened:
        settle(opened)
        yield opened


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_live_view_is_accessible_and_as_wide_as_the_window(
    browser: Browser, live: LiveScheduler, dark: bool, phone: bool
) -> None:
    with visit(browser, live.url, dark=dark, phone=phone) as page:
        settle(page)
        for name, view in VIEWS.items():
            go(page, view)
            assert not violations(page), name
            overflow = "() => document.documentElement.scrollWidth - window.innerWidth"
            assert page.evaluate(overflow) <= 0, name
            kind = f"live-{name}{'-phone' if phone else ''}{'-dark' if dark else ''}"
            if kind in PICTURES:
                screenshot(page, kind)


def test_what_if_answers_about_the_present(page: Page, live: LiveScheduler) -> None:
    go(page, "whatif?drain=n3&force=1")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("drain n3")
    expect(page.get_by_label("Change").get_by_role("option")).to_have_count(7)
    assert not violations(page)
    # The moment of the state is above the answer.
    moment_box, answer_box = page.get_by_text("The state at").bounding_box(), answer.bounding_box()
    assert moment_box is not None
    assert answer_box is not None
    assert moment_box["y"] < answer_box["y"]
    screenshot(page, "live-whatif")
    first = page.get_by_text("The state at").inner_text()
    page.wait_for_timeout(1100)
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_text("The state at")).not_to_have_text(first)
    expect(page.get_by_role("button", name="Ask again")).to_be_enabled()
    expect(answer).to_contain_text("drain n3")
    # The scheduler has not drained the node.
    assert live.scheduler.cache.table.row_of["n3"] >= 0
    go(page, "whatif?drain=n3&at=1")
    page.get_by_role("link", name="Go to the present").click()
    expect(page.get_by_role("heading", name="What if")).to_be_visible()
    assert "at=" not in page.url


def test_a_pod_that_waits_has_fixes_now(page: Page) -> None:
    go(page, "pods?name=default/huge")
    page.get_by_role("button", name="Find fixes now").click()
    expect(page.get_by_role("region", name="Fixes")).to_contain_text("tried in the engine at")


def test_a_past_attempt_is_repeated_for_the_node_that_the_user_names(page: Page) -> None:
    go(page, "pods?name=default/job-0001&attempt=1")
    page.get_by_label("Node", exact=True).fill("n3")
    page.get_by_role("button", name="Explain").click()
    other = page.locator("section.other")
    expect(other).to_contain_text("Filter plugins have no objection")
    expect(other.get_by_role("region", name="Scores of n3")).to_contain_text("Total")
    assert not violations(page)


def test_the_page_follows_the_scheduler(page: Page, live: LiveScheduler) -> None:
    figure = page.locator(".figures").first.locator("b").first
    before = int(figure.inner_text().replace(",", ""))
    expect(page.locator(".replica-state")).to_have_text("Leading")
    live.create(*(pod(f"more-{number}", cpu="100m") for number in range(3)))
    expect(figure).to_have_text(f"{before + 3:,}")
    for number in range(3):
        live.delete_pod(f"more-{number}")
    expect(figure).to_have_text(f"{before:,}")


def test_a_paused_page_stays_at_its_moment(page: Page, live: LiveScheduler) -> None:
    figure = page.locator(".figures").first.locator("b").first
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("() => location.hash.includes('at=')")
    before = figure.inner_text()
    live.create(pod("meanwhile", cpu="100m"))
    page.wait_for_timeout(2500)
    assert figure.inner_text() == before
    page.get_by_role("button", name="Follow the present").click()
    expect(figure).to_have_text(f"{int(before.replace(',', '')) + 1:,}")
    live.delete_pod("meanwhile")


def test_the_slider_goes_back_to_the_first_moment(page: Page) -> None:
    slider = page.get_by_role("slider", name="Time of the scheduler")
    slider.evaluate(
        "input => { input.value = 0; input.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    expect(page.locator(".moment")).to_contain_text("remembered since")
    expect(page.locator(".figures").first.locator("b").first).to_have_text("0")
    # The link to the moment still shows it after a reload.
    page.reload()
    settle(page)
    expect(page.locator(".figures").first.locator("b").first).to_have_text("0")


def test_rows_keep_their_places_over_ten_refreshes(page: Page, live: LiveScheduler) -> None:
    go(page, "waiting?cause=1")
    orders: set[tuple[str, ...]] = set()
    for number in range(10):
        live.create(pod(f"tick-{number}", cpu="100m"))
        page.wait_for_timeout(1200)
        orders.add(tuple(page.locator(".cause-text h2, .cause-pods tbody th").all_inner_texts()))
    assert len(orders) == 1
    assert len(orders.pop()) >= 3


def test_the_page_names_the_leader(page: Page, live: LiveScheduler) -> None:
    live.replica = ReplicaPhase(STANDBY, MARKUP)
    state = page.locator(".replica")
    expect(state).to_contain_text("Standby")
    expect(state).to_contain_text(f"This replica watches and schedules nothing: {MARKUP} leads.")
    live.replica = ReplicaPhase(LEADING)
    expect(state).to_contain_text("Leading")


def test_names_and_labels_that_are_markup_are_text(browser: Browser, live: LiveScheduler) -> None:
    """API servers refuse such names, so that the test sends the events to the page directly."""
    assert live.page is not None
    strange = sample_node(MARKUP, labels={"note": MARKUP})
    for kind, one in ((NODE, strange), (POD, api_pod(MARKUP, cpu=1))):
        live.call(live.page.subject.sources.log.handled, WatchEvent(EventType.ADDED, kind, one))
    with visit(browser, live.url) as page:
        settle(page)
        expect(
            page.locator(".changes tbody th, .changes td.name", has_text=MARKUP).first
        ).to_be_visible()
        go(page, f"nodes?node={quote(MARKUP)}")
        expect(page.locator(".panel h2").first).to_have_text(MARKUP)
        page.get_by_text("Labels (").click()
        expect(page.locator(".panel .labels")).to_contain_text(MARKUP)
        go(page, f"pods?name={quote('default/' + MARKUP)}")
        expect(page.locator("main h1")).to_have_text(f"default/{MARKUP}")
        assert not page.locator("img[src=x]").count()
    live.call(live.page.subject.sources.log.handled, WatchEvent(EventType.DELETED, NODE, strange))


def test_the_page_reports_the_end_and_the_restart_of_a_scheduler(browser: Browser) -> None:
    with live_scheduler(node("n1")) as scheduler, browser.new_context() as context:
        page = context.new_page()
        page.goto(scheduler.url)
        expect(page.locator("main h1")).to_be_visible()
        scheduler.end("This replica lost the lease: b holds the lease.")
        state = page.locator(".replica")
        expect(state).to_contain_text("This replica lost the lease: b holds the lease.")
        expect(state).to_contain_text("The page shows what was last")
        scheduler.serve_again()
        expect(state).to_contain_text("The scheduler was started again")
        expect(state).to_contain_text(re.compile("Leading"))
