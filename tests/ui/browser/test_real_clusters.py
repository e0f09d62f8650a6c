"""Each view on clusters as people have them: volumes, devices, pod groups, taints, long names.

The larger clusters take minutes, so only the deep mode has them (BAYPLAN_DEEP=1). `python -m
benchmarks browser` and `python -m benchmarks ui` measure clusters of 15,000 nodes.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Response, ViewportSize

from tests.cases.dumps import Dump, draw_dump
from tests.seeded import IS_DEEP
from tests.ui.browser.conftest import served_paths
from tests.ui.browser.visits import PHONE, go, settle, violations, visit
from tests.ui.fetching import packed

SIZES = (60, *((1_000, 15_000) if IS_DEEP else ()))
WIDTHS: dict[str, ViewportSize] = {
    "phone": PHONE,
    "tablet": {"width": 768, "height": 1024},
    "laptop": {"width": 1440, "height": 900},
}
SCHEMES: Sequence[Literal["light", "dark"]] = ("light", "dark")
_POD = packed(
    "apiVersion: v1\nkind: Pod\nmetadata: {name: more, namespace: default}\n"
    "spec: {containers: [{name: c, image: app}]}\n"
)
_CONFIG = packed(
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]\n"
)
_WHAT_IF = {"whatif"}
#: View → a question that it asks if what it shows is not on the first page.
_FURTHER = {"waiting?workload=Pod%20default/huge": {"pending"}}
#: The largest answer is one page of a table, or one number for each node.
_BYTES_MAX = 400_000
_WAIT_MS = 3_600_000
_OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"


def views(dump: Dump) -> dict[str, set[str]]:
    """View → the questions that it asks, each once or until its computation is there."""
    node = dump.of_kind("Node")[-1]["metadata"]["name"]
    web = dump.of_kind("Deployment")[0]["metadata"]
    return {
        "overview": {"overview", "waiting", "fixes", "heat"},
        "nodes": {"nodes", "heat"},
        "nodes?sort=-nvidia.com/gpu&state=not%20ready": {"nodes"},
        f"nodes?node={node}": {"nodes", "node", "pods", "rejections"},
        "waiting": {"pending", "waiting"},
        "waiting?workload=Pod%20default/huge": {"pods"},
        "pods": {"pods"},
        "pods?state=waiting&sort=-cpu": {"pods"},
        "pods?name=default/huge": {"pod", "explanation"},
        "usage?by=namespace": {"usage"},
        "usage?by=label&label=app": {"usage"},
        "usage?by=pool": {"usage"},
        "groups": {"groups"},
        "groups?name=ml/gang-1": {"group", "pods", "explanation"},
        "object?kind=Pod&name=default/huge": {"object"},
        f"whatif?drain={node}&force=1": _WHAT_IF,
        f"whatif?add={node}=3": _WHAT_IF,
        f"whatif?scale={web['namespace']}/Deployment/{web['name']}=90": _WHAT_IF,
        f"whatif?apply={_POD}": _WHAT_IF,
        f"whatif?config={_CONFIG}": _WHAT_IF,
    }


@pytest.fixture(scope="module", params=SIZES)
def dump(request: pytest.FixtureRequest) -> Dump:
    return draw_dump(7, request.param)


@pytest.fixture(scope="module")
def real_url(dump: Dump, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("real") / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump.objects}))
    with served_paths(path) as address:
        yield address


def answer_sizes(page: Page) -> dict[str, int]:
    """Question → bytes of its largest answer, of all answers from now on."""
    sizes: dict[str, int] = {}

    def on_response(response: Response) -> None:
        if "/api/" in response.url:
            name = response.url.partition("/api/")[2].partition("?")[0]
            length = int(response.headers.get("content-length", 0))
            sizes[name] = max(sizes.get(name, 0), length)

    page.on("response", on_response)
    return sizes


@pytest.mark.timeout(0)
def test_each_view_of_a_real_cluster_is_accessible_and_bounded(
    browser: Browser, dump: Dump, real_url: str
) -> None:
    with visit(browser, real_url) as page:
        page.set_default_timeout(_WAIT_MS)
        page.wait_for_selector(".tabs, main .problem")
        assert page.locator("main .problem").count() == 0
        go(page, "whatif")
        sizes = answer_sizes(page)
        for view, questions in views(dump).items():
            sizes.clear()
            go(page, view)
            assert questions <= set(sizes) <= questions | _FURTHER.get(view, set()), view
            assert max(sizes.values()) < _BYTES_MAX, view
            assert page.locator("main .problem").count() == 0, view
            for scheme, (name, size) in product(SCHEMES, WIDTHS.items()):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size(size)
                settle(page)
                assert page.evaluate(_OVERFLOW) <= 0, (view, name, scheme)
                assert not violations(page), (view, name, scheme)


def test_tables_have_columns_for_devices_and_none_for_what_no_pod_requests(
    browser: Browser, real_url: str
) -> None:
    with visit(browser, real_url) as page:
        page.set_default_timeout(_WAIT_MS)
        page.wait_for_selector(".tabs")
        for view in ("nodes", "usage?by=namespace"):
            go(page, view)
            headings = page.locator("main .scroll thead").first.inner_text()
            assert "nvidia.com/gpu" in headings, view
            assert "ephemeral-storage" not in headings, view
