"""The page in a browser. `make test-ui` runs these tests against the installed wheel."""

import csv
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, Route, expect

import bayplan
from bayplan import rng
from bayplan.clock import wall_seconds
from bayplan.sim.output.run_folder import RunFolder
from tests.ui.browser.conftest import served
from tests.ui.browser.visits import MARKUP, go, in_thread, screenshot, settle, violations, visit
from tests.ui.example_run import example_workload, simulated

_DRAWS = rng.stream(18, "slider")
#: Positions of the slider, of 1000.
POSITIONS = sorted(_DRAWS.randint(1, 999) for _ in range(5))
VIEWS = {
    "overview": "overview?at=300&fixes=1",
    "nodes": "nodes?at=300&group=topology.kubernetes.io/zone&node=n3",
    "waiting": "waiting?at=280&fixes=1",
    "causes": "waiting?at=280&cause=4",
    "pods": "pods?at=300",
    "decision": "pods?name=default/huge&attempt=1&node=n4",
    "scores": "pods?name=default/job-013",
    "groups": "groups?at=300",
    "group": "groups?name=default/train",
}


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_view_is_accessible_and_as_wide_as_the_window(
    browser: Browser, url: str, dark: bool, phone: bool
) -> None:
    with visit(browser, url, dark=dark, phone=phone) as page:
        settle(page)
        for name, view in VIEWS.items():
            go(page, view)
            if "node=n4" in view:
                expect(page.get_by_text("Filter plugins have no objection")).to_be_visible()
            assert not violations(page), name
            overflow = "() => document.documentElement.scrollWidth - window.innerWidth"
            assert page.evaluate(overflow) <= 0, name
            kind = f"{name}{'-phone' if phone else ''}{'-dark' if dark else ''}"
            if kind in PICTURES:
                screenshot(page, kind)


#: The views in the pictures of docs/ui.md.
PICTURES = (
    "overview",
    "nodes-dark",
    "waiting",
    "scores",
    "group-dark",
    "decision",
    "overview-phone",
    "waiting-phone-dark",
)


@pytest.mark.parametrize("position", POSITIONS)
def test_the_slider_shows_the_state_in_which_a_simulation_ends(page: Page, position: int) -> None:
    end = page.evaluate("async () => (await (await fetch('api/sources')).json())[0].endSeconds")
    slider = page.get_by_role("slider", name="Time of the run")
    slider.evaluate(
        "(input, value) => { input.value = value;"
        " input.dispatchEvent(new Event('input', {bubbles: true})); }",
        str(position),
    )
    page.wait_for_function("() => location.hash.includes('at=')")
    settle(page)
    seconds = end * position / 1000
    stopped = in_thread(simulated(replace(example_workload(), until_seconds=seconds)).run)
    figures = page.locator(".figures").first.locator("b")
    placed = sum(usage.pods for usage in stopped.node_usage.values())
    expect(figures.nth(0)).to_have_text(f"{placed}")
    expect(figures.nth(1)).to_have_text(f"{stopped.counts.unschedulable}")
    expect(figures.nth(2)).to_have_text(f"{stopped.nodes}")
    expect(figures.nth(3)).to_have_text(f"{stopped.attempts}")


def test_play_moves_the_page_and_pause_stops_it(page: Page) -> None:
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(location.hash.match(/at=([0-9]+)/)?.[1]) > 20")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(400)
    moment = page.locator(".moment").inner_text()
    page.wait_for_timeout(800)
    assert page.locator(".moment").inner_text() == moment


def test_steps_move_by_one_change(page: Page) -> None:
    go(page, "overview?at=100")
    for name, at in (("One change forward", 101), ("One change back", 100)):
        page.get_by_role("button", name=name).click()
        expect(page.locator(".moment")).to_contain_text(f"change {at} of")


def test_waiting_rows_keep_their_places_over_ten_refreshes(page: Page) -> None:
    orders: set[tuple[str, ...]] = set()
    for _ in range(10):
        go(page, "waiting?at=280&cause=3")
        page.reload()
        settle(page)
        orders.add(tuple(page.locator(".cause-text h2, .cause-pods tbody th").all_inner_texts()))
    assert len(orders) == 1
    assert len(orders.pop()) >= 5


def test_a_pod_is_found_by_name_within_half_a_second(page: Page) -> None:
    go(page, "pods")
    search = page.get_by_role("searchbox", name="Pod name")
    start = wall_seconds()
    search.fill("job-042")
    # This checks at each frame; `expect` checks after 100, 350 and 850 ms.
    page.wait_for_function("() => document.querySelectorAll('table.pods tbody tr').length === 1")
    assert wall_seconds() - start < 0.5
    expect(page.locator("table.pods tbody th")).to_have_text("default/job-042")


def test_a_link_to_a_decision_survives_a_reload(page: Page) -> None:
    go(page, VIEWS["decision"])
    expect(page.get_by_text("n4: rejected by NodeResourcesFit")).to_be_visible()
    before = page.locator("main").inner_text()
    page.reload()
    settle(page)
    expect(page.get_by_text("n4: rejected by NodeResourcesFit")).to_be_visible()
    assert page.locator("main").inner_text() == before


def test_the_back_button_returns_to_the_previous_view(page: Page) -> None:
    go(page, "waiting?at=280&cause=2")
    page.locator(".cause-text a").first.click()
    page.wait_for_function("() => location.hash.startsWith('#/pods')")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Waiting")


def test_the_heat_map_can_be_used_with_the_keyboard(page: Page) -> None:
    go(page, "nodes?at=100")
    heat = page.get_by_role("img", name=re.compile("one cell per node"))
    heat.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".tip b")).to_have_text("n2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Node n2")).to_be_visible()


def test_the_heat_map_takes_keys_as_soon_as_it_no_longer_loads(page: Page) -> None:
    requests: list[Route] = []

    def hold(route: Route) -> None:
        requests.append(route)

    page.route("**/api/heat*", hold)
    page.evaluate("() => { location.hash = '#/nodes?at=100'; }")
    loading = page.locator(".heat .loading")
    expect(loading).to_be_visible()
    page.locator(".heat canvas").focus()
    # The keys are pressed in the same task in which the note goes away.
    page.evaluate(
        """() => {
          const heat = document.querySelector('.heat');
          new MutationObserver((_, observer) => {
            if (heat.querySelector('.loading')) return;
            observer.disconnect();
            const press = { key: 'ArrowRight', bubbles: true };
            heat.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', press));
          }).observe(heat, { childList: true });
        }"""
    )
    requests[0].continue_()
    expect(page.locator(".tip b")).to_have_text("n0")


def test_a_click_on_a_cell_opens_the_node(page: Page) -> None:
    go(page, "nodes?at=100")
    page.locator(".heat canvas").click(position={"x": 44 * 1 + 20, "y": 40})
    expect(page.get_by_role("complementary", name="Node n1")).to_be_visible()
    page.get_by_role("button", name="Close the node").click()
    expect(page.get_by_role("complementary")).to_have_count(0)


def test_a_saved_view_is_one_file_without_scripts(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    go(page, "overview?at=300")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save view").click()
    path = tmp_path / "view.html"
    download.value.save_as(path)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "default-src 'none'" in text
    with visit(browser, path.as_uri()) as saved:
        assert saved.locator("h1").inner_text() == "Overview"
        assert saved.locator("main img").count() == 6
        for image in saved.locator("main img").all():
            assert image.evaluate("(image) => image.naturalWidth") > 100
        fill = saved.locator(".bar-fill").first
        assert fill.evaluate("(bar) => bar.clientWidth") > 20


def test_a_table_is_downloaded_as_csv(page: Page, tmp_path: Path) -> None:
    go(page, "pods?search=job")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    path = tmp_path / "pods.csv"
    download.value.save_as(path)
    with path.open(newline="") as file:
        assert len(list(csv.reader(file))) == 1 + 60


def test_names_with_markup_are_text(browser: Browser, markup_url: str) -> None:
    with visit(browser, markup_url) as page:
        settle(page)
        for view in (
            "overview",
            "nodes",
            f"nodes?node={MARKUP}0",
            "waiting?cause=1",
            "pods",
            f"pods?name=default/{MARKUP}1",
            "groups",
            f"groups?name=default/{MARKUP}",
            f"pods?search={MARKUP}",
        ):
            go(page, view)
            assert page.locator("img[src='x']").count() == 0
            assert MARKUP in page.locator("body").inner_text()
        assert not violations(page)


def test_the_page_of_two_runs_shows_the_differences(browser: Browser, pair_url: str) -> None:
    with visit(browser, pair_url) as page:
        page.wait_for_selector("table.moved")
        settle(page)
        assert not violations(page)
        screenshot(page, "comparison")
        step = page.get_by_role("region", name="First difference").locator("tbody tr")
        pod = step.nth(0).locator("a").first.inner_text()
        nodes = [step.nth(row).locator("a").nth(1).inner_text() for row in (0, 1)]
        assert nodes[0] != nodes[1]
        step.nth(1).locator("a").first.click()
        page.wait_for_selector(".steps")
        assert page.locator("h1").inner_text() == pod
        expect(page.get_by_text(f"Outcome: placed on {nodes[1]}")).to_be_visible()
        runs = page.get_by_role("navigation", name="Runs")
        runs.get_by_role("link", name="least-allocated").click()
        expect(page.get_by_text(f"Outcome: placed on {nodes[0]}")).to_be_visible()


def test_two_equal_runs_have_no_differences(browser: Browser, run_folder: RunFolder) -> None:
    with served(run_folder, run_folder) as url, visit(browser, url) as page:
        equal = page.get_by_text("Both runs have the same decisions.")
        expect(equal).to_be_visible()


def test_an_unknown_view_is_reported(page: Page) -> None:
    page.evaluate("() => { location.hash = '#/nonsense'; }")
    expect(page.get_by_text("There is no view nonsense.")).to_be_visible()


def test_the_package_under_test_is_the_installed_one() -> None:
    """`make test-ui` names the folder; without it, the package of the checkout is tested."""
    folder = os.environ.get("BAYPLAN_UI_PACKAGE")
    assert folder is None or Path(bayplan.__file__).is_relative_to(Path(folder).resolve())


# ---- zoom -----------------------------------------------------------------------------------


def chart_span(page: Page) -> list[float]:
    """The span of the charts in the address."""
    return [float(number) for number in re.findall(r"(?:from|to)=([\d.]+)", page.url)]


def drag_over_a_chart(page: Page) -> None:
    box = page.locator(".chart .u-over").first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()


def test_a_drag_zooms_all_charts_and_a_double_click_shows_all(page: Page) -> None:
    go(page, "overview?at=300")
    page.locator(".charts").scroll_into_view_if_needed()
    end = page.evaluate("async () => (await (await fetch('api/sources')).json())[0].endSeconds")
    drag_over_a_chart(page)
    span = page.get_by_role("group", name="Span of the charts")
    expect(span.get_by_role("button", name="Show all")).to_be_enabled()
    start, stop = chart_span(page)
    assert abs(start - end * 0.25) < end * 0.03
    assert abs(stop - end * 0.5) < end * 0.03
    assert "at=300" in page.url
    settle(page)
    assert not violations(page)
    page.locator(".charts").scroll_into_view_if_needed()
    screenshot(page, "zoom")
    page.reload()
    settle(page)
    assert chart_span(page) == [start, stop]
    expect(span.get_by_role("status")).to_be_visible()
    page.locator(".chart .u-over").nth(1).dblclick()
    expect(span.get_by_role("button", name="Show all")).to_be_disabled()
    assert not chart_span(page)
    assert "at=300" in page.url


def test_the_keyboard_zooms(page: Page) -> None:
    go(page, "overview?at=300")
    span = page.get_by_role("group", name="Span of the charts")
    lengths: list[float] = []
    for name in ("Zoom in", "Zoom in", "Later", "Zoom out"):
        span.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        start, stop = chart_span(page)
        lengths.append(stop - start)
    assert lengths[0] > lengths[1] == pytest.approx(lengths[2], abs=0.01)
    assert lengths[3] == pytest.approx(2 * lengths[2], abs=0.01)
    span.get_by_role("button", name="Show all").focus()
    page.keyboard.press("Enter")
    assert not chart_span(page)


def test_the_charts_zoom_over_changes(page: Page) -> None:
    go(page, "overview?axis=changes")
    page.get_by_role("button", name="Zoom in").click()
    start, stop = chart_span(page)
    assert start == int(start) > 0
    assert stop > start
