"""Lists in pages and watches line by line, decoded from bytes by `bayplan.api`.

Lists name no resourceVersion, so the server answers with its newest state and a client never goes
back in time. All pages of a list show one moment, at whose version the watch begins. If the server
has forgotten that moment (410), the list is read in one piece, as client-go's pager does.

`Originals` holds the bytes of objects as the API server wrote them. Decoded objects have only the
fields that a scheduler reads; an extender must get whole objects. The bytes are stored only for
kinds that are sent on, and trimmed when an object is first sent, because most objects never are.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, final
from urllib.parse import urlencode

import msgspec

from bayplan.adapters.embedded.versioned_store import trimmed
from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Resource
from bayplan.adapters.live.errors import (
    ApiStatus,
    UnreadableAnswerError,
    of_status,
    read_answer,
    unreadable,
)
from bayplan.adapters.live.transport import ANSWER_BYTES_MAX
from bayplan.api.objects import POD, ApiObject, DecodeError, decode, struct_of
from bayplan.objects.keys import Content
from bayplan.ports import EventType, GoneError, Listing, WatchEvent
from bayplan.rng import Stream

# ---- whole objects --------------------------------------------------------------------------


_Key = tuple[str, str]


@final
class _Original:
    __slots__ = ("_content", "_is_trimmed")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._is_trimmed = False

    def content(self) -> bytes:
        if not self._is_trimmed:
            self._content = trimmed(msgspec.json.decode(self._content))
            self._is_trimmed = True
        return self._content


@final
class ListPages:
    """The pages of one list. Originals of the previous list are used until `end`."""

    def __init__(self, originals: dict[_Key, _Original]) -> None:
        self._originals = originals
        self._listed: dict[_Key, _Original] = {}

    def add(self, read: Iterable[tuple[ApiObject, msgspec.Raw]]) -> None:
        self._listed |= {_key(each): _Original(bytes(raw)) for each, raw in read}

    def end(self) -> None:
        self._originals.clear()
        self._originals |= self._listed


@final
class Originals:
    """Originals of some kinds, by namespace and name."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._by_kind: dict[str, dict[_Key, _Original]] = {kind: {} for kind in kinds}

    def listing(self, kind: str) -> ListPages | None:
        """Begin a list of a kind; None if the kind is not stored."""
        originals = self._by_kind.get(kind)
        return None if originals is None else ListPages(originals)

    def note(self, event: WatchEvent, raw: msgspec.Raw) -> None:
        """Store the original of a changed object, or drop that of a deleted one."""
        originals = self._by_kind.get(event.kind)
        if originals is None:
            return
        if event.type is EventType.DELETED:
            originals.pop(_key(event.object), None)
        else:
            originals[_key(event.object)] = _Original(bytes(raw))

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        """See adapters.embedded.versioned_store.WholeObjects."""
        original = self._by_kind.get(kind, {}).get((namespace, name))
        return None if original is None else original.content()


def _key(item: ApiObject) -> _Key:
    return item.metadata.namespace or "", item.metadata.name


# ---- one watch ------------------------------------------------------------------------------


PAGE_LENGTH = 500
#: Of one list. Five million objects are more than any API server holds; a server without an end is
#: broken, or hostile.
PAGES_MAX = 10_000
#: Pages one after the other without an object.
EMPTY_PAGES_MAX = 100
#: Of all pages of a list together, and of a list in one page.
LIST_BYTES_MAX = 4 << 30
#: Of one event. An object has at most 1.5 MiB.
_EVENT_BYTES_MAX = 64 << 20
#: As client-go: a watch lasts this long, up to twice.
WATCH_SECONDS_MIN = 300
#: The server sends a bookmark every minute. Upstream: apiserver's cacher, bookmarkFrequency.
SILENCE_SECONDS_MAX = 75.0

#: The field selectors of kube-scheduler's informers.
FIELD_SELECTORS = {POD: "status.phase!=Succeeded,status.phase!=Failed"}


_Item = TypeVar("_Item")

_CHANGES = frozenset((EventType.ADDED, EventType.MODIFIED, EventType.DELETED))


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list."""

    resource_version: str = ""
    # Absent or empty: there are no more pages.
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Head(msgspec.Struct):
    """A page without its items."""

    metadata: ListMeta


class _Page(msgspec.Struct, Generic[_Item]):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[_Item] | None = None


#: An API server writes the metadata before the items.
_ITEMS = b',"items":'
_HEAD_BYTES_MAX = 4096


def _list_meta(body: bytes, request: str) -> ListMeta:
    """The metadata of a page, if possible without a scan of its items.

    A string of JSON has no unescaped quote, so `_ITEMS` is never a part of one. Raises
    UnreadableAnswerError.
    """
    end = body.find(_ITEMS, 0, _HEAD_BYTES_MAX)
    if end >= 0:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            return msgspec.json.decode(body[:end] + b"}", type=_Head).metadata
    return read_answer(body, _Page[msgspec.Raw], request).metadata


@final
class PageLimits:
    """What one list may take. A server that sends pages without an end would fill the memory."""

    def __init__(self, request: str) -> None:
        self._request = request
        self._page_count = 0
        self._byte_count = 0
        self._empty_count = 0
        self._token = ""

    def add(self, byte_count: int, token: str) -> None:
        """Add a page that has arrived. ``token``: for the next one. Raises
        UnreadableAnswerError."""
        self._page_count += 1
        self._byte_count += byte_count
        if token and token == self._token:
            self._refuse("two pages that continue at the same place")
        self._token = token
        if self._page_count > PAGES_MAX:
            self._refuse(f"more than {PAGES_MAX:,} pages")
        if self._byte_count > LIST_BYTES_MAX:
            self._refuse(f"more than {LIST_BYTES_MAX >> 30} GiB")

    def end_page(self, object_count: int) -> None:
        """The page was read. Raises UnreadableAnswerError."""
        self._empty_count = 0 if object_count else self._empty_count + 1
        if self._empty_count > EMPTY_PAGES_MAX:
            self._refuse(f"more than {EMPTY_PAGES_MAX} pages without an object")

    def _refuse(self, what: str) -> None:
        raise UnreadableAnswerError(
            f"{self._request}: found {what}, wanted a list that ends; is it an API server?"
        )


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: ListMeta


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """Options for reading one kind."""

    #: Further field paths that decoded objects keep.
    declared: tuple[str, ...] = ()
    #: Only matching objects are read.
    label_selector: str = ""
    #: A watch that is silent for longer has stalled.
    silence_seconds_max: float = SILENCE_SECONDS_MAX
    #: Stores the objects as the server wrote them; None: not stored.
    originals: Originals | None = None
    #: Called with each object of a list that has a name and cannot be decoded, and the reason: the
    #: object is left out. None: such a list cannot be read.
    leave_out: Callable[[Content, str], None] | None = None


async def watch_lines(
    client: ApiClient, path: str, silence_seconds_max: float
) -> AsyncGenerator[bytes]:
    """The events of a watch, as the server writes them. Raises what `ApiClient.stream` raises, and
    UnreadableAnswerError for an event without an end."""
    incomplete = b""
    async for piece in client.stream(path, silence_seconds_max):
        *lines, incomplete = (incomplete + piece).split(b"\n")
        if len(incomplete) > _EVENT_BYTES_MAX:
            size = f"larger than {_EVENT_BYTES_MAX >> 20} MiB"
            raise UnreadableAnswerError(f"watch {path.partition('?')[0]}: an event is {size}")
        for line in lines:
            yield line


class _NamedMetadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] | None = None


class _NamedObject(msgspec.Struct):
    """What each object must have."""

    metadata: _NamedMetadata


def _plain(body: bytes, request: str) -> Sequence[Content]:
    """The objects of a page as plain values. Raises UnreadableAnswerError."""
    contents = read_answer(body, _Page[Content], request).items or ()
    for number, content in enumerate(contents):
        try:
            msgspec.convert(content, _NamedObject)
        except msgspec.ValidationError as problem:
            raise UnreadableAnswerError(f"{request}: items[{number}]: {problem}") from None
    return contents


async def _whole(pages: Callable[[int], AsyncGenerator[_Item]]) -> list[_Item]:
    """All pages of a list; a single one, if the server forgets the moment that they show. Raises
    ApiError."""
    try:
        return await _collected(pages(PAGE_LENGTH))
    except GoneError:
        return await _collected(pages(0))


async def _collected(pages: AsyncGenerator[_Item]) -> list[_Item]:
    async with aclosing(pages):
        return [page async for page in pages]


@final
class KindReader:
    """Lists and watches of one kind."""

    def __init__(
        self, client: ApiClient, resource: Resource, random: Stream, options: ReadingOptions
    ) -> None:
        self._client = client
        self._resource = resource
        self._random = random
        self._options = options
        selectors = {
            "fieldSelector": FIELD_SELECTORS.get(resource.kind, ""),
            "labelSelector": options.label_selector,
        }
        self._selectors = {name: value for name, value in selectors.items() if value}
        object_type = None if options.declared else struct_of(resource.kind)
        #: Decodes a page at once; None: each object by itself.
        self._decoder = object_type and msgspec.json.Decoder(_Page[object_type])

    # ---- lists ------------------------------------------------------------------------------

    async def list(self) -> Listing:
        """Raises ApiError."""
        pages = await _whole(self.pages)
        objects = [each for page in pages for each in page.objects]
        return Listing(objects, pages[-1].resource_version)

    async def contents(self) -> "list[Content]":
        """All objects as the server wrote them; each has a name. Raises ApiError."""

        async def pages(length: int) -> AsyncGenerator[Sequence[Content]]:
            async with aclosing(self._read_pages(length, _plain)) as read:
                async for page, _ in read:
                    yield page

        return [content for page in await _whole(pages) for content in page]

    async def pages(self, length: int = PAGE_LENGTH) -> AsyncGenerator[Listing]:
        """The pages of a list, in order. The server prepares a page while the caller works with the
        page before.

        ``length``: objects of a page at most; 0: all objects in one page. Raises ApiError
        (GoneError: the server has forgotten the moment that the pages show).
        """
        originals = self._options.originals and self._options.originals.listing(self._resource.kind)

        def decoded(body: bytes, request: str) -> Sequence[ApiObject]:
            return self._objects(body, request, originals)

        async with aclosing(self._read_pages(length, decoded)) as pages:
            async for objects, metadata in pages:
                if not metadata.continue_ and originals is not None:
                    originals.end()
                yield Listing(objects, metadata.resource_version)

    async def _read_pages(
        self, length: int, read: Callable[[bytes, str], Sequence[_Item]]
    ) -> AsyncGenerator[tuple[Sequence[_Item], ListMeta]]:
        """The items and the metadata of each page. ``read``: called with a body and a name of the
        request, returns the items."""
        query = {**self._selectors, "limit": str(length)}
        request = f"GET {self._resource.path()}"
        limits = PageLimits(request)
        next_body: asyncio.Task[bytes] | None = None
        try:
            while True:
                body = await (next_body or self._page(query, length))
                metadata = _list_meta(body, request)
                limits.add(len(body), metadata.continue_ or "")
                if metadata.continue_:
                    query["continue"] = metadata.continue_
                    next_body = asyncio.ensure_future(self._page(query, length))
                    await asyncio.sleep(0)  # the request is sent
                items = read(body, request)
                limits.end_page(len(items))
                yield items, metadata
                if not metadata.continue_:
                    return
        finally:
            if next_body is not None:
                next_body.cancel()
                await asyncio.gather(next_body, return_exceptions=True)

    async def _page(self, query: dict[str, str], length: int) -> bytes:
        bytes_max = ANSWER_BYTES_MAX if length else LIST_BYTES_MAX
        return await self._client.request("GET", self._path(query), bytes_max=bytes_max)

    def _objects(
        self, body: bytes, request: str, originals: ListPages | None
    ) -> Sequence[ApiObject]:
        """The objects of a page. Raises UnreadableAnswerError."""
        if self._decoder is not None and originals is None:
            # A page with a null that its type does not allow is decoded object by object.
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return self._decoder.decode(body).items or ()
        items = read_answer(body, _Page[msgspec.Raw], request).items or ()
        read = [(self._listed(item, request), item) for item in items]
        read = [(each, item) for each, item in read if each is not None]
        if originals is not None:
            originals.add(read)
        return [each for each, _ in read]

    def _listed(self, raw: msgspec.Raw, request: str) -> ApiObject | None:
        """None: it is left out. Raises UnreadableAnswerError."""
        leave_out = self._options.leave_out
        if leave_out is None:
            return self._decoded(raw, request)
        try:
            return self._decode(raw)
        except DecodeError as problem:
            # What has no name is not an object: a proxy may have answered.
            read_answer(raw, _NamedObject, request)
            leave_out(read_answer(raw, Content, request), str(problem))
            return None

    def _decoded(self, raw: msgspec.Raw, request: str) -> ApiObject:
        """Raises UnreadableAnswerError."""
        try:
            return self._decode(raw)
        except DecodeError as problem:
            raise UnreadableAnswerError(unreadable(request, bytes(raw), problem)) from None

    def _decode(self, raw: msgspec.Raw) -> ApiObject:
        """Raises DecodeError."""
        return decode(self._resource.kind, bytes(raw), self._options.declared)

    def _path(self, query: dict[str, str]) -> str:
        return f"{self._resource.path()}?{urlencode(query)}"

    # ---- watches ----------------------------------------------------------------------------

    async def watch(self, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Changes after a version, with bookmarks, until the server ends it.

        Raises ApiError (GoneError: list again), WatchDroppedError.
        """
        seconds = int(WATCH_SECONDS_MIN * (1 + self._random.random()))
        query = {
            **self._selectors,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            "resourceVersion": resource_version,
        }
        silence = self._options.silence_seconds_max
        async for line in watch_lines(self._client, self._path(query), silence):
            yield self._event(line)

    def _event(self, line: bytes) -> WatchEvent:
        kind = self._resource.kind
        request = f"watch {self._resource.path()}"
        line_parts = read_answer(line, _Line, request)
        if line_parts.type == EventType.BOOKMARK:
            version = read_answer(line_parts.object, _Bookmark, request).metadata.resource_version
            return WatchEvent(EventType.BOOKMARK, kind, None, version)
        if line_parts.type == "ERROR":
            status = read_answer(line_parts.object, ApiStatus, request)
            raise of_status(status.code or 0, status, f"watch of {kind}")
        changed = self._decoded(line_parts.object, request)
        if line_parts.type not in _CHANGES:
            problem = ValueError(f"found type {line_parts.type!r}")
            raise UnreadableAnswerError(unreadable(request, line, problem))
        event = WatchEvent(
            EventType(line_parts.type), kind, changed, changed.metadata.resource_version or ""
        )
        if self._options.originals is not None:
            self._options.originals.note(event, line_parts.object)
        return event
