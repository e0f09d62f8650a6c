"""What-if, fixes, rejections and the report of a shadow, in a browser."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.manifests import node, pod, pod_group
from tests.ui.browser.conftest import served_paths
from tests.ui.browser.visits import MARKUP, go, in_thread, screenshot, settle, violations, visit
from tests.ui.example_cluster import CLUSTER
from tests.ui.example_shadow import write_shadow


@pytest.fixture(scope="module")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
    path.write_text(CLUSTER)
    with served_paths(path) as address:
        yield address


@pytest.fixture(scope="module")
def shadow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("shadow") / "night"
    in_thread(write_shadow, folder)
    with served_paths(folder) as address:
        yield address


@pytest.fixture
def cluster_page(browser: Browser, cluster_url: str) -> Iterator[Page]:
    with visit(browser, cluster_url) as opened:
        settle(opened)
        yield opened


def answered(page: Page) -> None:
    """Wait for the engine's answer."""
    expect(page.get_by_role("region", name="Answer")).to_be_visible()
    expect(page.get_by_text("The engine places the pods…")).to_have_count(0)


# ---- what-if --------------------------------------------------------------------------------


def test_a_drain_is_chosen_with_the_keyboard_and_survives_a_reload(page: Page) -> None:
    go(page, "whatif?at=300")
    expect(page.get_by_text("No change is chosen.")).to_be_visible()
    page.get_by_role("combobox", name="Node").focus()
    page.keyboard.type("n0")
    page.keyboard.press("Enter")
    answered(page)
    expect(page.locator(".verdict")).to_contain_text("6 pods cannot be evicted")
    page.get_by_role("checkbox").check()
    expect(page.locator(".verdict")).to_contain_text("would not be created again")
    answered(page)
    assert not violations(page)
    before = page.locator("main").inner_text()
    page.reload()
    settle(page)
    answered(page)
    assert page.locator("main").inner_text() == before


def test_added_nodes_take_pending_pods(page: Page) -> None:
    go(page, "whatif?at=300")
    page.get_by_role("combobox", name="Change").select_option("add")
    kinds = page.get_by_role("combobox", name="Kind of node")
    expect(kinds).to_be_visible()
    kinds.select_option(label="2 nodes like n0: 8 cpu, 32Gi memory")
    page.get_by_role("spinbutton", name="Nodes").fill("2")
    page.get_by_role("button", name="Add the change").click()
    answered(page)
    expect(page.locator(".verdict")).to_contain_text(
        "add 2 nodes like n0: no pod is left without a node"
    )
    moves = page.get_by_role("region", name="Pods that get a node")
    expect(moves.locator("tbody tr").first).to_contain_text("n0-new-")
    screenshot(page, "whatif")
    page.get_by_role("button", name="Leave out: add 2 nodes like n0").click()
    expect(page.get_by_text("No change is chosen.")).to_be_visible()


def test_a_workload_is_scaled_and_a_budget_blocks(cluster_page: Page, tmp_path: Path) -> None:
    page = cluster_page
    go(page, "whatif?drain=a")
    page.get_by_role("combobox", name="Change").select_option("scale")
    workloads = page.get_by_role("combobox", name="Workload")
    expect(workloads).to_be_visible()
    workloads.select_option(label="Deployment default/web (2 pods)")
    page.get_by_role("spinbutton", name="Replicas").fill("12")
    page.get_by_role("button", name="Add the change").click()
    answered(page)
    expect(page.locator(".verdict")).to_contain_text("scale Deployment default/web to 12")
    expect(page.get_by_text("budget default/one-at-a-time", exact=True)).to_be_visible()
    assert not violations(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of all pods").click()
    path = tmp_path / "whatif.csv"
    download.value.save_as(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    outcomes = {"gets a node", "left over", "not evicted", "waited before, too"}
    assert {row["outcome"] for row in rows} == outcomes


def test_a_file_is_applied_and_the_pods_without_a_node_stand_first(
    cluster_page: Page, tmp_path: Path
) -> None:
    page = cluster_page
    (web,) = (text for text in CLUSTER.split("---") if "kind: Deployment" in text)
    path = tmp_path / "web.yaml"
    path.write_text(web.replace("replicas: 2", "replicas: 9"))
    go(page, "whatif")
    page.get_by_role("combobox", name="Change").select_option("apply")
    page.get_by_label("File").set_input_files(path)
    page.get_by_role("button", name="Add the change").click()
    answered(page)
    expect(page.locator(".verdict")).to_contain_text("2 pods would be left without a node")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.locator("h2, summary")).to_have_text(
        [
            "Newly without a node",
            "Before and after",
            "5 pods get a node",
            "1 pod waited before, too",
            "Notes",
        ]
    )
    expect(answer.get_by_role("region", name="Pods that get a node")).to_be_hidden()
    page.reload()
    settle(page)
    answered(page)
    expect(page.get_by_role("textbox")).to_have_value(re.compile("replicas: 9"))


def test_another_configuration_is_pasted(cluster_page: Page) -> None:
    page = cluster_page
    go(page, "whatif")
    page.get_by_role("combobox", name="Change").select_option("config")
    page.get_by_role("textbox").fill("kind: KubeSchedulerConfiguration")
    page.get_by_role("button", name="Add the change").click()
    expect(page.get_by_role("alert")).to_contain_text("apiVersion: missing")
    assert not violations(page)


def test_a_what_if_is_saved_as_one_file(browser: Browser, page: Page, tmp_path: Path) -> None:
    go(page, "whatif?at=300&drain=n0&force=1")
    answered(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save view").click()
    path = tmp_path / "whatif.html"
    download.value.save_as(path)
    with visit(browser, path.as_uri()) as saved:
        assert saved.locator("h1").inner_text() == "What if"
        expect(saved.locator(".verdict")).to_contain_text("drain n0")
        assert saved.locator("script, input, select, button").count() == 0


def test_the_phone_in_the_dark_shows_what_if_and_fixes(browser: Browser, url: str) -> None:
    with visit(browser, url, dark=True, phone=True) as page:
        settle(page)
        for view, part in (
            ("whatif?at=300&add=n3=2", ".verdict"),
            ("pods?name=default/huge", ".cards"),
        ):
            go(page, view)
            page.wait_for_selector(part)
            settle(page)
            assert not violations(page), view
            width = "() => document.documentElement.scrollWidth - window.innerWidth"
            assert page.evaluate(width) <= 0, view


# ---- pods and nodes -------------------------------------------------------------------------


def test_fixes_are_tried_at_the_moment_of_the_page(page: Page) -> None:
    go(page, "pods?name=default/huge&at=300")
    page.get_by_role("button", name="Find fixes at this moment").click()
    fixes = page.get_by_role("region", name="Fixes")
    expect(fixes.locator(".fixes li").first).to_contain_text(
        "lower the request for cpu from 900 to 1"
    )
    assert not violations(page)
    page.reload()
    settle(page)
    expect(fixes.locator(".fixes li").first).to_be_visible()
    screenshot(page, "fixes")


def test_earlier_attempts_are_links(page: Page) -> None:
    go(page, "pods?name=default/huge&at=300")
    attempts = page.get_by_role("region", name="Attempts")
    newest = attempts.locator("tbody tr").first.inner_text().split()[0]
    attempts.locator("tbody a").nth(2).click()
    expect(page.get_by_text(f"Decision of attempt {int(newest) - 2}")).to_be_visible()


def test_a_node_has_its_rejections(page: Page) -> None:
    go(page, "nodes?at=300&node=n3&group=topology.kubernetes.io/zone")
    page.get_by_role("button", name="Show what it rejected").click()
    rejected = page.get_by_role("region", name="What it rejected")
    expect(rejected.locator(".cards li").first).to_contain_text("Insufficient cpu")
    assert not violations(page)
    rejected.locator("a").first.click()
    expect(page.get_by_text(re.compile("n3: rejected by NodeResourcesFit"))).to_be_visible()


def test_cells_are_sized_by_capacity(cluster_page: Page) -> None:
    """The first node offers 8 of 10 cpus, so that its cell covers most of the map."""
    page = cluster_page
    go(page, "nodes?size=cpu")
    heat = page.locator(".heat canvas")
    heat.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip b")).to_have_text("a")
    ring = page.locator(".ring").bounding_box()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip b")).to_have_text("b")
    other = page.locator(".ring").bounding_box()
    assert ring is not None
    assert other is not None
    ratio = (ring["width"] * ring["height"]) / (other["width"] * other["height"])
    assert 3 < ratio < 5


def test_a_cluster_shows_its_waiting_pods_by_cause_with_fixes(cluster_page: Page) -> None:
    page = cluster_page
    go(page, "waiting")
    causes = page.get_by_role("region", name="Causes and fixes")
    expect(causes.locator("h2")).to_have_text(["no node has 7 cpu free; 1 node has 3"])
    expect(causes.locator(".fix")).to_contain_text("add one node like a")
    assert not violations(page)
    causes.get_by_role("button", name="Show pods").click()
    assert page.url.endswith("#/waiting?workload=Pod+default%2Flarge")
    expect(causes.locator("table.pods tbody th")).to_have_text(["default/large"])
    page.get_by_text("By the reasons of one attempt at each pod").click()
    expect(page.locator("details .cause-text h2")).to_have_text(["Fits now", "Nodes: lack cpu"])
    go(page, "nodes?node=b")
    rejected = page.get_by_role("region", name="What it would reject")
    expect(rejected).to_contain_text("Insufficient cpu")


def test_the_overview_says_why_pods_wait_and_what_ends_it(cluster_page: Page) -> None:
    causes = cluster_page.get_by_role("region", name="Why pods wait").get_by_role("listitem")
    expect(causes.filter(has_text="Nodes: lack cpu")).to_contain_text("add one node like a")
    expect(causes.filter(has_text="Fits now")).to_contain_text("No fix is needed.")
    assert not violations(cluster_page)


def test_the_search_leads_to_the_yaml_of_any_object(cluster_page: Page) -> None:
    page = cluster_page
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="A part of a name").fill("web")
    page.get_by_role("link", name="Deployment default/web", exact=True).click()
    expect(page.get_by_role("region", name="YAML")).to_contain_text("replicas: 2")
    expect(page.get_by_role("region", name="Managed fields")).to_be_hidden()
    assert not violations(page)
    go(page, "pods?name=default/db-0")
    page.get_by_role("link", name="YAML of Pod default/db-0").click()
    expect(page.get_by_role("link", name="YAML of StatefulSet default/db")).to_be_visible()


# ---- a shadow -------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_shadow_is_shown_with_its_disagreements(
    browser: Browser, shadow_url: str, dark: bool
) -> None:
    with visit(browser, shadow_url, dark=dark, phone=dark) as page:
        settle(page)
        expect(page.locator("h1")).to_have_text("Shadow of default-scheduler")
        assert not violations(page)
        width = "() => document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(width) <= 0
        if not dark:
            page.wait_for_timeout(300)
            screenshot(page, "shadow")
        page.get_by_role("combobox", name="Plugin").select_option("TaintToleration")
        rows = page.get_by_role("region", name="Disagreements").locator("tbody tr")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("node(s) had untolerated taint(s)")


def test_names_with_markup_are_text_in_questions_and_answers(
    browser: Browser, markup_url: str
) -> None:
    with visit(browser, markup_url) as page:
        settle(page)
        go(page, f"whatif?drain={MARKUP}0")
        problem = page.get_by_role("alert")
        expect(problem).to_contain_text("there is no node")
        expect(problem).to_contain_text(MARKUP)
        assert page.locator("img[src='x']").count() == 0
        assert not violations(page)


# ---- groups -----------------------------------------------------------------------------------


def test_a_group_that_waits_shows_its_levels_and_a_fix(browser: Browser, tmp_path: Path) -> None:
    racks = [node(f"r{index}-0", cpu="4", labels={"rack": f"r{index}"}) for index in range(2)]
    train = pod_group("train", 3)
    train["metadata"]["annotations"] = {"bayplan.dev/required-topology": "rack"}
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    members = [pod(f"train-{index}", cpu="2", labels=labels) for index in range(3)]
    path = tmp_path / "racks.json"
    path.write_text(json.dumps({"kind": "List", "items": [*racks, train, *members]}))
    with served_paths(path) as address, visit(browser, address) as page:
        settle(page)
        go(page, "groups?name=default/train")
        levels = page.get_by_role("region", name="Levels")
        expect(levels.locator("tbody tr")).to_contain_text("rack required")
        expect(levels.locator("tbody tr")).to_contain_text("3 members in 0 of 2 domains")
        expect(page.locator(".fixes")).to_contain_text("prefer one rack")
        assert not violations(page)
