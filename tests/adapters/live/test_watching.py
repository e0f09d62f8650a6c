"""Lists by page, watches by line, and the stored original objects."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
from aiohttp import web

from bayplan.adapters.live import watching
from bayplan.adapters.live.discovery import Resource
from bayplan.adapters.live.errors import UnreadableAnswerError
from bayplan.adapters.live.watching import (
    PAGE_LENGTH,
    WATCH_SECONDS_MIN,
    KindReader,
    Originals,
    ReadingOptions,
)
from bayplan.api.objects import NODE, POD, decode
from bayplan.ports import ApiError, EventType, GoneError, WatchEvent
from bayplan.rng import stream
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import Handler, status

# ---- watching -------------------------------------------------------------------------------


T = TypeVar("T")
PODS = Resource(POD, "", "pods", is_namespaced=True)
NODES = Resource(NODE, "", "nodes", is_namespaced=False)


def result_of(
    handler: Handler,
    ask: Callable[[KindReader], Awaitable[T]],
    resource: Resource = NODES,
    options: ReadingOptions | None = None,
) -> T:
    async def main() -> T:
        async with talking_to(handler) as client:
            random = stream(1, "watches")
            return await ask(KindReader(client, resource, random, options or ReadingOptions()))

    return asyncio.run(main())


def named(name: str, version: str = "1", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}, **fields}


class Pages:
    """A server with these pages; if `expired`, every continue token is too old."""

    def __init__(self, *pages: list[dict[str, Any]], expired: bool = False) -> None:
        self.pages = pages
        self.expired = expired
        self.queries: list[dict[str, str]] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        query = dict(request.query)
        self.queries.append(query)
        if query["limit"] == "0":
            return self.page([each for page in self.pages for each in page], "")
        if self.expired and "continue" in query:
            return status(410, "Expired", "The provided continue parameter is too old")
        number = int(query.get("continue", "0"))
        more = str(number + 1) if number + 1 < len(self.pages) else ""
        return self.page(self.pages[number], more)

    def page(self, items: list[dict[str, Any]], more: str) -> web.Response:
        return web.json_response(
            {"metadata": {"resourceVersion": "7", "continue": more}, "items": items or None}
        )


class EndlessPages:
    """A server whose pages never end."""

    def __init__(self, item_count: int, token: str = "") -> None:
        self.item_count = item_count
        self.token = token
        self.count = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.count += 1
        items = [named(f"{self.count}-{number}") for number in range(self.item_count)]
        meta = {"resourceVersion": "7", "continue": self.token or str(self.count)}
        return web.json_response({"metadata": meta, "items": items})


@pytest.mark.parametrize(
    ("pages", "problem", "count_max"),
    [
        (EndlessPages(1), "more than 30 pages", 32),
        (EndlessPages(0), "more than 10 pages without an object", 13),
        (EndlessPages(1, "same"), "two pages that continue at the same place", 3),
        (EndlessPages(0, "same"), "two pages that continue at the same place", 3),
        (EndlessPages(20), "more than 0 GiB", 12),
    ],
)
def test_a_list_without_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, pages: EndlessPages, problem: str, count_max: int
) -> None:
    monkeypatch.setattr(watching, "PAGES_MAX", 30)
    monkeypatch.setattr(watching, "EMPTY_PAGES_MAX", 10)
    monkeypatch.setattr(watching, "LIST_BYTES_MAX", 10_000)
    with pytest.raises(UnreadableAnswerError, match=problem):
        result_of(pages, lambda reading: reading.list())
    assert pages.count <= count_max


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_EVENT_BYTES_MAX", 1000)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"x" * 100_000)

    async def watched(reading: KindReader) -> None:
        async for _ in reading.watch("1"):
            pass

    with pytest.raises(UnreadableAnswerError, match="an event is larger than"):
        result_of(handler, watched)


def test_a_list_joins_all_pages_of_one_version() -> None:
    pages = Pages([named("a"), named("b")], [named("c")])
    listing = result_of(pages, lambda reading: reading.list())
    assert [one.metadata.name for one in listing.objects] == ["a", "b", "c"]
    assert listing.resource_version == "7"
    assert pages.queries == [
        {"limit": str(PAGE_LENGTH)},
        {"limit": str(PAGE_LENGTH), "continue": "1"},
    ]


POD_JSON = '{"metadata":{"name":"a"},"spec":{"containers":[{"name":"x"}]}}'


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[POD]}',
        '{"items":[POD],"metadata":{"resourceVersion":"7"}}',
        '{"kind":"PodList","items":[POD],"metadata":{"resourceVersion":"7"}}',
        '{"metadata":{"other":{"a":1,"items":[]},"resourceVersion":"7"},"items":[POD]}',
        '{"metadata":{"note":"\\",\\"items\\":","resourceVersion":"7"},"items":[POD]}',
    ],
    ids=["as usual", "items first", "items before the metadata", "two items", "quoted items"],
)
@pytest.mark.parametrize("null", ["", ',"status":null'])
@pytest.mark.parametrize("are_stored", [False, True])
def test_a_page_may_have_its_fields_in_any_order_and_nulls(
    body: str, null: str, are_stored: bool
) -> None:
    content = body.replace("POD", POD_JSON[:-1] + null + "}").encode()

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(body=content)

    options = ReadingOptions(originals=Originals((POD,)) if are_stored else None)
    listing = result_of(answer, lambda reading: reading.list(), PODS, options)
    assert listing.resource_version == "7"
    assert list(listing.objects) == [decode(POD, POD_JSON.encode())]


def test_a_token_is_read_before_the_items() -> None:
    next_page = '{"metadata":{"resourceVersion":"7"},"items":[]}'
    bodies = ['{"metadata":{"continue":"n\\u0061","resourceVersion":"7"},"items":[]}', next_page]
    queries: list[str | None] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        queries.append(request.query.get("continue"))
        return web.Response(body=bodies[len(queries) - 1].encode())

    result_of(answer, lambda reading: reading.list())
    assert queries == [None, "na"]


def test_expired_pages_are_requested_again_as_one_list() -> None:
    pages = Pages([named("a")], [named("b")], expired=True)
    listing = result_of(pages, lambda reading: reading.list())
    assert [one.metadata.name for one in listing.objects] == ["a", "b"]
    assert [query["limit"] for query in pages.queries] == [str(PAGE_LENGTH)] * 2 + ["0"]


def test_finished_pods_are_excluded_and_label_selectors_apply() -> None:
    pages = Pages([])
    result_of(
        pages, lambda reading: reading.list(), PODS, ReadingOptions(label_selector="team in (a,b)")
    )
    [query] = pages.queries
    assert query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
    assert query["labelSelector"] == "team in (a,b)"


def test_declared_fields_are_decoded() -> None:
    pages = Pages([named("n", status={"nodeInfo": {"kubeletVersion": "v1"}})])
    path = "status.nodeInfo.kubeletVersion"
    listing = result_of(
        pages, lambda reading: reading.list(), options=ReadingOptions(declared=(path,))
    )
    result: Any = listing.objects[0]
    assert result.declared == {path: "v1"}


# ---- watches ---------------------------------------------------------------------------------


def line(kind: str, content: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": content}) + b"\n"


class Lines:
    """Sends each piece in one write, then ends the response."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.queries: list[dict[str, str]] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece)
        return response


def watched(*pieces: bytes, resource: Resource = NODES) -> tuple[list[WatchEvent], dict[str, str]]:
    server = Lines(*pieces)

    async def ask(reading: KindReader) -> list[WatchEvent]:
        return [event async for event in reading.watch("5")]

    return result_of(server, ask, resource), server.queries[0]


def test_a_watch_returns_changes_with_their_versions() -> None:
    events, query = watched(
        line("ADDED", named("a", "6")),
        line("MODIFIED", named("a", "7")) + line("DELETED", named("a", "8")),
    )
    reports = [(event.type, event.object.metadata.name, event.resource_version) for event in events]
    assert reports == [
        (EventType.ADDED, "a", "6"),
        (EventType.MODIFIED, "a", "7"),
        (EventType.DELETED, "a", "8"),
    ]
    assert WATCH_SECONDS_MIN <= int(query.pop("timeoutSeconds")) <= 2 * WATCH_SECONDS_MIN
    assert query == {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": "5"}


def test_a_line_may_arrive_in_parts() -> None:
    whole = line("ADDED", named("a", "6")) + line("ADDED", named("b", "7"))
    events, _ = watched(whole[:10], whole[10:70], whole[70:])
    assert [event.object.metadata.name for event in events] == ["a", "b"]


def test_an_expired_version_raises_gone() -> None:
    expired = {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
    }
    with pytest.raises(GoneError, match="too old"):
        watched(line("ERROR", expired))


def test_other_errors_are_those_of_the_server() -> None:
    busy = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd is away"}
    with pytest.raises(ApiError, match="etcd is away") as error:
        watched(line("ERROR", busy))
    assert error.value.code == 500


def test_an_undecodable_object_raises_an_unreadable_answer() -> None:
    with pytest.raises(UnreadableAnswerError):
        watched(line("ADDED", {"metadata": {"name": 5}}))


NONSENSE = [
    b'{"truncated":',
    b"<html>log in first</html>",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"items":[{"metadata":{"name":5}}]}',
]


@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
def test_a_list_with_a_foreign_answer_is_an_outside_failure(body: bytes) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body)

    with pytest.raises(UnreadableAnswerError, match="is a proxy or a load balancer in between"):
        result_of(handler, lambda reading: reading.list())


@pytest.mark.parametrize(
    "line", [*NONSENSE[:4], b'{"type":"NEW","object":{"metadata":{"name":"a"}}}'], ids=range(5)
)
def test_a_watch_with_a_foreign_answer_is_an_outside_failure(line: bytes) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=line + b"\n")

    async def watch(reading: KindReader) -> list[WatchEvent]:
        return [event async for event in reading.watch("5")]

    with pytest.raises(UnreadableAnswerError, match=r"^watch /api/v1/nodes: found an answer"):
        result_of(handler, watch)


# ---- original objects -----------------------------------------------------------------------


def raw(name: str, **more: Any) -> msgspec.Raw:
    meta = {"name": name, "namespace": "default", "uid": name, "managedFields": [{}]}
    return msgspec.Raw(json.dumps({"kind": "Pod", "metadata": meta, "spec": {}, **more}).encode())


def note(originals: Originals, event: EventType, content: msgspec.Raw, kind: str = POD) -> None:
    originals.note(WatchEvent(event, kind, decode(kind, bytes(content))), content)


def whole(originals: Originals, name: str) -> Any:
    content = originals.whole(POD, "default", name)
    return None if content is None else json.loads(content)


def test_watched_objects_are_returned_complete_but_trimmed() -> None:
    originals = Originals([POD])
    note(originals, EventType.ADDED, raw("p", spec={"dnsPolicy": "Default"}))
    expected = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"dnsPolicy": "Default"},
    }
    assert whole(originals, "p") == expected
    assert whole(originals, "p") == expected


def test_the_newest_version_counts_and_deleted_objects_are_removed() -> None:
    originals = Originals([POD])
    note(originals, EventType.ADDED, raw("p"))
    note(originals, EventType.MODIFIED, raw("p", spec={"nodeName": "n1"}))
    assert whole(originals, "p")["spec"] == {"nodeName": "n1"}
    note(originals, EventType.DELETED, raw("p"))
    assert whole(originals, "p") is None


def test_a_list_replaces_everything_after_its_last_page() -> None:
    originals = Originals([POD])
    note(originals, EventType.ADDED, raw("old"))
    listing = originals.listing(POD)
    assert listing is not None
    listing.add([(decode(POD, bytes(raw("p"))), raw("p"))])
    assert whole(originals, "old") is not None
    listing.end()
    assert whole(originals, "old") is None
    assert whole(originals, "p") is not None


def test_kinds_that_are_not_sent_on_are_not_stored() -> None:
    originals = Originals([POD])
    note(originals, EventType.ADDED, raw("n1"), NODE)
    assert originals.whole(NODE, "", "n1") is None
    assert originals.listing(NODE) is None
