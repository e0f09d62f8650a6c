"""The page of `bayplan compare` in a browser: what differs, run by run and over the run."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison
from bayplan.ui.work import ComparisonSubject
from tests.comparison.kit import run
from tests.ui.browser.conftest import served_subjects
from tests.ui.browser.visits import MARKUP, screenshot, settle, violations, visit
from tests.ui.two_run_subjects import runs_of_eight_nodes


def _run(configuration: str, seed: int, placed: float) -> Run:
    one = run(configuration, seed, placed=placed, nodes_used=3.0)
    curve = [(0.0, 1.0), (10.0, placed)]
    result = msgspec.structs.replace(one.result, curves={"y % over x %": curve})
    return msgspec.structs.replace(one, result=result)


@pytest.fixture(scope="module")
def comparison_url() -> Iterator[str]:
    """Three seeds of a baseline and of a configuration whose name is markup."""
    runs = [_run("pack", seed, 10.0 + seed) for seed in range(3)]
    runs += [_run(MARKUP, seed, 14.0 + 2 * seed) for seed in range(3)]
    with served_subjects(ComparisonSubject(Comparison(runs, "pack"), "packing")) as address:
        yield address


@pytest.fixture(params=[False, True], ids=["wide", "phone in the dark"])
def page(browser: Browser, comparison_url: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    with visit(browser, comparison_url, dark=request.param, phone=request.param) as opened:
        settle(opened)
        yield opened


def test_each_run_is_a_dot_and_each_configuration_has_its_curve(page: Page) -> None:
    lines = page.get_by_role("img")
    expect(lines.first).to_have_attribute("aria-label", "pack: mean 11, from 10 to 12")
    expect(lines.nth(1)).to_have_attribute("aria-label", f"{MARKUP}: mean 16, from 14 to 18")
    expect(lines).to_have_count(2)
    expect(lines.first.locator("circle")).to_have_count(3)
    expect(lines.first.locator("circle title").last).to_have_text("seed 2: 12")
    curves = page.locator("figure.chart")
    expect(curves).to_have_count(1)
    expect(curves.locator("figcaption")).to_have_text("y % over x %")
    expect(curves.locator(".u-series")).to_have_count(3)
    assert not violations(page)
    screenshot(page, "comparison")


def test_a_node_outside_the_record_of_a_run_is_one_link_from_its_scores(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        served_subjects(*runs_of_eight_nodes(tmp_path)) as address,
        visit(browser, f"{address}#/comparison") as page,
    ):
        settle(page)
        assert not violations(page)
        page.get_by_role("link", name="Repeat the attempt and compare").first.click()
        expect(page.get_by_role("region", name="Scores of n1")).to_be_visible()
        expect(page.get_by_text("7 other nodes scored higher, 0 as high.")).to_be_visible()
