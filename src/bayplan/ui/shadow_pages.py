"""The report of a shadow on the page: agreement over time, and the decisions that disagree.

See docs/shadow.md. A report has no timeline, so the other views are not shown.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from msgspec.structs import replace

from bayplan.answers.document import Rows, Value
from bayplan.problems import BadInputError
from bayplan.shadow.folder import read_shadow, written_so_far
from bayplan.shadow.report import (
    DISAGREEMENT_HEADINGS,
    Decision,
    Disagreement,
    ShadowReport,
    disagreement_row,
    plugins_of,
)
from bayplan.ui.answers import PAGE
from bayplan.ui.pages import Part
from bayplan.ui.subjects import FileSubject, NotReady, Query, Remark, no_remark

_POINTS_MAX = 200
#: The least number of decisions of a span, on average.
_SPAN_DECISIONS = 4


# ---- the answers ----------------------------------------------------------------------------


class AgreementSeries(Value):
    """Agreement in equal spans of time: each column has one number per span."""

    #: The end of each span.
    seconds: list[float]
    #: The number of decisions in the span, and of those whose node is one of the best.
    compared: list[int]
    best: list[int]
    #: The number of further decisions whose node is one of the best if bindings are reordered.
    reordered: list[int]


class ShadowAnswer(Value):
    #: The report without its disagreements, which come page by page.
    report: ShadowReport
    #: The agreement over time; None: the report has no folder with all decisions.
    series: AgreementSeries | None
    #: Plugins that differ, the most frequent first.
    plugins: tuple[str, ...]
    #: Whether the report is that of a shadow that still runs; then the page asks for it again.
    is_running: bool


class DisagreementPage(Value):
    total: int
    offset: int
    rows: tuple[Disagreement, ...]


SHADOW_TYPES = (ShadowAnswer, DisagreementPage)


# ---- what is shown --------------------------------------------------------------------------


@final
class ShadowSubject(FileSubject):
    """A folder that `bayplan shadow --out` wrote, or a report as JSON."""

    kind = "shadow"

    def __init__(self, path: Path, remark: Remark = no_remark) -> None:
        super().__init__(path.name or str(path), remark)
        self._path = path
        self._report: ShadowReport | None = None
        self._decisions: Sequence[Decision] = ()
        #: When the report was written while the shadow runs; None: the shadow has ended.
        self._written_at: int | None = None

    def _load(self) -> None:
        self._written_at = written_so_far(self._path)
        self._report, self._decisions = read_shadow(self._path)

    async def prepare(self) -> None:
        """See `Subject.prepare`. While the shadow runs, its report is read again when it is new."""
        if self.is_running and self._worker and written_so_far(self._path) != self._written_at:
            await asyncio.wrap_future(self._worker.submit(self.load))

    @property
    def is_running(self) -> bool:
        """Whether the shadow still runs, so that its report is not the last one."""
        return self._written_at is not None

    @property
    def report(self) -> ShadowReport:
        """Raises NotReady."""
        if self._report is None:
            raise NotReady(self._problem or f"{self.name} is loading")
        return self._report

    @property
    def decisions(self) -> Sequence[Decision]:
        return self._decisions

    @property
    def disagreements(self) -> list[Disagreement]:
        return [one.disagreement for one in self._decisions if one.disagreement is not None]


# ---- the views ------------------------------------------------------------------------------


def _shadow(query: Query) -> ShadowSubject:
    subject = query.subject
    if not isinstance(subject, ShadowSubject):
        raise BadInputError(f"{subject.name} is no report of a shadow")
    return subject


def series_of(decisions: Sequence[Decision], seconds: float, points: int) -> AgreementSeries:
    """``seconds``: how long the shadow ran."""
    compared = [one for one in decisions if one.result != "untried"]
    points = min(points, _POINTS_MAX, max(2, len(compared) // _SPAN_DECISIONS))
    ends = np.linspace(0.0, max(seconds, 1e-3), points + 1)[1:]
    at = np.array([one.at_seconds for one in compared])
    spans = np.minimum(np.searchsorted(ends, at), points - 1)

    def counts(has: Callable[[Decision], bool]) -> list[int]:
        mask = np.array([has(one) for one in compared], np.bool_)
        return np.bincount(spans[mask], minlength=points).tolist()

    return AgreementSeries(
        seconds=ends.round(3).tolist(),
        compared=counts(lambda one: True),
        best=counts(lambda one: one.result == "best"),
        reordered=counts(
            lambda one: one.disagreement is not None and one.disagreement.best_when_reordered
        ),
    )


def _answer(query: Query) -> Any:
    subject = _shadow(query)
    report = subject.report
    has_all = any(one.result == "best" for one in subject.decisions) or not report.decisions.best
    counts: dict[str, int] = {}
    for one in subject.disagreements:
        for plugin in plugins_of(one):
            counts[plugin] = counts.get(plugin, 0) + 1
    points = max(2, query.number("points", 60))
    return ShadowAnswer(
        report=replace(report, disagreements=()),
        series=series_of(subject.decisions, report.seconds, points) if has_all else None,
        plugins=tuple(sorted(counts, key=lambda name: (-counts[name], name))),
        is_running=subject.is_running,
    )


def _rows(query: Query) -> list[Disagreement]:
    subject, search, plugin = _shadow(query), query.text("search").lower(), query.text("plugin")
    _ = subject.report
    return [
        one
        for one in subject.disagreements
        if search in one.pod.lower() and (not plugin or plugin in plugins_of(one))
    ]


def _page(query: Query) -> Any:
    part = Part(_rows(query), query.number("offset", 0), query.number("limit", PAGE))
    return DisagreementPage(total=part.total, offset=part.offset, rows=tuple(part.items))


def _table(query: Query) -> Rows:
    return Rows(DISAGREEMENT_HEADINGS, map(disagreement_row, _rows(query)))


SHADOW_QUESTIONS: dict[str, Callable[[Any], Any]] = {"shadow": _answer, "disagreements": _page}
#: Tables as CSV: a heading and rows.
SHADOW_TABLES: dict[str, Callable[[Any], Rows]] = {"disagreements": _table}
