"""The report of a shadow on the page."""

import asyncio
import csv
import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession
from msgspec import structs

from bayplan.shadow.folder import REPORT, write_report, write_report_so_far
from bayplan.shadow.report import Decision
from bayplan.ui.shadow_pages import DisagreementPage, ShadowAnswer, ShadowSubject, series_of
from bayplan.ui.subjects import RunSubject
from tests.ui.example_shadow import DECISIONS, write_shadow
from tests.ui.fetching import fetched, visited


@pytest.fixture(scope="module")
def shadow(tmp_path_factory: pytest.TempPathFactory) -> ShadowSubject:
    folder = tmp_path_factory.mktemp("shadow") / "night"
    write_shadow(folder)
    subject = ShadowSubject(folder)
    subject.load()
    assert subject.answer().phase == "ready"
    return subject


def test_the_curve_has_each_decision_once(shadow: ShadowSubject) -> None:
    response, body = fetched([shadow], "api/shadow?points=10")
    assert response.status == 200, body
    answer = msgspec.json.decode(body, type=ShadowAnswer)
    assert answer.series is not None
    assert sum(answer.series.compared) == DECISIONS
    report = answer.report
    assert sum(answer.series.best) == report.decisions.best
    assert sum(answer.series.reordered) == report.decisions.best_when_reordered
    assert report.disagreements == ()


def test_a_decision_at_the_end_of_a_span_counts_there() -> None:
    def at(seconds: float) -> Decision:
        return Decision(pod="p", at_seconds=seconds, node="n", result="best")

    assert series_of([at(0.0), at(5.0), at(10.0), at(11.0)], 10.0, 2).compared == [2, 2]
    assert series_of([], 10.0, 2).compared == [0, 0]


def test_disagreements_have_pages_and_can_be_filtered_by_plugin(shadow: ShadowSubject) -> None:
    counts = shadow.report.decisions
    response, body = fetched([shadow], "api/disagreements?limit=2&offset=1")
    page = msgspec.json.decode(body, type=DisagreementPage)
    assert response.status == 200
    assert (page.total, page.offset, len(page.rows)) == (counts.lower + counts.rejected, 1, 2)
    _, body = fetched([shadow], "api/disagreements?plugin=TaintToleration")
    (row,) = msgspec.json.decode(body, type=DisagreementPage).rows
    assert (row.pod, row.node, row.plugin) == ("default/web-20", "tainted", "TaintToleration")
    _, body = fetched([shadow], "api/disagreements?search=web-20")
    assert msgspec.json.decode(body, type=DisagreementPage).rows == (row,)


def test_the_table_has_all_disagreements(shadow: ShadowSubject) -> None:
    response, body = fetched([shadow], "api/disagreements.csv")
    rows = list(csv.reader(io.StringIO(body.decode())))
    counts = shadow.report.decisions
    assert response.status == 200
    assert len(rows) == 1 + counts.lower + counts.rejected


def test_the_page_of_a_running_shadow_has_the_newest_report(tmp_path: Path) -> None:
    final = write_shadow(tmp_path)
    (tmp_path / REPORT).unlink()
    write_report_so_far(tmp_path, structs.replace(final, seconds=1.0))
    subject = ShadowSubject(tmp_path)

    async def ask(session: ClientSession, url: str) -> tuple[float, bool]:
        async with session.get(url + "api/shadow") as response:
            answer = msgspec.json.decode(await response.read(), type=ShadowAnswer)
            report = answer.report
            return report.seconds, answer.is_running

    async def visit(session: ClientSession, url: str) -> list[tuple[float, bool]]:
        while subject.answer().phase != "ready":
            await asyncio.sleep(0.01)
        answers = [await ask(session, url)]
        write_report(tmp_path, final)
        return [*answers, await ask(session, url)]

    with ThreadPoolExecutor(1) as worker:
        subject.start(worker)
        assert visited([subject], visit) == [(1.0, True), (final.seconds, False)]


def test_other_questions_are_refused(shadow: ShadowSubject, subject: RunSubject) -> None:
    assert fetched([shadow], "api/overview")[0].status == 503
    assert fetched([subject], "api/shadow")[0].status == 400


def test_a_report_that_cannot_be_read_is_a_text_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{")
    subject = ShadowSubject(tmp_path)
    subject.load()
    answer = subject.answer()
    assert answer.phase == "failed"
    assert "report.json" in answer.problem
