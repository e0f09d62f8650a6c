"""A live cluster as it is now: the lists of its kinds, and a model of its objects.

Only gets and lists are sent. All kinds are listed side by side, each in pages of one moment. A kind
that the user may not list is left out, and the answer names it; without nodes or pods there is no
answer. The content of the pod that a question is about, and of the controllers above it, is read as
the server has it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar, final

import msgspec

from bayplan.adapters.live.client import ApiClient, all_results
from bayplan.adapters.live.discovery import Resource
from bayplan.adapters.live.errors import (
    AccessDeniedError,
    UnreadableAnswerError,
    read_answer,
    unreadable,
)
from bayplan.adapters.live.server_version import reported_by_server
from bayplan.adapters.live.watching import PAGE_LENGTH, KindReader, Originals, ReadingOptions
from bayplan.api.objects import (
    POD,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiObject,
    DecodeError,
    decode,
)
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import NOTHING_REPORTED
from bayplan.model.cluster_kinds import CHANGED_KINDS, NEEDED, ClusterKinds, cluster_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import Content, ObjectKey, key_of_metadata, object_key
from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError, GoneError
from bayplan.problems import Problem, shown
from bayplan.profile.dry_start import declared_fields
from bayplan.rng import stream
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.stored_objects import StoredObjects

T = TypeVar("T")

#: Controllers of which a scheduler reads a part only.
_WITH_PARTS = (STATEFUL_SET, REPLICATION_CONTROLLER)
#: Lists that are read side by side: a connection costs a handshake.
CONNECTIONS_MAX = 4
#: A Deployment owns a ReplicaSet owns a pod; a longer chain has a controller of another kind.
_OWNERS_MAX = 4


@final
class ClusterLists:
    """Lists of the kinds of a cluster. `unreadable` has the kinds that the user may not list, and
    the reasons of the server; `stored` the objects that cannot be decoded, which are left out."""

    def __init__(
        self,
        client: ApiClient,
        *,
        declared: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        originals: Originals | None = None,
    ) -> None:
        """``declared``: kind → further field paths that decoded objects have. ``originals``: stores
        objects as the server wrote them."""
        self._client = client
        self._declared = declared
        self._originals = originals
        self._lanes = asyncio.Semaphore(CONNECTIONS_MAX)
        self.unreadable: dict[str, str] = {}
        self.stored = StoredObjects()

    async def objects(self, resource: Resource) -> Iterable[ApiObject]:
        """All objects of a kind. Raises ApiError if nodes or pods cannot be listed."""

        async def listed(reader: KindReader) -> Iterable[ApiObject]:
            return (await reader.list()).objects

        return await self._read(resource, listed) or ()

    async def contents(self, resource: Resource) -> list[Content]:
        """All objects of a kind as the server wrote them. Raises as `objects`."""
        return await self._read(resource, KindReader.contents) or []

    async def pages(self, resource: Resource, length: int) -> AsyncGenerator[Iterable[ApiObject]]:
        """The pages of one list; see `KindReader.pages`. Raises ApiError."""
        async with self._lanes, aclosing(self._reader(resource).pages(length)) as pages:
            async for page in pages:
                yield page.objects

    async def _read(
        self, resource: Resource, read: Callable[[KindReader], Awaitable[T]]
    ) -> T | None:
        async with self._lanes:
            try:
                return await read(self._reader(resource))
            except AccessDeniedError as problem:
                if resource.kind in NEEDED:
                    raise
                self.unreadable[resource.kind] = str(problem)
                return None

    def _reader(self, resource: Resource) -> KindReader:
        kind = resource.kind

        def leave_out(content: Content, reason: str) -> None:
            meta = content["metadata"]
            key = object_key(kind, meta.get("namespace") or "", meta["name"])
            self.stored.leave_out(str(key), [Problem("", reason)], key, content)

        options = ReadingOptions(
            declared=self._declared.get(kind, ()), originals=self._originals, leave_out=leave_out
        )
        return KindReader(self._client, resource, stream(0, kind), options)


async def model_of_cluster(
    client: ApiClient,
    config: SchedulerConfig,
    registry: Registry,
    subject: str = "",
    *,
    is_whole: bool = False,
    seed: int = 0,
) -> ClusterModel:
    """A model of everything that a scheduler with this configuration reads, and that a fix may
    change. It is built while the list of pods arrives page by page.

    ``subject``: "namespace/name" of the pod whose content is kept, with the content of its
    controllers. ``is_whole``: keep the content of all objects, as a simulation needs it. Raises
    ApiError if nodes or pods cannot be read, ConfigError.
    """
    kinds = await cluster_kinds(client, [config], registry, CHANGED_KINDS)
    declared = declared_fields([config], registry)
    reported = NOTHING_REPORTED if config.names_version else await reported_by_server(client)

    async def read(length: int) -> ClusterModel:
        originals = Originals(kinds.kinds if is_whole else _WITH_PARTS)
        lists = ClusterLists(client, declared=declared, originals=originals)
        building = _ModelBuilder(kinds, lists, config=config, registry=registry, seed=seed)
        building.reported = reported
        try:
            await building.read(length)
            chain = await _chain(client, kinds, subject, lists.unreadable) if subject else {}
            return building.end({**chain, **_contents(building.objects, originals)})
        except BaseException:
            building.close()
            raise

    try:
        return await read(PAGE_LENGTH)
    except GoneError:
        # The server has forgotten the moment that the pages show: one page shows one moment.
        return await read(0)


@final
class _ModelBuilder:
    """A model that is built while the pods arrive."""

    def __init__(
        self,
        kinds: ClusterKinds,
        lists: ClusterLists,
        *,
        config: SchedulerConfig,
        registry: Registry,
        seed: int,
    ) -> None:
        self._kinds = kinds
        self._lists = lists
        self._config = config
        self._registry = registry
        self._seed = seed
        self.objects = ObjectStore[ApiObject]()
        self.reported = NOTHING_REPORTED
        #: None while the other lists are read.
        self._model: ClusterModel | None = None

    async def read(self, length: int) -> None:
        """Read all objects. ``length``: of a page of pods. Raises ApiError, ConfigError."""
        resources = dict(self._kinds.resources)
        pods = resources.pop(POD)
        await all_results([self._read_pods(pods, length), self._begin(resources.values())])

    def end(self, contents: dict[ObjectKey, Content | bytes]) -> ClusterModel:
        """The model of all objects."""
        assert self._model is not None
        self._model.end_reading(replace(self._picture(), contents=MappingProxyType(contents)))
        return self._model

    def close(self) -> None:
        """Close the model that was begun."""
        if self._model is not None:
            self._model.close()

    def _picture(self) -> ClusterPicture:
        return ClusterPicture(
            self.objects,
            absent=self._kinds.absent,
            unreadable=MappingProxyType(dict(sorted(self._lists.unreadable.items()))),
            source=self._kinds.name,
            reported=self.reported,
            left_out=tuple(self._lists.stored.left_out.items()),
            notes=tuple(self._lists.stored.notes()),
            epoch_seconds=RealClock().epoch_seconds(),
        )

    async def _read_pods(self, resource: Resource, length: int) -> None:
        async with aclosing(self._lists.pages(resource, length)) as pages:
            async for page in pages:
                pods = self._add(POD, page)
                if self._model is not None:
                    self._model.read_pods(pods)

    async def _begin(self, resources: Iterable[Resource]) -> None:
        """Begin the model when all lists but that of pods are read, with the pods so far."""

        async def read(resource: Resource) -> None:
            self._add(resource.kind, await self._lists.objects(resource))

        await all_results(map(read, resources))
        self._model = ClusterModel(self._picture(), self._config, self._registry, seed=self._seed)

    def _add(self, kind: str, objects: Iterable[ApiObject]) -> list[tuple[ObjectKey, ApiObject]]:
        added = [(key_of_metadata(kind, each.metadata), each) for each in objects]
        for key, each in added:
            self.objects.put(key, each)
        return added


def _contents(objects: ObjectStore[ApiObject], originals: Originals) -> dict[ObjectKey, bytes]:
    """The content of all objects whose original is stored."""
    wholes = ((key, originals.whole(*key)) for key, _ in objects)
    return {key: whole for key, whole in wholes if whole is not None}


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    name: str
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    owner_references: list[_Owner] | None = None


class _Whole(msgspec.Struct):
    """What each object must have here."""

    metadata: _Metadata
    spec: Content


async def _content_of(
    client: ApiClient, resource: Resource, namespace: str, name: str
) -> tuple[Content, _Metadata]:
    """The content of one object. Raises ApiError (UnreadableAnswerError: it is another object)."""
    path = resource.path(namespace, name)
    body, request = await client.request("GET", path), f"GET {path}"
    meta = read_answer(body, _Whole, request).metadata
    if (meta.namespace, meta.name) != (namespace, name):
        answered = shown(f"{meta.namespace}/{meta.name}")
        raise UnreadableAnswerError(f"{request}: found {answered}, which is another object")
    if resource.kind == POD:
        try:
            decode(POD, body)
        except DecodeError as problem:
            raise UnreadableAnswerError(unreadable(request, body, problem)) from None
    return read_answer(body, Content, request), meta


async def _chain(
    client: ApiClient, kinds: ClusterKinds, pod: str, unread: dict[str, str]
) -> dict[ObjectKey, Content]:
    """The content of a pod and of the controllers above it, as far as they can be read.

    Raises UnreadableAnswerError.
    """
    namespace, _, name = pod.partition("/")
    contents: dict[ObjectKey, Content] = {}
    kind = POD
    while len(contents) < _OWNERS_MAX:
        resource = kinds.resources.get(kind) if kind in (POD, *CONTROLLERS) else None
        if resource is None:
            break
        try:
            content, meta = await _content_of(client, resource, namespace, name)
        except UnreadableAnswerError:
            raise
        except ApiError as problem:
            if kind != POD:
                unread[kind] = str(problem)
            break
        contents[ObjectKey(kind, namespace, name)] = content
        owner = next((each for each in meta.owner_references or () if each.controller), None)
        if owner is None:
            break
        kind, name = f"{owner.api_version} {owner.kind}", owner.name
    return contents
