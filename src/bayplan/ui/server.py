"""Serves the page and its JSON answers.

A server on loopback answers everybody on this machine. It refuses requests whose Host or Origin is
another name, because each page in a user's browser can reach it. On another address it needs a
token: the first request brings it as `?token=`, which sets a cookie for the following requests, or
each request has it as a bearer token.

Every answer has a Content-Security-Policy that allows scripts, styles, images and requests of this
server only, and no inline script or style. So a name of an object that contains markup stays text.
"""

import asyncio
import hmac
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, isnan
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from bayplan.answers.csv_text import csv_text
from bayplan.answers.names import natural_key
from bayplan.comparison.curves import ComparedCurve
from bayplan.comparison.report import ComparisonAnswer
from bayplan.history.node_verdict import NodeVerdict
from bayplan.history.timeline import State
from bayplan.problems import BadInputError
from bayplan.serving.http_server import (
    Guard,
    Handler,
    HttpLimits,
    HttpServer,
    is_loopback,
    refuse_cross_site,
    refuse_foreign_names,
)
from bayplan.serving.page import COOKIE
from bayplan.ui import answers, pages, tables
from bayplan.ui.answers import PAGE
from bayplan.ui.live import SchedulerSubject
from bayplan.ui.model_answers import MODEL_TYPES
from bayplan.ui.model_views import MODEL_QUESTIONS, MODEL_TABLES
from bayplan.ui.object_answers import OBJECT_TYPES
from bayplan.ui.pages import NotRemembered, Part
from bayplan.ui.shadow_pages import SHADOW_QUESTIONS, SHADOW_TABLES, SHADOW_TYPES
from bayplan.ui.subjects import NotReady, RunSubject, Subject
from bayplan.ui.tables import NodeFilter, NoSuchObject, PodFilter
from bayplan.ui.two_runs import TwoRuns
from bayplan.ui.usage_by import UsagePage, UsageRow, label_keys, usage_rows

STATIC = Path(__file__).parent / "static"
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: The header that each request that starts a computation has, with any value.
PAGE_HEADER = "X-Bayplan-Page"
#: How long a browser waits before it opens a stream again.
_RETRY = b"retry: 2000\n\n"
#: A page opens several connections at once and loads a dozen files.
_LIMITS = HttpLimits()


@dataclass(frozen=True, kw_only=True, slots=True)
class UiOptions:
    """How the page is served."""

    address: str = "127.0.0.1"
    #: The port; 0: the system chooses one.
    port: int = 0
    #: The token, which an address that is not loopback needs; "": no token.
    token: str = ""


@runtime_checkable
class ExperimentSource(Protocol):
    """What `api/experiment` and `api/curves` show."""

    @property
    def comparison(self) -> ComparisonAnswer: ...
    def curves(self, input_name: str) -> tuple[ComparedCurve, ...]: ...


# ---- questions ------------------------------------------------------------------------------


class BadQuestion(ValueError):
    """A parameter of a request has a value that means nothing."""


@final
class Question:
    """The parameters of one request."""

    def __init__(self, request: web.Request, subjects: Sequence[Subject]) -> None:
        self._query = request.query
        self.all_shown = subjects

    def text(self, name: str) -> str:
        return self._query.get(name, "")

    def number(self, name: str, default: int) -> int:
        """Raises BadQuestion."""
        return int(self._parsed(name, int, default))

    def decimal(self, name: str, default: float) -> float:
        """Raises BadQuestion."""
        number = self._parsed(name, float, default)
        if isnan(number):
            raise BadQuestion(f"{name}: found nan, wanted a number")
        return number

    def _parsed(self, name: str, parse: Callable[[str], float], default: float) -> float:
        text = self._query.get(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError:
            raise BadQuestion(f"{name}: found {text[:100]!r}, wanted a number") from None

    @property
    def subject(self) -> Subject:
        """The run that the question is about. Raises BadQuestion."""
        index = self.number("run", 0)
        if not 0 <= index < len(self.all_shown):
            raise BadQuestion(f"run: found {index}, wanted 0 to {len(self.all_shown) - 1}")
        return self.all_shown[index]

    @property
    def two_runs(self) -> TwoRuns:
        """Raises BadQuestion, NotReady."""
        match self.all_shown:
            case (RunSubject() as one, RunSubject() as other):
                return _two_runs(one, other)
            case _:
                raise BadQuestion("found one run, wanted two to compare")

    @property
    def state(self) -> State:
        """The state at ``at`` (a change) or at ``seconds``; without both, the state at the end.

        The changes of a running scheduler get other numbers when it forgets some, so ``at`` is a
        time there. Raises BadQuestion, NotReady, NotRemembered.
        """
        line = self.subject.timeline
        is_live = isinstance(self.subject, SchedulerSubject)
        name = "at" if is_live and "at" in self._query else "seconds"
        if name not in self._query:
            return line.state(self.number("at", line.last_change))
        seconds = self.decimal(name, 0.0)
        if seconds < line.start_seconds:
            raise NotRemembered("the scheduler no longer remembers this moment")
        return line.state(line.change_at(seconds))

    def part(self, rows: Sequence[int]) -> Part[int]:
        """Raises BadQuestion."""
        return Part(rows, self.number("offset", 0), self.number("limit", PAGE))


def _sources(question: Question) -> Any:
    return [one.answer() for one in question.all_shown]


@lru_cache(maxsize=1)
def _two_runs(one: RunSubject, other: RunSubject) -> TwoRuns:
    """Raises NotReady, which is not cached."""
    return TwoRuns(one, other)


def _moment(question: Question) -> Any:
    state = question.state
    line, step = state.timeline, question.number("step", 0)
    if step:
        change = min(max(state.change + step, line.first_change), line.last_change)
        state = line.state(change)
    return answers.Moment(change=state.change, seconds=state.seconds)


def _overview(question: Question) -> Any:
    return pages.overview(question.state)


def _series(question: Question) -> Any:
    subject = question.subject
    by_time, points = question.text("axis") != "changes", question.number("points", 400)
    return pages.series(
        subject.timeline,
        subject.series,
        by_time=by_time,
        points=points,
        start=question.decimal("from", -inf),
        end=question.decimal("to", inf),
    )


def _heat(question: Question) -> Any:
    color, group_by, size_by = (question.text(name) for name in ("color", "group", "size"))
    return pages.heat(question.state, color=color, group_by=group_by, size_by=size_by)


def _node_rows(question: Question) -> tuple[State, Sequence[int]]:
    state, text = question.state, question.text
    nodes = NodeFilter(text("search"), text("state"), text("pool"), text("taint"))
    return state, tables.node_rows(state, nodes, text("sort"))


def _nodes(question: Question) -> Any:
    state, rows = _node_rows(question)
    part = question.part(rows)
    page = tuple(pages.node_row(state, row) for row in part.items)
    pools, taints = tables.node_options(state)
    return answers.NodePage(
        total=part.total, offset=part.offset, rows=page, pools=pools, taints=taints
    )


def _kinds(question: Question) -> Any:
    return pages.node_kinds(question.state)


def _node(question: Question) -> Any:
    state, name = question.state, question.text("name")
    if not name:
        number = question.number("number", -1)
        if not 0 <= number < len(state.timeline.node_names):
            raise NoSuchObject("node", str(number))
        name = state.timeline.node_names[number]
    return pages.node_answer(state, name)


def _pod_rows(question: Question) -> tuple[State, Sequence[int]]:
    state, text = question.state, question.text
    pods = PodFilter(
        search=text("search"),
        namespace=text("namespace"),
        workload=text("workload"),
        label=text("label"),
        state=text("state"),
        node=text("node"),
        pool=text("pool"),
        group=text("group"),
        cause=question.number("cause", 0) if text("cause") else None,
    )
    return state, tables.pod_rows(state, pods, text("sort"))


def _pods(question: Question) -> Any:
    state, rows = _pod_rows(question)
    part = question.part(rows)
    page = tuple(pages.pod_entry(state, row) for row in part.items)
    return answers.PodPage(
        total=part.total,
        offset=part.offset,
        rows=page,
        namespaces=tables.namespaces(state),
        pools=tables.node_options(state)[0],
    )


def _usage_rows(question: Question) -> Sequence[UsageRow]:
    text = question.text
    return usage_rows(question.state, text("by"), text("label"), text("sort"))


def _usage(question: Question) -> Any:
    part = Part(_usage_rows(question), question.number("offset", 0), question.number("limit", PAGE))
    labels, rows = label_keys(question.state), tuple(part.items)
    return UsagePage(total=part.total, offset=part.offset, rows=rows, labels=labels)


def _usage_csv(question: Question) -> str:
    resources = pages.resources_of(question.state.timeline)
    heading = ["name", "pods", "waiting", "nodes"]
    heading += [f"{r} {what}" for r in resources for what in ("used", "of", "waiting")]
    return csv_text(heading, map(_usage_cells, _usage_rows(question)))


def _usage_cells(row: UsageRow) -> list[Any]:
    amounts = [
        number
        for one in row.usage
        for number in (one.used, one.allocatable, row.waiting_requests.get(one.resource, 0))
    ]
    return [row.name, row.pods, row.waiting, row.nodes, *amounts]


def _pod(question: Question) -> Any:
    return pages.pod_answer(question.state, question.text("name"))


def _decision(question: Question) -> Any:
    return question.subject.decision(question.text("pod"), question.number("attempt", 1))


def _verdict(question: Question) -> Any:
    pod, node = question.text("pod"), question.text("node")
    return question.subject.verdict(pod, question.number("attempt", 1), node)


def _waiting(question: Question) -> Any:
    """The causes of one page; ``cause`` without an offset: the page that has this cause."""
    waiting = pages.waiting(question.state)
    offset, limit = question.number("offset", 0), question.number("limit", PAGE)
    if question.text("cause") and not question.text("offset"):
        cause = question.number("cause", 0)
        position = next((at for at, one in enumerate(waiting.groups) if one.number == cause), 0)
        offset = position - position % max(1, limit)
    part = Part(waiting.groups, offset, limit)
    return msgspec.structs.replace(waiting, groups=tuple(part.items), offset=part.offset)


def _experiment(question: Question) -> Any:
    return _experiment_of(question).comparison


def _curves(question: Question) -> Any:
    return answers.Curves(rows=_experiment_of(question).curves(question.text("input")))


def _experiment_of(question: Question) -> ExperimentSource:
    subject = question.subject
    if not isinstance(subject, ExperimentSource):
        raise BadQuestion("found no comparison of configurations")
    return subject


def _groups(question: Question) -> Any:
    state = question.state
    names = state.timeline.group_names
    search = question.text("search").lower()
    rows = [row for row, name in enumerate(names) if search in name.lower()]
    part = question.part(sorted(rows, key=lambda row: natural_key(names[row])))
    page = tuple(pages.group_entry(state, row) for row in part.items)
    return answers.GroupPage(total=part.total, offset=part.offset, rows=page)


def _group(question: Question) -> Any:
    return pages.group_answer(question.state, question.text("name"))


def _comparison(question: Question) -> Any:
    return question.two_runs.answer()


def _moved(question: Question) -> Any:
    runs, search = question.two_runs, question.text("search").lower()
    places = [place for place in runs.moved if search in place.pod.lower()]
    part = Part(places, question.number("offset", 0), question.number("limit", PAGE))
    page = tuple(runs.moved_pod(place) for place in part.items)
    return answers.MovedPage(total=part.total, offset=part.offset, rows=page)


_QUESTIONS: dict[str, Callable[[Question], Any]] = {
    "sources": _sources,
    "comparison": _comparison,
    "experiment": _experiment,
    "curves": _curves,
    "moved": _moved,
    "moment": _moment,
    "overview": _overview,
    "series": _series,
    "heat": _heat,
    "nodes": _nodes,
    "node": _node,
    "kinds": _kinds,
    "pods": _pods,
    "usage": _usage,
    "pod": _pod,
    "decision": _decision,
    "verdict": _verdict,
    "waiting": _waiting,
    "groups": _groups,
    "group": _group,
    **MODEL_QUESTIONS,
    **SHADOW_QUESTIONS,
}
#: The questions that are computed by the worker.
_COMPUTING = frozenset(("verdict", *MODEL_QUESTIONS, *MODEL_TABLES))
_SCHEMA_TYPES = (
    answers.Source,
    answers.Tick,
    answers.Moment,
    answers.Overview,
    answers.SeriesAnswer,
    answers.Heat,
    answers.NodePage,
    answers.NodeKinds,
    answers.NodeAnswer,
    answers.PodPage,
    UsagePage,
    answers.PodAnswer,
    answers.Decision,
    answers.Computation[NodeVerdict],
    answers.WaitingPage,
    answers.GroupPage,
    answers.GroupAnswer,
    answers.Comparison,
    ComparisonAnswer,
    answers.Curves,
    answers.MovedPage,
    *MODEL_TYPES,
    *OBJECT_TYPES,
    *SHADOW_TYPES,
    answers.Problem,
)

# ---- tables as CSV --------------------------------------------------------------------------


def _nodes_csv(question: Question) -> str:
    state, rows = _node_rows(question)
    resources = pages.resources_of(state.timeline)
    heading = ["node", "pods", *(f"{r} {what}" for r in resources for what in ("used", "of"))]
    return csv_text(heading, (_node_cells(state, row) for row in rows))


def _node_cells(state: State, row: int) -> list[Any]:
    node = pages.node_row(state, row)
    return [node.name, node.pods, *(n for u in node.usage for n in (u.used, u.allocatable))]


def _pods_csv(question: Question) -> str:
    state, rows = _pod_rows(question)
    heading = ["pod", "state", "node", "since_seconds", "attempts", "cause"]
    return csv_text(heading, (_pod_cells(state, row) for row in rows))


def _pod_cells(state: State, row: int) -> list[Any]:
    pod = pages.pod_entry(state, row)
    cause = state.timeline.causes[pod.cause] if pod.state == "waiting" else None
    reasons = "; ".join(f"{part.plugin}: {part.reason}" for part in cause.parts) if cause else ""
    return [pod.name, pod.state, pod.node, pod.since_seconds, pod.attempts, reasons]


def _moved_csv(question: Question) -> str:
    runs, search = question.two_runs, question.text("search").lower()
    rows = ((place.pod, *place.nodes) for place in runs.moved if search in place.pod.lower())
    return csv_text(["pod", "node in A", "node in B"], rows)


def _waiting_csv(question: Question) -> str:
    rows = (
        (
            group.cause.kind,
            "; ".join(f"{part.plugin}: {part.reason}" for part in group.cause.parts),
            group.pods,
            group.since_seconds,
            group.example,
        )
        for group in pages.waiting(question.state).groups
    )
    return csv_text(["cause", "reasons", "pods", "since_seconds", "oldest"], rows)


def _groups_csv(question: Question) -> str:
    state, search = question.state, question.text("search").lower()
    names = state.timeline.group_names
    groups = (pages.group_entry(state, row) for row, n in enumerate(names) if search in n.lower())
    rows = ((g.name, g.minimum, g.members, g.placed, g.waiting, g.result) for g in groups)
    return csv_text(["group", "minimum", "members", "placed", "waiting", "last_attempt"], rows)


def _rows_csv(rows: Callable[[Question], tuple[Any, Any]], question: Question) -> str:
    return csv_text(*rows(question))


_TABLES: dict[str, Callable[[Question], str]] = {
    "nodes": _nodes_csv,
    "pods": _pods_csv,
    "usage": _usage_csv,
    "moved": _moved_csv,
    "waiting": _waiting_csv,
    "groups": _groups_csv,
    **{name: partial(_rows_csv, rows) for name, rows in (MODEL_TABLES | SHADOW_TABLES).items()},
}


# ---- application ----------------------------------------------------------------------------

#: A list with the one subject that the page shows. The caller may replace the subject at any time,
#: for example the work by the run that it made. The list is emptied when the application ends, and
#: nothing else refers to the subject, because aiohttp remembers an application and its handlers for
#: ever (web_app.py, _cached_build_middleware).
_SUBJECTS = web.AppKey("subjects", list[Sequence[Subject]])


def application(subjects: Sequence[Subject], token: str = "") -> web.Application:
    """The page and its answers. ``token``: the token that each request must have; "": none."""
    app = web.Application(middlewares=[web.middleware(partial(_with_headers, token))])
    app[_SUBJECTS] = [subjects]
    app.on_cleanup.append(_forget_subjects)
    app.router.add_get("/", partial(_file, "index.html"))
    for path in sorted(STATIC.rglob("*")):
        name = path.relative_to(STATIC).as_posix()
        if path.suffix in _CONTENT_TYPES and name != "index.html":
            app.router.add_get(f"/static/{name}", partial(_file, name))
    app.router.add_get("/api/schema.json", _schema)
    for name, view in _QUESTIONS.items():
        answered = partial(_answered, view)
        computes = name in _COMPUTING
        app.router.add_get(
            f"/api/{name}", partial(_for_the_page, answered) if computes else answered
        )
    app.router.add_get("/api/events", _events)
    for name, table in _TABLES.items():
        answered = partial(_table, name, table)
        computes = name in _COMPUTING
        app.router.add_get(
            f"/api/{name}.csv", partial(_for_a_link, answered) if computes else answered
        )
    return app


async def _forget_subjects(app: web.Application) -> None:
    app[_SUBJECTS].clear()


async def _for_the_page(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Refuse requests that this page did not send, because a computation takes a processor for
    seconds. Any page in a browser can send a request here, but only a page of this server can add a
    header to it."""
    if PAGE_HEADER in request.headers:
        return await handler(request)
    return _problem(403, f"wanted the header {PAGE_HEADER}, because this question is computed")


async def _for_a_link(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Refuse requests that did not come from a link of this page, as `_for_the_page` does. A link
    has no header of its own, so the headers of the browser decide."""
    if request.headers.get("Sec-Fetch-Site") == "same-origin":
        return await handler(request)
    return await _for_the_page(handler, request)


async def _answered(view: Callable[[Question], Any], request: web.Request) -> web.Response:
    """Send an answer. No cache may store it while it is being computed, because it is another
    answer a moment later."""
    [subjects] = request.app[_SUBJECTS]
    try:
        question = Question(request, subjects)
        await question.subject.prepare()
        if view in MODEL_QUESTIONS.values():
            body = pages.as_json(view(question))
        else:
            body = question.subject.answered(request.path_qs, lambda: pages.as_json(view(question)))
    except NoSuchObject as problem:
        return _problem(404, problem.text)
    except BadQuestion as problem:
        return _problem(400, str(problem))
    except BadInputError as problem:
        return _problem(400, str(problem).partition("\n")[0])
    except NotReady as problem:
        return _problem(503, str(problem))
    except Exception as problem:  # noqa: BLE001 - the page and the terminal show it
        return _problem(500, subjects[0].report_failure(problem))
    return web.Response(body=body, content_type="application/json")


async def _table(name: str, table: Callable[[Question], str], request: web.Request) -> web.Response:
    answer = await _answered(table, request)
    if answer.status != web.HTTPOk.status_code:
        return answer
    assert isinstance(answer.body, bytes)
    return web.Response(
        text=msgspec.json.decode(answer.body, type=str),
        content_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


async def _events(request: web.Request) -> web.StreamResponse:
    """Send ticks as Server-Sent Events."""
    [subjects] = request.app[_SUBJECTS]
    scheduler = subjects[0] if subjects else None
    if not isinstance(scheduler, SchedulerSubject):
        return _problem(404, "only a running scheduler sends events")
    if scheduler.is_full:
        return _problem(503, "too many pages follow this scheduler")
    stream = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(_RETRY)
    async for tick in scheduler.ticks():
        await stream.write(b"data: " + pages.as_json(tick) + b"\n\n")
    return stream


async def _schema(request: web.Request) -> web.Response:
    return web.json_response(pages.schema(_SCHEMA_TYPES))


def _problem(status: int, text: str) -> web.Response:
    body = pages.as_json(answers.Problem(error=text))
    return web.Response(status=status, body=body, content_type="application/json")


async def _file(name: str, request: web.Request) -> web.Response:
    path = STATIC / name
    headers = {"Content-Type": _CONTENT_TYPES[path.suffix]}
    return web.Response(body=path.read_bytes(), headers=headers)


async def _with_headers(token: str, request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        answer = await _admitted(token, request, handler)
    except web.HTTPException as problem:
        answer = _problem(problem.status, problem.reason)
    if not answer.prepared:
        answer.headers.update(_HEADERS)
    return answer


async def _admitted(token: str, request: web.Request, handler: Handler) -> web.StreamResponse:
    if not token:
        return await handler(request)
    # A path that is not served may name another host: //evil.example/?token=…
    is_served = request.match_info.http_exception is None
    if is_served and "token" in request.query and _is_equal(request.query["token"], token):
        found = web.Response(status=302, headers={"Location": request.path})
        found.set_cookie(COOKIE, token, httponly=True, samesite="Strict", path="/")
        return found
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    presented = bearer if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    if not _is_equal(presented, token):
        return web.Response(status=401, text="Unauthorized: open the address with ?token=TOKEN\n")
    return await handler(request)


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode())


def refuse_foreign_origin(headers: Mapping[str, str]) -> str:
    """Refuse requests of pages of another host, which may not use the cookie of a server with a
    token."""
    origin, host = headers.get("Origin"), headers.get("Host", "")
    if origin is None or urlsplit(origin).netloc == host:
        return refuse_cross_site(headers)
    return "Forbidden: Origin is another host"


# ---- serving --------------------------------------------------------------------------------


async def serve_ui(
    subjects: Sequence[Subject], options: UiOptions, on_ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM. ``on_ready`` gets the URL. Raises OSError."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    worker = ThreadPoolExecutor(1, "runs")
    await serve_until(ended, subjects, options, on_ready=on_ready, worker=worker)


async def serve_until(
    ended: asyncio.Event,
    subjects: Sequence[Subject],
    options: UiOptions,
    *,
    on_ready: Callable[[str], None],
    worker: ThreadPoolExecutor,
) -> None:
    """Serve as `serve_ui` does. ``worker``: loads what is shown; it is shut down at the end."""
    is_local = is_loopback(options.address)
    assert is_local or options.token, "an address that is not loopback needs a token"
    guard: Guard = refuse_foreign_names if is_local else refuse_foreign_origin
    server = HttpServer(application(subjects, options.token), limits=_LIMITS, guard=guard)
    try:
        port = await server.start(options.address, options.port)
        for one in subjects:
            one.start(worker)
        query = f"?token={options.token}" if options.token else ""
        host = f"[{options.address}]" if ":" in options.address else options.address
        on_ready(f"http://{host}:{port}/{query}")
        await ended.wait()
    finally:
        await server.stop()
        for one in subjects:
            one.stop()
        worker.shutdown(wait=False, cancel_futures=True)
