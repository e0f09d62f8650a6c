"""EmbeddedCluster: an API server in memory behind the port of the real one.

The scheduler cannot tell the two apart. Calls take no time. Whatever waits, such as a sleep or a
grace period, waits on the event loop, so under a virtual loop it takes virtual time. Everything
runs in one thread and in one order, so that a run repeats itself.

The verbs `create`, `update`, `delete` and `end_pod`, and `evictions`, are for the world around the
scheduler: users, controllers and kubelets.
"""

import asyncio
import contextlib
from collections.abc import Generator, Iterable, Mapping
from functools import partial
from typing import Any, cast, final

from bayplan import ports
from bayplan.adapters.embedded.admission.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.adapters.embedded.api_errors import OtherUidError
from bayplan.adapters.embedded.api_features import NO_FEATURES, ApiFeatures
from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.claim_controller import ClaimController
from bayplan.adapters.embedded.disruption_budgets import BudgetController, Evictions
from bayplan.adapters.embedded.field_validation import stable_suffix
from bayplan.adapters.embedded.group_protection import GroupProtection
from bayplan.adapters.embedded.pod_gc_controller import PodGcController, PodGcTimes
from bayplan.adapters.embedded.versioned_store import (
    HISTORY_LENGTH,
    Observer,
    PodChange,
    StoredObject,
    VersionedStore,
    Watch,
)
from bayplan.api.objects import POD, ApiObject, Pod
from bayplan.clock import Clock
from bayplan.objects.keys import Content, ObjectKey, new_key, object_key
from bayplan.state.pods import PodInfo

# ---- object port ----------------------------------------------------------------------------


#: The metadata that a patch of a status may have: it names the version to patch.
_PRECONDITIONS = ("resourceVersion", "uid")


class ObjectPort:
    """The part of ports.Cluster that is independent of kinds, over a server in memory."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Raises ApiError."""
        return self._server.get(object_key(kind, namespace, name)).object

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Raises ApiError."""
        if subresource:
            patch = _within(patch, subresource)
        return self._server.patch(object_key(kind, namespace, name), patch).object

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Raises ApiError."""
        api_version, _, name = kind.partition(" ")
        return self._server.create({**content, "apiVersion": api_version, "kind": name}).object

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Raises ApiError."""
        self._server.delete(object_key(kind, namespace, name), uid)


@contextlib.contextmanager
def _meant_by_uid() -> Generator[None]:
    """Raises NotFoundError if the object of that name has another uid, as the live adapter does."""
    try:
        yield
    except OtherUidError as problem:
        raise ports.NotFoundError(str(problem)) from None


def _within(patch: Content, subresource: str) -> Content:
    """The parts of a patch that a write of a subresource may change."""
    meta = {
        name: value
        for name, value in (patch.get("metadata") or {}).items()
        if name in _PRECONDITIONS
    }
    return {"metadata": meta, **{name: part for name, part in patch.items() if name == subresource}}


# ---- embedded -------------------------------------------------------------------------------


EVENT = "events.k8s.io/v1 Event"

#: When there are more events, the oldest are removed. Upstream removes them after an hour.
EVENTS_MAX = 20_000


@final
class EmbeddedCluster(ObjectPort, ports.ImmediateCluster):
    """ports.Cluster in memory."""

    def __init__(
        self,
        clock: Clock,
        declared: Mapping[str, tuple[str, ...]] | None = None,
        history_length: int = HISTORY_LENGTH,
        pod_gc: PodGcTimes | None = None,
        *,
        admission: PluginSet = DEFAULT_PLUGINS,
        charged_pods: Iterable[Pod] = (),
        features: ApiFeatures = NO_FEATURES,
    ) -> None:
        """``declared``: per kind, further field paths that decoded objects keep. ``pod_gc``: when
        the pods of missing nodes are collected; None: never, as without a controller manager.
        ``admission``: the admission plugins that run. ``charged_pods``: pods that quotas count,
        although the server does not have them. ``features``: those of the server and its
        controllers."""
        self._clock = clock
        self._store = VersionedStore(declared, history_length)
        #: The server behind the port, for the controllers of a simulation.
        self.server = ApiServer(
            clock, self._store, _after, admission, features=features, charged_pods=charged_pods
        )
        super().__init__(self.server)
        self._claims = ClaimController(
            self._server, self._store, _soon, has_group_claims=features.has_group_claims
        )
        self._groups = GroupProtection(self._server, self._store, _soon)
        self._budgets = BudgetController(self._server, self._store, _soon)
        #: The last arrival and the last binding of a pod.
        self.steps = self._store.steps
        #: The eviction subresource of pods.
        self.evictions = Evictions(self._server, self._store)
        self._pod_gc = (
            None
            if pod_gc is None
            else PodGcController(self._server, self._store, clock, _after, times=pod_gc)
        )
        self._event_count = 0

    # ---- the port ---------------------------------------------------------------------------

    async def list(self, kind: str) -> ports.Listing:
        """The objects that an informer of a scheduler sees: without pods that have ended."""
        return self._store.list(kind)

    def watch(self, kind: str, resource_version: str) -> Watch:
        return self._store.watch(kind, resource_version)

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return cast(Pod, self._server.get(object_key(POD, namespace, name)).object)

    def bind_now(self, pod: PodInfo, node_name: str) -> None:
        key = new_key((POD, pod.shape.namespace, pod.metadata.name))
        self._server.bind(key, pod.uid, node_name)
        if self._claims.waiting:
            self._claims.work_soon()

    def patch_pod_status_now(self, patch: ports.PatchPodStatus) -> None:
        with _meant_by_uid():
            self._server.patch_pod_status(patch)

    async def patch_group_status(self, patch: ports.PatchPodGroupStatus) -> None:
        key = object_key(patch.kind, patch.namespace, patch.name)
        meta = {"uid": patch.uid} if patch.uid else {}
        with _meant_by_uid():
            self._server.patch(key, {"metadata": meta, "status": patch.status})

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        with _meant_by_uid():
            self._server.delete(object_key(POD, namespace, name), uid)

    def create_event_now(self, event: ports.EmitEvent) -> None:
        self._event_count += 1
        content_at = partial(_event_object, event, self._event_count)
        if not self._server.create_unread(EVENT, content_at):
            self._server.create(content_at(self._server.stamp()))
        if self._event_count > EVENTS_MAX and self._store.count(EVENT) > EVENTS_MAX:
            self._server.forget_oldest(EVENT)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # ---- the world around -------------------------------------------------------------------

    def create(self, content: Content) -> StoredObject:
        """Create an object as a user or a controller does. Raises ApiError."""
        created = self._server.create(content)
        # Without a running loop, nothing else starts this work.
        if self._budgets.waiting:
            self._budgets.work()
        if self._claims.waiting:
            self._claims.work_soon()
        if self._groups.leaving:
            self._groups.work_soon()
        return created

    def update(self, content: Content) -> StoredObject:
        """Replace an object. A resourceVersion in it must be the newest one. Raises ApiError."""
        return self._server.update(content)

    def delete(self, key: ObjectKey) -> None:
        """Delete an object. A running pod first has its grace period. Raises ApiError."""
        self._server.delete(key)

    def end_pod(self, key: ObjectKey, phase: str = "Succeeded") -> None:
        """End the containers of a pod. Raises ApiError."""
        self._server.set_phase(key, phase)

    # ---- queries ----------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> StoredObject | None:
        return self._store.get(key)

    def objects(self, kind: str) -> "list[StoredObject]":
        """All objects of a kind in the order of creation, including pods that have ended."""
        return self._store.all(kind)

    def kinds(self) -> "list[str]":
        """The kinds that have, or had, objects."""
        return self._store.kinds()

    def owned_by(self, uid: str) -> "list[ObjectKey]":
        """The objects that name an owner of this uid."""
        return self._store.owned_by(uid)

    def observe(
        self,
        observer: Observer,
        kinds: Iterable[str] = (),
        *,
        ignored_kinds: Iterable[str] = (),
        ignored_changes: Iterable[PodChange] = (),
    ) -> None:
        """As `VersionedStore.observe`."""
        self._store.observe(
            observer, kinds, ignored_kinds=ignored_kinds, ignored_changes=ignored_changes
        )

    def forget_history(self) -> None:
        """Watches that resume from before this moment get GoneError."""
        self._store.forget_history()

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._store.version

    @property
    def terminating_count(self) -> int:
        """The number of pods whose grace period has not passed."""
        return len(self._server.terminating)

    @property
    def next_grace_end_seconds(self) -> float | None:
        """When the grace period of a pod has passed next; None: no pod has one."""
        return min(self._server.terminating.values(), default=None)

    @property
    def next_collection_seconds(self) -> float | None:
        """When the pods of missing nodes are collected next; None: there are no such pods."""
        return None if self._pod_gc is None else self._pod_gc.due_seconds


def _event_object(event: ports.EmitEvent, number: int, stamp: str) -> Content:
    """An events.k8s.io/v1 Event. Its name ends in a suffix of its own, as upstream's names do."""
    regarding = event.regarding
    ending = stable_suffix(f"{regarding.uid}/{number}", length=10)
    content: Content = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{regarding.name}.{ending}", "namespace": regarding.namespace},
        "eventTime": stamp,
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "note": event.note,
        "reportingController": event.reporter,
        "reportingInstance": event.reporter,
        "regarding": regarding.content(),
    }
    if event.related is not None:
        content["related"] = event.related.content()
    return content


def _soon(call: Any) -> None:
    """Call ``call`` soon. Without a running loop, the first change in a loop calls it."""
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().call_soon(call)


def _after(seconds: float, call: Any) -> None:
    asyncio.get_running_loop().call_later(seconds, call)
