"""The objects of a cluster, from its API server. Only gets and lists are sent.

All kinds are listed side by side, each in pages of one moment. A kind that the user may not list is
left out, and the objects name it; without nodes or pods there is no answer. The content of the
pod that a question is about, and of the controllers above it, is read as the server has it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from bayplan.adapters.embedded.field_validation import ObjectKey
from bayplan.adapters.live.client import ApiClient, all_results
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.errors import AccessDeniedError
from bayplan.adapters.live.watching import Originals, Reading, ReadingOptions
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
)
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.objects import ClusterObjects, object_key_of
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError
from bayplan.rng import stream
from bayplan.serving.discovery import kinds_in_use, offered_kinds
from bayplan.sim.input.controller_kinds import DAEMON_SET, DEPLOYMENT, JOB

#: Read whatever the plugins are.
_ALWAYS = (NODE, NAMESPACE, PRIORITY_CLASS)
#: Without these there is no answer.
_NEEDED = (NODE, POD)
#: Controllers whose content is read: a fix is a patch of their template.
_CONTROLLERS = (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
)
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
) -> ClusterObjects:
    """Everything that a scheduler with this configuration reads.

    ``subject``: "namespace/name" of the pod whose content is kept, with the content of its
    controllers. ``is_whole``: keep the content of all objects, and read all controllers and
    budgets, as a simulation needs them. Raises ApiError if nodes or pods cannot be read,
    ConfigError.
    """
    versions = tuple(group_kinds(config.spec.pod_groups.kinds))
    controllers = (*_CONTROLLERS, POD_DISRUPTION_BUDGET) if is_whole else ()
    kinds = dict.fromkeys((*_ALWAYS, *kinds_in_use(config, registry), *controllers, POD))
    discovery = Discovery(client)
    await discovery.discover((*kinds, *versions, *_CONTROLLERS))
    offered = offered_kinds(versions, lambda kind: discovery.resource(kind) is not None)
    wanted = tuple(kind for kind in kinds if kind not in versions)
    resources = [discovery.resource(kind) for kind in (*offered, *wanted)]
    unreadable: dict[str, str] = {}

    lanes = asyncio.Semaphore(CONNECTIONS_MAX)
    originals = Originals((*wanted, *offered)) if is_whole else None

    options = ReadingOptions(originals=originals)

    async def listed(resource: Resource) -> tuple[str, tuple[ApiObject, ...]]:
        async with lanes:
            return await list_of(resource)

    async def list_of(resource: Resource) -> tuple[str, tuple[ApiObject, ...]]:
        reading = Reading(client, resource, stream(0, resource.kind), options)
        try:
            return resource.kind, tuple((await reading.list()).objects)
        except AccessDeniedError as problem:
            if resource.kind in _NEEDED:
                raise
            unreadable[resource.kind] = str(problem)
            return resource.kind, ()

    # The longest list first: it takes longer than all others together.
    present = [resource for resource in resources if resource is not None]
    tasks = [listed(each) for each in sorted(present, key=lambda each: each.kind != POD)]
    lists = dict(await all_results(tasks))
    contents: dict[ObjectKey, dict[str, Any] | bytes] = {}
    if subject:
        contents |= await _chain(client, discovery, subject, unreadable)
    if originals is not None:
        contents |= _contents(lists, originals)
    return ClusterObjects(
        lists,
        MappingProxyType(contents),
        absent=frozenset(kind for kind in wanted if discovery.resource(kind) is None),
        unreadable=MappingProxyType(dict(sorted(unreadable.items()))),
        source=client.server,
        epoch_seconds=RealClock().epoch_seconds(),
    )


def _contents(
    lists: Mapping[str, Iterable[ApiObject]], originals: Originals
) -> dict[ObjectKey, bytes]:
    """The content of all objects."""
    contents: dict[ObjectKey, bytes] = {}
    for kind, objects in lists.items():
        for each in objects:
            key = object_key_of(kind, each)
            whole = originals.whole(kind, key.namespace, key.name)
            if whole is not None:
                contents[key] = whole
    return contents


async def _chain(
    client: ApiClient, discovery: Discovery, pod: str, unreadable: dict[str, str]
) -> dict[ObjectKey, dict[str, Any]]:
    """The content of a pod and of the controllers above it, as far as they can be read."""
    namespace, _, name = pod.partition("/")
    contents: dict[ObjectKey, dict[str, Any]] = {}
    kind = POD
    while len(contents) < _OWNERS_MAX:
        resource = discovery.resource(kind) if kind in (POD, *_CONTROLLERS) else None
        if resource is None:
            break
        try:
            content = await client.get(resource.path(namespace, name))
        except ApiError as problem:
            if kind != POD:
                unreadable[kind] = str(problem)
            break
        contents[ObjectKey(kind, namespace, name)] = content
        owners = content.get("metadata", {}).get("ownerReferences") or ()
        owner = next((each for each in owners if each.get("controller")), None)
        if owner is None:
            break
        kind, name = f"{owner['apiVersion']} {owner['kind']}", owner["name"]
    return contents
