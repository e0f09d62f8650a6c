"""The objects of a cluster, from its API server. Only gets and lists are sent.

All kinds are listed side by side, each in pages of one moment. A kind that the user may not list is
left out, and the objects name it; without nodes or pods there is no answer. The content of the
pod that a question is about, and of the controllers above it, is read as the server has it.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import Any, final

import msgspec

from bayplan.adapters.live.client import ApiClient, all_results
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.errors import (
    AccessDeniedError,
    UnreadableAnswerError,
    read_answer,
    unreadable,
)
from bayplan.adapters.live.watching import KindReader, Originals, ReadingOptions
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiObject,
    DecodeError,
    decode,
)
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey, key_of_metadata
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError, GoneError
from bayplan.problems import shown
from bayplan.profile.kinds_in_use import kinds_in_use
from bayplan.rng import stream
from bayplan.serving.discovery import offered_kinds
from bayplan.sim.input.controller_kinds import DAEMON_SET, DEPLOYMENT, JOB

#: Read whatever the plugins are.
_ALWAYS = (NODE, NAMESPACE, PRIORITY_CLASS, DAEMON_SET, *ADMISSION_KINDS)
#: Without these there is no answer.
_NEEDED = (NODE, POD)
#: Controllers: a fix changes their template or their size, and a new node gets daemon pods.
_CONTROLLERS = (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
)
#: Controllers of which a scheduler reads a part only.
_WITH_PARTS = (STATEFUL_SET, REPLICATION_CONTROLLER)
#: Lists that are read side by side: a connection costs a handshake.
CONNECTIONS_MAX = 4
#: A Deployment owns a ReplicaSet owns a pod; a longer chain has a controller of another kind.
_OWNERS_MAX = 4


async def objects_of_cluster(
    client: ApiClient,
    config: SchedulerConfig,
    registry: Registry,
    subject: str = "",
    *,
    is_whole: bool = False,
) -> ClusterPicture:
    """Everything that a scheduler with this configuration reads.

    ``subject``: "namespace/name" of the pod whose content is kept, with the content of its
    controllers. ``is_whole``: keep the content of all objects, as a simulation needs it. Raises
    ApiError if nodes or pods cannot be read, ConfigError.
    """
    reading = _ClusterReader(client, config, registry, subject, is_whole=is_whole)
    lists = await reading.lists(await reading.resources())
    return await reading.objects(lists)


async def model_of_cluster(
    client: ApiClient,
    config: SchedulerConfig,
    registry: Registry,
    subject: str = "",
    *,
    is_whole: bool = False,
    seed: int = 0,
) -> ClusterModel:
    """A model of `objects_of_cluster`, which is built while the list of pods arrives page by page.

    Raises as `objects_of_cluster`.
    """
    reading = _ClusterReader(client, config, registry, subject, is_whole=is_whole)
    building = _ModelBuilder(reading, config, registry, seed)
    try:
        return await building.run()
    except GoneError:
        # The pages that were read show a moment that the server has forgotten.
        building.close()
    except BaseException:
        building.close()
        raise
    objects = await objects_of_cluster(client, config, registry, subject, is_whole=is_whole)
    return ClusterModel(objects, config, registry, seed=seed)


@final
class _ClusterReader:
    """The requests of one reading."""

    def __init__(
        self,
        client: ApiClient,
        config: SchedulerConfig,
        registry: Registry,
        subject: str,
        *,
        is_whole: bool,
    ) -> None:
        self._client = client
        self._subject = subject
        self._group_kinds = tuple(group_kinds(config.spec.pod_groups.kinds))
        controllers = (*_CONTROLLERS, POD_DISRUPTION_BUDGET)
        in_use = kinds_in_use(config, registry)
        kinds = dict.fromkeys((*_ALWAYS, *in_use, *controllers, POD))
        self._kinds = tuple(kind for kind in kinds if kind not in self._group_kinds)
        self._discovery = Discovery(client)
        kept = (*self._kinds, *self._group_kinds) if is_whole else _WITH_PARTS
        self._originals = Originals(kept)
        self._unreadable: dict[str, str] = {}
        self._lanes = asyncio.Semaphore(CONNECTIONS_MAX)

    async def resources(self) -> list[Resource]:
        """What there is to list, the longest list first: it takes longer than all others together.

        Raises ApiError.
        """
        discovery = self._discovery
        await discovery.discover((*self._kinds, *self._group_kinds, *_CONTROLLERS))
        offered = offered_kinds(
            self._group_kinds, lambda kind: discovery.resource(kind) is not None
        )
        resources = [discovery.resource(kind) for kind in (*offered, *self._kinds)]
        present = [resource for resource in resources if resource is not None]
        return sorted(present, key=lambda each: each.kind != POD)

    async def lists(self, resources: Iterable[Resource]) -> dict[str, tuple[ApiObject, ...]]:
        """Kind → its objects. Raises ApiError if nodes or pods cannot be listed."""
        return dict(await all_results([self._listed(each) for each in resources]))

    async def pages(self, resource: Resource) -> AsyncGenerator[Sequence[ApiObject]]:
        """The pages of one list. Raises ApiError."""
        async with self._lanes, aclosing(self._reading(resource).pages()) as pages:
            async for page in pages:
                yield page.objects

    async def objects(self, lists: Mapping[str, tuple[ApiObject, ...]]) -> ClusterPicture:
        """All that was read, with the content that is read besides."""
        contents: dict[ObjectKey, dict[str, Any] | bytes] = {}
        if self._subject:
            contents |= await _chain(self._client, self._discovery, self._subject, self._unreadable)
        contents |= _contents(lists, self._originals)
        return replace(self.without_contents(lists), contents=MappingProxyType(contents))

    def without_contents(self, lists: Mapping[str, tuple[ApiObject, ...]]) -> ClusterPicture:
        """All that was read so far."""
        absent = (kind for kind in self._kinds if self._discovery.resource(kind) is None)
        return ClusterPicture(
            store_of(lists),
            absent=frozenset(absent),
            unreadable=MappingProxyType(dict(sorted(self._unreadable.items()))),
            source=self._client.server,
            epoch_seconds=RealClock().epoch_seconds(),
        )

    async def _listed(self, resource: Resource) -> tuple[str, tuple[ApiObject, ...]]:
        async with self._lanes:
            try:
                return resource.kind, tuple((await self._reading(resource).list()).objects)
            except AccessDeniedError as problem:
                if resource.kind in _NEEDED:
                    raise
                self._unreadable[resource.kind] = str(problem)
                return resource.kind, ()

    def _reading(self, resource: Resource) -> KindReader:
        options = ReadingOptions(originals=self._originals)
        return KindReader(self._client, resource, stream(0, resource.kind), options)


@final
class _ModelBuilder:
    """A model that is built while the pods arrive."""

    def __init__(
        self, reading: _ClusterReader, config: SchedulerConfig, registry: Registry, seed: int
    ) -> None:
        self._reading = reading
        self._config = config
        self._registry = registry
        self._seed = seed
        self._pods: list[ApiObject] = []
        #: None while the other lists are read.
        self._model: ClusterModel | None = None

    async def run(self) -> ClusterModel:
        """Raises ApiError, ConfigError."""
        pods, *others = await self._reading.resources()
        assert pods.kind == POD
        lists: dict[str, tuple[ApiObject, ...]] = {}
        await all_results([self._read_pods(pods), self._begin(others, lists)])
        assert self._model is not None
        objects = await self._reading.objects({POD: tuple(self._pods), **lists})
        self._model.end_reading(objects)
        return self._model

    def close(self) -> None:
        """Close the model that was begun."""
        if self._model is not None:
            self._model.close()

    async def _read_pods(self, resource: Resource) -> None:
        async with aclosing(self._reading.pages(resource)) as pages:
            async for page in pages:
                self._pods += page
                if self._model is not None:
                    self._model.read_pods(_with_keys(page))

    async def _begin(
        self, resources: Iterable[Resource], lists: dict[str, tuple[ApiObject, ...]]
    ) -> None:
        """Begin the model when all lists but that of pods are read."""
        lists |= await self._reading.lists(resources)
        objects = self._reading.without_contents(lists)
        model = ClusterModel(objects, self._config, self._registry, seed=self._seed)
        self._model = model
        model.read_pods(_with_keys(self._pods))


def _with_keys(pods: Iterable[ApiObject]) -> Iterator[tuple[ObjectKey, ApiObject]]:
    return ((key_of_metadata(POD, each.metadata), each) for each in pods)


def _contents(
    lists: Mapping[str, Iterable[ApiObject]], originals: Originals
) -> dict[ObjectKey, bytes]:
    """The content of all objects."""
    contents: dict[ObjectKey, bytes] = {}
    for kind, objects in lists.items():
        for each in objects:
            key = key_of_metadata(kind, each.metadata)
            whole = originals.whole(kind, key.namespace, key.name)
            if whole is not None:
                contents[key] = whole
    return contents


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
    spec: dict[str, Any]


async def _content_of(
    client: ApiClient, resource: Resource, namespace: str, name: str
) -> tuple[dict[str, Any], _Metadata]:
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
    return read_answer(body, dict[str, Any], request), meta


async def _chain(
    client: ApiClient, discovery: Discovery, pod: str, unread: dict[str, str]
) -> dict[ObjectKey, dict[str, Any]]:
    """The content of a pod and of the controllers above it, as far as they can be read.

    Raises UnreadableAnswerError.
    """
    namespace, _, name = pod.partition("/")
    contents: dict[ObjectKey, dict[str, Any]] = {}
    kind = POD
    while len(contents) < _OWNERS_MAX:
        resource = discovery.resource(kind) if kind in (POD, *_CONTROLLERS) else None
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
