"""Each view on clusters as people have them: volumes, devices, taints, long names.

The larger cluster takes minutes, so only the deep mode has it (BAYPLAN_DEEP=1). Clusters of 15,000
nodes are measured by `python -m benchmarks browser` and `python -m benchmarks ui`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Response, ViewportSize

from tests.cases.dumps import draw_dump
from tests.seeded import IS_DEEP
from tests.ui.browser.conftest import served_paths
from tests.ui.browser.visits import PHONE, WIDE, go, violations, visit
from tests.ui.fetching import packed

SIZES = (60, *((1_000,) if IS_DEEP else ()))
WIDTHS: dict[str, ViewportSize] = {
    "phone": PHONE,
    "laptop": WIDE,
    "wide": {"width": 1920, "height": 1080},
}
_POD = packed(
    "apiVersion: v1\nkind: Pod\nmetadata: {name: more, namespace: default}\n"
    "spec: {containers: [{name: c, image: app}]}\n"
)
#: View → the questions that it asks, each once or until its computation is there.
VIEWS = {
    "overview": {"overview", "waiting", "fixes", "heat"},
    "nodes": {"nodes", "heat"},
    "waiting": {"pending", "waiting"},
    "pods": {"pods"},
    "usage?by=namespace": {"usage"},
    "usage?by=label&label=app": {"usage"},
    "usage?by=pool": {"usage"},
    "pods?name=default/huge": {"pod", "explanation"},
    "object?kind=Pod&name=default/huge": {"object"},
    f"whatif?apply={_POD}": {"whatif"},
}
#: The largest answer is one page of a table, or one number for each node.
_BYTES_MAX = 400_000
_OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module", params=SIZES)
def real_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("real") / "cluster.json"
    items = draw_dump(7, request.param).objects
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with served_paths(path) as address:
        yield address


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_each_view_of_a_real_cluster_is_accessible_and_bounded(
    browser: Browser, real_url: str, dark: bool, width: str
) -> None:
    with visit(browser, real_url, dark=dark) as page:
        page.set_viewport_size(WIDTHS[width])
        page.wait_for_selector(".tabs")
        go(page, "whatif")
        sizes: dict[str, int] = {}

        def on_response(response: Response) -> None:
            if "/api/" in response.url:
                name = response.url.partition("/api/")[2].partition("?")[0]
                length = int(response.headers.get("content-length", 0))
                sizes[name] = max(sizes.get(name, 0), length)

        page.on("response", on_response)
        for view, questions in VIEWS.items():
            sizes.clear()
            go(page, view)
            assert set(sizes) == questions, view
            assert max(sizes.values()) < _BYTES_MAX, view
            assert page.evaluate(_OVERFLOW) <= 0, view
            assert not violations(page), view
