"""The page without a mouse: each control is reached and seen, and the focus does not get lost."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.kit.manifests import node, pod
from tests.ui.browser.visits import go, settle, visit
from tests.ui.live_scheduler import live_scheduler

VIEWS = (
    "overview?at=300&from=200&to=600",
    "nodes?at=300&group=topology.kubernetes.io/zone&node=n3",
    "waiting?at=280&cause=4",
    "pods?at=300",
    "pods?name=default/huge&attempt=1&node=n4&at=300",
    "groups?at=300",
    "groups?name=default/train&at=300",
    "whatif?at=300&drain=n0",
)
#: Everything that a mouse could use.
_CONTROLS = """() => {
  const all = 'a[href], button, input, select, summary, [tabindex="0"]';
  const shown = [...document.querySelectorAll(all)].filter(one => one.checkVisibility());
  shown.forEach((one, index) => { one.dataset.control = index; });
  return shown.length;
}"""
#: The control with the focus: its number, and what is wrong with it.
_FOCUS = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const box = one.getClientRects()[0], style = getComputedStyle(one), wrong = [];
  if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) wrong.push('no ring');
  if (box.bottom < 0 || box.top > innerHeight) wrong.push('outside of the window');
  const x = Math.min(Math.max(box.left + Math.min(box.width / 2, 30), 1), innerWidth - 2);
  const over = document.elementFromPoint(x, Math.max(box.top, 0) + Math.min(box.height / 2, 8));
  if (over && !one.contains(over) && !over.contains(one)) wrong.push('covered');
  return {number: Number(one.dataset.control), wrong, text: one.outerHTML.slice(0, 120)};
}"""
_FOCUSED_TEXT = "() => document.activeElement.textContent"


def walk(page: Page, key: str, count: int) -> list[dict[str, Any]]:
    """The controls that ``count`` presses of a key reach."""
    reached: list[dict[str, Any]] = []
    for _ in range(count):
        page.keyboard.press(key)
        focus = page.evaluate(_FOCUS)
        if focus is not None:
            reached.append(focus)
    return reached


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_tab_reaches_each_control_in_order_with_a_ring_that_nothing_covers(
    browser: Browser, url: str, dark: bool, phone: bool
) -> None:
    with visit(browser, url, dark=dark, phone=phone) as page:
        settle(page)
        for view in VIEWS:
            # A view of its own: the focus is at the beginning of the page.
            page.goto("about:blank")
            page.goto(f"{url}#/{view}")
            settle(page)
            count = page.evaluate(_CONTROLS)
            there = walk(page, "Tab", count)
            assert [one["number"] for one in there] == list(range(count)), view
            back = walk(page, "Shift+Tab", count - 1)
            assert [one["number"] for one in back] == list(range(count - 2, -1, -1)), view
            wrong = [(view, one["text"], one["wrong"]) for one in there + back if one["wrong"]]
            assert not wrong


def test_a_link_gives_the_focus_to_the_beginning_of_the_view_that_it_opens(page: Page) -> None:
    go(page, "pods?name=default/huge&at=300")
    page.get_by_role("button", name=re.compile("Show all .* changes")).press("Enter")
    page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
    go(page, "overview?at=300")
    link = page.locator("table.changes tbody a").first
    name = link.inner_text()
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name)
    expect(page.locator("main")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("Tab")
    expect(page.locator(".crumbs a").first).to_be_focused()


def test_a_node_that_is_opened_has_the_focus_until_it_is_closed(page: Page) -> None:
    go(page, "nodes?at=100")
    heat = page.locator(".heat canvas")
    heat.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".tip b")).to_have_text("n2")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Node n2")
    expect(panel).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Close the node")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(heat).to_be_focused()
    # The map goes on at the cell where it was.
    expect(page.locator(".tip b")).to_have_text("n2")
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_have_count(0)
    link = page.get_by_role("region", name="Nodes").get_by_role("link", name="n3")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Node n3")).to_be_focused()
    page.get_by_role("button", name="Close the node").focus()
    page.keyboard.press("Enter")
    expect(link).to_be_focused()


def test_a_node_in_the_address_takes_no_focus(page: Page) -> None:
    go(page, "nodes?at=100&node=n2")
    page.reload()
    settle(page)
    expect(page.get_by_role("complementary", name="Node n2")).to_be_visible()
    assert page.evaluate("() => document.activeElement === document.body")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(name))


@pytest.mark.parametrize(
    ("view", "name", "after"),
    [
        ("overview?at=300&from=200&to=600", "Show all", "Show all"),
        ("overview?at=1", "One change back", "One change back"),
        ("overview?at=584", "One change forward", "One change forward"),
        ("pods?at=300", "Next", "Next"),
        ("pods?name=default/huge", "Show all .* attempts", "Show 6 attempts"),
        ("pods?name=default/huge", "Show all .* changes", "Show 12 changes"),
        ("waiting?at=280", "Show pods", "Hide pods"),
        ("waiting?at=280&cause=1", "Hide pods", "Show pods"),
    ],
)
def test_a_button_keeps_the_focus_after_its_work(
    page: Page, view: str, name: str, after: str
) -> None:
    go(page, view)
    pressed = button(page, name).first
    pressed.focus()
    page.keyboard.press("Enter")
    settle(page)
    page.wait_for_function(
        "text => { const one = document.activeElement;"
        " return (one.ariaLabel || one.textContent) === text; }",
        arg=after,
    )
    for _ in range(2):  # A button that has nothing left to do does nothing.
        if after == name:
            page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_accessible_name(re.compile(after))


@pytest.mark.parametrize(
    ("view", "name", "part"),
    [
        ("pods?name=default/huge&at=300", "Find fixes", "Fixes"),
        ("nodes?at=300&node=n3", "Show what it rejected", "What it rejected"),
        ("whatif?at=300&drain=n0", "Leave out: drain n0", "Choice of changes"),
    ],
)
def test_a_button_that_goes_gives_its_focus_to_the_part_around_it(
    page: Page, view: str, name: str, part: str
) -> None:
    go(page, view)
    button(page, name).focus()
    page.keyboard.press("Enter")
    expect(button(page, name)).to_have_count(0)
    expect(page.get_by_label(part, exact=True)).to_be_focused()


def test_play_and_pause_are_one_button_for_the_space_bar(page: Page) -> None:
    go(page, "overview?at=1")
    button(page, "Play").focus()
    page.keyboard.press("Space")
    page.wait_for_function("() => Number(location.hash.match(/at=([0-9]+)/)?.[1]) > 20")
    expect(button(page, "Pause")).to_be_focused()
    page.keyboard.press("Space")
    expect(button(page, "Play")).to_be_focused()


def test_the_arrow_keys_move_the_slider_to_both_ends(page: Page) -> None:
    slider = page.get_by_role("slider", name="Time of the run")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".moment b")).to_have_text("0 s")
    # A change is a position of the slider: no key press leads back to where it was.
    moments = {"0 s"}
    for _ in range(4):
        page.keyboard.press("PageUp")
        expect(page.locator(".moment b")).not_to_have_text(re.compile(f"^({'|'.join(moments)})$"))
        moments.add(page.locator(".moment b").inner_text())
    page.keyboard.press("End")
    expect(page.locator(".moment")).to_have_text(re.compile(r"change (\d+) of \1$"))
    expect(slider).to_be_focused()


def test_a_what_if_needs_no_mouse(page: Page) -> None:
    go(page, "whatif?at=300")
    page.get_by_role("combobox", name="Change").focus()
    page.keyboard.type("Add")
    kind = page.get_by_role("combobox", name="Kind of node")
    expect(kind).to_be_visible()
    page.keyboard.press("Tab")
    expect(kind).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    expect(button(page, "Add the change")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator(".verdict")).to_contain_text("add 2 nodes like n0")
    expect(button(page, "Add the change")).to_be_focused()
    # The same change again takes the place of the first one.
    page.keyboard.press("Enter")
    assert page.url.count("n0") == 1


def test_a_view_and_a_table_are_saved_with_the_keyboard(page: Page) -> None:
    go(page, "pods?at=300")
    for control, file in (
        (button(page, "Save view"), "bayplan-pods.html"),
        (page.get_by_role("link", name="CSV"), "pods.csv"),
    ):
        control.focus()
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert download.value.suggested_filename == file
        expect(control).to_be_focused()


def test_two_runs_are_walked_with_the_keyboard(browser: Browser, pair_url: str) -> None:
    with visit(browser, pair_url) as page:
        page.wait_for_selector("table.moved")
        settle(page)
        count = page.evaluate(_CONTROLS)
        there = walk(page, "Tab", count)
        assert [one["number"] for one in there] == list(range(count))
        assert not [one for one in there if one["wrong"]]
        link = page.get_by_role("navigation", name="Runs").get_by_role("link").nth(2)
        link.focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Overview")
        expect(link).to_be_focused()


def test_a_refresh_takes_the_focus_from_nobody(browser: Browser) -> None:
    small = [pod(f"web-{number}", cpu="100m") for number in range(30)]
    huge = [pod(f"huge-{number}", cpu="900") for number in range(3)]
    with live_scheduler(node("n1"), *huge) as scheduler, browser.new_context() as context:
        page = context.new_page()
        page.goto(scheduler.url)
        page.wait_for_selector("table.changes a")
        figure = page.locator(".figures b").first
        link = page.locator("table.changes tbody a").last
        name = link.inner_text()
        link.focus()
        scheduler.create(*small)
        expect(figure).to_have_text("30")
        # Newer changes wait until the focus leaves the table.
        assert page.evaluate(_FOCUSED_TEXT) == name
        page.get_by_role("button", name="Pause").focus()
        expect(page.locator("table.changes tbody")).to_contain_text("default/web-")
        page.goto(f"{scheduler.url}#/waiting?cause=1")
        page.get_by_role("link", name="default/huge-1").last.focus()
        scheduler.delete_pod("huge-0")
        expect(page.locator("table.pods tbody tr")).to_have_count(2)
        assert page.evaluate(_FOCUSED_TEXT) == "default/huge-1"
        scheduler.delete_pod("huge-1")
        expect(page.locator("table.pods tbody tr")).to_have_count(1)
        expect(page.get_by_role("region", name="Pods")).to_be_focused()


def test_a_slash_searches_everything_and_a_question_mark_lists_the_keys(page: Page) -> None:
    go(page, "overview")
    page.keyboard.press("/")
    window = page.get_by_role("dialog", name="Search")
    expect(window.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("huge")
    expect(window.locator(".results a")).to_have_text(["default/huge"])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("default/huge")
    expect(window).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text(
        "search pods, nodes, groups and all objects"
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_table_is_sorted_and_filtered_from_the_keyboard_and_its_address_has_both(
    page: Page,
) -> None:
    go(page, "pods?at=300")
    button(page, "Pod").first.focus()
    page.keyboard.press("Enter")
    heading = page.get_by_role("columnheader", name="Pod")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    page.get_by_label("State").select_option("waiting")
    expect(page.locator("tbody .state").first).to_have_text("waiting")
    assert {"sort=-name", "state=waiting"} <= set(page.url.partition("?")[2].split("&"))
