"""Data that no page is designed for: long names, many causes, many resources, nothing at all."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.history.stored_runs import write_run
from tests.kit.manifests import Content, node, pod
from tests.sim.runs import workload
from tests.ui.browser.conftest import served
from tests.ui.browser.visits import go, in_thread, settle, violations, visit

#: The longest name that an API server accepts: 253 characters.
LONG = ".".join((*(letter * 62 for letter in "wxyz"), "e"))
LONG_NODE = f"a{LONG[1:]}"
_CAUSES = 300
_RESOURCES = ("nvidia.com/gpu", "hugepages-2Mi", "vpc.amazonaws.com/pod-eni", "ephemeral-storage")
_MORE = tuple(f"example.com/a-device-with-a-long-name-{number}" for number in range(6))
_WIDTH = "() => document.documentElement.scrollWidth - window.innerWidth"
VIEWS = ("overview", "nodes", "waiting", "pods", "whatif")
#: The tables that are wider than the part of the page that they are in.
_CUT_OFF = """() => [...document.querySelectorAll('table.usage, table.compare')]
  .filter(one => one.getBoundingClientRect().right
    > one.parentElement.getBoundingClientRect().right + 1)
  .map(one => one.innerText)"""


def _ugly() -> Sequence[Content]:
    offered = {"cpu": "8000", "memory": "900Ti", "pods": "110", **dict.fromkeys(_RESOURCES, "64")}
    offered |= {**dict.fromkeys(_MORE, "123456"), "hugepages-2Mi": "64Mi"}
    names = (LONG_NODE, *(f"n{number}" for number in range(4)))
    nodes = [
        node(name, labels={"zone": "z" * 63}, status={"allocatable": offered}) for name in names
    ]
    apart = [_pod(f"needs-{number}", f"example.com/device-{number}") for number in range(_CAUSES)]
    return (*nodes, *apart, pod(LONG, nodeName=LONG_NODE), _pod("gpu", "nvidia.com/gpu"))


def _pod(name: str, resource: str) -> Content:
    amounts = {resource: "1"}
    one = {"name": "c", "image": "app", "resources": {"requests": amounts, "limits": amounts}}
    return pod(name, containers=[one])


@pytest.fixture(scope="module")
def ugly_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("ugly") / "run"
    with served(in_thread(write_run, path, workload(*_ugly()))) as address:
        yield address


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_ugly_data_fits_into_the_window(browser: Browser, ugly_url: str, phone: bool) -> None:
    with visit(browser, ugly_url, phone=phone) as page:
        page.wait_for_selector(".tabs")
        settle(page)
        views = (
            *VIEWS,
            f"nodes?group=zone&node={LONG_NODE}",
            f"pods?name=default/{LONG}",
            "pods?name=default/gpu",
            "whatif?drain=n1&force=1",
        )
        for view in views:
            go(page, view)
            if "drain" in view:
                expect(page.get_by_role("region", name="Answer")).to_be_visible()
            assert page.evaluate(_WIDTH) <= 0, view
            assert not page.evaluate(_CUT_OFF), view
            assert not violations(page), view


def test_a_long_name_in_a_table_has_its_beginning_and_its_end(
    browser: Browser, ugly_url: str
) -> None:
    with visit(browser, ugly_url) as page:
        page.wait_for_selector(".tabs")
        go(page, "pods?search=wwww")
        link = page.locator("table.pods tbody th a")
        subject = link.inner_text()
        assert subject.startswith("default/www")
        assert subject.endswith("zz.e")
        assert len(subject) < 70
        expect(link.locator("span")).to_have_attribute("title", f"default/{LONG}")
        link.click()
        expect(page.locator("h1")).to_have_text(f"default/{LONG}")


def test_the_charts_have_the_resources_that_pods_request(browser: Browser, ugly_url: str) -> None:
    with visit(browser, ugly_url) as page:
        page.wait_for_selector(".tabs")
        go(page, "overview")
        chart = page.locator("figure").nth(1)
        expect(chart).to_contain_text("6 of 13 resources")
        expect(chart.locator(".u-legend")).to_contain_text("nvidia.com/gpu")


def test_a_what_if_shows_few_of_many_reasons_at_first(browser: Browser, ugly_url: str) -> None:
    with visit(browser, ugly_url) as page:
        page.wait_for_selector(".tabs")
        go(page, "whatif?cordon=n1")
        page.get_by_text("pods waited before, too").click()
        expect(page.locator(".cards li")).to_have_count(10)
        page.get_by_role("button", name="Show all 300 reasons").click()
        expect(page.locator(".cards li")).to_have_count(300)
        page.get_by_role("button", name="Show 10 reasons").click()
        expect(page.locator(".cards li")).to_have_count(10)


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        ((), {"overview": "There is no node at this moment.", "waiting": "No pod waits"}),
        ((pod("only"),), {"overview": "1\npod waiting", "nodes": "so every pod waits"}),
        ((node("n1"),), {"overview": "1\nnode", "pods": "No pod has been created yet."}),
        ((node("n1"), pod("only")), {"overview": "1\npod on nodes", "waiting": "No pod waits"}),
    ],
    ids=["nothing", "no node", "no pod", "one pod"],
)
def test_little_data_is_said_in_words(
    browser: Browser, tmp_path: Path, contents: Sequence[Content], texts: dict[str, str]
) -> None:
    folder = in_thread(write_run, tmp_path / "run", workload(*contents))
    with served(folder) as url, visit(browser, url) as page:
        page.wait_for_selector(".tabs")
        for view in VIEWS:
            go(page, view)
            assert texts.get(view, "") in page.locator("main").inner_text()
            assert not violations(page), view
