"""The server of the page: access control, headers, and the types of answers."""

import asyncio
import csv
import gc
import io
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession
from yarl import URL

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.history.node_verdict import NodeVerdict
from bayplan.plugins.registry import default_registry
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui import answers
from bayplan.ui.model_views import MODEL_QUESTIONS, MODEL_TABLES
from bayplan.ui.server import STATIC, UiOptions, serve_ui
from bayplan.ui.subjects import RunSubject, subject_of_files
from tests.history.stored_runs import write_run
from tests.ui.example_run import example_workload
from tests.ui.fetching import PAGE, fetched, visited


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("sources", list[answers.Source]),
        ("moment?seconds=100", answers.Moment),
        ("overview?at=50", answers.Overview),
        ("series?points=20", answers.SeriesAnswer),
        ("heat?color=cpu&group=pool", answers.Heat),
        ("heat?color=fragmentation", answers.Heat),
        ("heat?color=fits:default/huge", answers.Heat),
        ("nodes?search=n&limit=2", answers.NodePage),
        ("node?name=n0", answers.NodeAnswer),
        ("node?number=0", answers.NodeAnswer),
        ("pods?search=job&limit=5", answers.PodPage),
        ("pods?node=n0", answers.PodPage),
        ("pods?cause=1", answers.PodPage),
        ("pods?group=default/train", answers.PodPage),
        ("pod?name=default/huge", answers.PodAnswer),
        ("decision?pod=default/huge&attempt=1", answers.Decision),
        ("waiting?seconds=100", answers.WaitingPage),
        ("groups", answers.GroupPage),
        ("group?name=default/train", answers.GroupAnswer),
    ],
)
def test_an_answer_has_the_type_that_the_schema_names(
    subject: RunSubject, path: str, kind: Any
) -> None:
    response, body = fetched([subject], f"api/{path}")
    assert response.status == 200, body
    assert msgspec.json.decode(body, type=kind, strict=True)


def test_causes_come_in_pages_and_a_link_to_a_cause_gets_its_page(subject: RunSubject) -> None:
    def page(parameters: str) -> answers.WaitingPage:
        _, body = fetched([subject], f"api/waiting?at=280&{parameters}")
        return msgspec.json.decode(body, type=answers.WaitingPage)

    whole = page("")
    numbers = [group.number for group in whole.groups]
    assert (whole.cause_count, whole.offset, len(numbers)) == (3, 0, 3)
    parts = [page(f"limit=2&offset={offset}") for offset in (0, 2)]
    assert [[one.number for one in part.groups] for part in parts] == [numbers[:2], numbers[2:]]
    assert {part.total for part in parts} == {whole.total}
    linked = page(f"limit=2&cause={numbers[2]}")
    assert (linked.offset, [one.number for one in linked.groups]) == (2, numbers[2:])


def test_the_schema_names_each_type_of_an_answer(subject: RunSubject) -> None:
    _, body = fetched([subject], "api/schema.json")
    names = set(msgspec.json.decode(body)["$defs"])
    assert {"Overview", "Heat", "WaitingPage", "Decision", "GroupAnswer", "PodPage"} <= names


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("pod?name=default/nobody", 404, "no pod 'default/nobody' in this run"),
        ("decision?pod=default/huge&attempt=999", 404, "no attempt '999 of default/huge' in this"),
        ("heat?color=gold", 404, "no resource 'gold'"),
        ("overview?at=first", 400, "at: found 'first', wanted a number"),
        ("overview?run=3", 400, "run: found 3, wanted 0 to 0"),
        ("nonsense", 404, "Not Found"),
    ],
)
def test_a_question_without_an_answer_gets_a_reason(
    subject: RunSubject, path: str, status: int, error: str
) -> None:
    response, body = fetched([subject], f"api/{path}")
    assert response.status == status
    assert error in msgspec.json.decode(body, type=answers.Problem).error


@pytest.mark.parametrize("path", ["", "static/app.js", "api/overview", "api/nonsense", "nowhere"])
def test_every_answer_forbids_content_of_other_hosts(subject: RunSubject, path: str) -> None:
    response, _ = fetched([subject], path)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_only_files_of_the_page_are_served(subject: RunSubject) -> None:
    for path in ("static/../server.py", "static/%2e%2e/server.py", "static/vendor/htm.LICENSE"):
        response, _ = fetched([subject], path)
        assert response.status == 404


def test_the_page_names_no_other_host_and_has_no_inline_script() -> None:
    for path in STATIC.rglob("*"):
        if path.suffix in (".js", ".css", ".html") and "vendor" not in path.parts:
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert "http://" not in text, path
            assert "https://" not in text, path
            assert "innerHTML" not in text, path
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count('<script type="module" src=') == 1
    assert "style=" not in page


def test_each_vendored_library_has_its_licence() -> None:
    names = {path.name for path in (STATIC / "vendor").iterdir()}
    assert {"htm.LICENSE", "preact.LICENSE", "uPlot.LICENSE"} <= names


# ---- access ---------------------------------------------------------------------------------


def test_with_a_token_each_request_must_bring_it(subject: RunSubject) -> None:
    async def visit(session: ClientSession, url: str) -> list[int]:
        statuses: list[int] = []
        bearer = {"Authorization": "Bearer right"}
        for path, headers in (
            ("api/sources", {}),
            ("api/sources?token=wrong", {}),
            ("api/sources", {"Authorization": "Bearer wrong"}),
            ("api/sources", bearer),
            ("?token=right", {}),  # this answer sets the cookie
            ("api/sources", {}),
        ):
            async with session.get(url + path, headers=headers) as response:
                statuses.append(response.status)
        return statuses

    assert visited([subject], visit, token="right") == [401, 401, 401, 200, 200, 200]


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/%0d%0aX-Evil:1", "/%5c%5cevil.example/", "/x"]
)
def test_a_token_for_a_path_that_is_not_served_leads_nowhere(
    subject: RunSubject, path: str
) -> None:
    async def visit(session: ClientSession, url: str) -> tuple[int, Mapping[str, str]]:
        target = URL(url.rstrip("/") + path + "?token=right", encoded=True)
        async with session.get(target, allow_redirects=False) as response:
            return response.status, response.headers

    status, headers = visited([subject], visit, token="right")
    assert status in (401, 404)
    assert "Location" not in headers
    assert "X-Evil" not in headers


_COMPUTED = (
    "api/verdict?pod=default/huge&attempt=1&node=n0",
    "api/whatif?drain=n0",
    "api/whatif.csv?drain=n0",
    "api/explanation?pod=default/huge",
    "api/rejections?node=n0",
    "api/workloads",
    "api/pending",
    "api/pending.csv",
    "api/fixes",
    "api/objects",
    "api/object?kind=Node&name=n0",
)


@pytest.mark.parametrize("path", _COMPUTED)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"X-Other": "1"}],
    ids=str,
)
def test_no_computation_starts_for_a_page_of_another_site(
    run_folder: RunFolder, path: str, headers: dict[str, str]
) -> None:
    run = loaded(run_folder)
    response, body = fetched([run], path, headers=headers)
    assert response.status == 403
    assert "X-Bayplan-Page" in msgspec.json.decode(body)["error"]
    assert "computations" not in vars(run)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        *((path, PAGE) for path in _COMPUTED),
        ("api/whatif.csv?drain=n0", {"Sec-Fetch-Site": "same-origin"}),
    ],
)
def test_the_page_itself_starts_computations(
    run_folder: RunFolder, path: str, headers: dict[str, str]
) -> None:
    run = loaded(run_folder)
    response, _ = fetched([run], path, headers=headers)
    assert response.status in (200, 503)
    assert "computations" in vars(run)
    run.stop()


def test_the_questions_that_are_computed_are_those_of_the_worker() -> None:
    """A question that uses the worker and is not in this list could be started by any page."""
    names = {path.removeprefix("api/").partition("?")[0].removesuffix(".csv") for path in _COMPUTED}
    assert names == {"verdict", *MODEL_QUESTIONS, *MODEL_TABLES}


@pytest.mark.parametrize("seconds", ["nan", "NaN", "-nan"])
def test_a_moment_is_a_number(subject: RunSubject, seconds: str) -> None:
    response, body = fetched([subject], f"api/moment?seconds={seconds}")
    assert response.status == 400
    assert msgspec.json.decode(body)["error"] == "seconds: found nan, wanted a number"


_LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", **_LINK}, 200),
        ({"Sec-Fetch-Site": "cross-site", **_LINK, "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "nonsense"}, 403),
        ({"Host": "example.com"}, 403),
        ({"Origin": "http://example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost"}, 200),
    ],
)
def test_a_server_on_loopback_refuses_other_names(
    subject: RunSubject, headers: dict[str, str], status: int
) -> None:
    async def main() -> int:
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve_ui([], UiOptions(), url.set_result))
        address = await url
        async with ClientSession() as session, session.get(address, headers=headers) as response:
            answered = response.status
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return answered

    assert asyncio.run(main()) == status


# ---- tables ---------------------------------------------------------------------------------


def test_tables_are_csv_with_all_rows(subject: RunSubject) -> None:
    response, body = fetched([subject], "api/pods.csv?search=job")
    rows = list(csv.reader(io.StringIO(body.decode())))
    assert response.headers["Content-Disposition"] == 'attachment; filename="pods.csv"'
    assert rows[0] == ["pod", "state", "node", "since_seconds", "attempts", "cause"]
    assert len(rows) == 1 + 60
    _, body = fetched([subject], "api/nodes.csv?at=40")
    assert len(list(csv.reader(io.StringIO(body.decode())))) == 1 + 6


def test_a_cell_is_not_a_formula(tmp_path: Path) -> None:
    run = loaded(write_run(tmp_path / "run", example_workload(3)))
    run.timeline.pods = [pod._replace(name="=1+1") for pod in run.timeline.pods]
    _, body = fetched([run], "api/pods.csv")
    assert "'=1+1" in body.decode()


# ---- sources --------------------------------------------------------------------------------


def loaded(folder: RunFolder) -> RunSubject:
    run = RunSubject(folder)
    run.load()
    return run


def test_a_run_that_is_loading_has_its_totals_and_no_views(run_folder: RunFolder) -> None:
    run = RunSubject(run_folder)
    _, body = fetched([run], "api/sources")
    assert msgspec.json.decode(body)[0]["phase"] == "loading"
    response, body = fetched([run], "api/overview")
    assert (response.status, msgspec.json.decode(body)["error"]) == (503, "example is loading")


def test_a_cluster_has_the_state_at_the_beginning(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples/quickstart"
    cluster = subject_of_files([str(path)], config_from(DEFAULT_CONFIG), default_registry())
    cluster.load()
    assert cluster.answer().phase == "ready", cluster.answer().problem
    _, body = fetched([cluster], "api/overview")
    view = msgspec.json.decode(body, type=answers.Overview)
    assert (view.nodes, view.placed, view.attempts) == (12, 2, 0)
    assert view.waiting_kinds == {"fits": 28, "gated": 1, "unschedulable": 3}


def test_any_node_of_a_decision_is_explained_by_a_replay(subject: RunSubject) -> None:
    async def visit(session: ClientSession, url: str) -> answers.Computation[NodeVerdict]:
        for _ in range(600):
            path = "api/verdict?pod=default/huge&attempt=1&node=n0"
            async with session.get(url + path, headers=PAGE) as response:
                body = await response.read()
                verdict = msgspec.json.decode(body, type=answers.Computation[NodeVerdict])
            if verdict.phase != "computing":
                return verdict
            await asyncio.sleep(0.05)
        raise AssertionError("no verdict")

    verdict = visited([subject], visit).value
    assert verdict is not None
    assert verdict.ruling.startswith("rejected by NodeResourcesFit: Insufficient cpu")
    rejecting = [one.plugin for one in verdict.alone if one.message]
    assert rejecting == ["NodeResourcesFit"]


def test_nothing_holds_a_run_when_its_page_has_ended(run_folder: RunFolder) -> None:
    subject = RunSubject(run_folder)
    subject.load()
    assert fetched([subject], "api/overview?at=50")[0].status == 200
    held = weakref.ref(subject)
    del subject
    gc.collect()
    assert held() is None
