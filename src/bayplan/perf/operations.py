"""Executes the operations of a workload, one after the other, as upstream does.

A wait for pods is for the pods of its operations, not for any pods of their namespace. Churn, and
objects that are deleted or updated one by one, run beside the operations.

An update sends the object as a user does. The parts of a pod that admission added stay, and a
subresource changes only its own part. Claims can be allocated without pods, as if pods had used
them before: each claim gets devices of a drawn node; the draws repeat.

Upstream: WorkloadExecutor in executor.go, updateAny, and allocResourceClaimsOp in dra.go
(scheduler_perf); the strategies of pods and their resize in pkg/registry/core/pod.
"""

import asyncio
import contextlib
import gc
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import count
from typing import Any, TypeVar, cast, final

import msgspec

from bayplan.api.device_objects import RESOURCE_CLAIM, AllocationResult, ResourceClaim
from bayplan.api.objects import NODE, POD, ApiObject, Node
from bayplan.clock import Clock
from bayplan.config.feature_gates import FeatureGates
from bayplan.framework.cluster_rules import device_rules
from bayplan.objects.keys import Content, ObjectKey, key_of, kind_of
from bayplan.objects.object_store import ObjectStore
from bayplan.perf import schema
from bayplan.perf.data_items import Measurement, measurement
from bayplan.perf.manifests import csi_node, in_namespace, named, prepared_node
from bayplan.perf.parameters import seconds
from bayplan.perf.planning import Plan
from bayplan.perf.pod_watch import SCHEDULED, BindingLog, NewlyBound
from bayplan.perf.scenario_files import env
from bayplan.perf.world import WorkloadFailed, World
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.features import features_of
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.ports import ApiError
from bayplan.rng import stream
from bayplan.state.device_table import DEVICE_KINDS, Devices
from bayplan.state.node_table import NodeTable

# ---- updates --------------------------------------------------------------------------------


#: Fields of a pod that admission added, and that an update keeps.
_ADMITTED = ("priority", "preemptionPolicy", "tolerations")


def updated(old: Content, new: Content, subresources: Sequence[str]) -> Content:
    """The object after an update of ``old`` with ``new``."""
    if "resize" in subresources:
        return {**old, "spec": _resized(old["spec"], new.get("spec") or {})}
    if "status" in subresources:
        return {**old, "status": new.get("status") or {}}
    if kind_of(new) != POD:
        return new
    old_spec = old.get("spec") or {}
    admitted = {name: old_spec[name] for name in _ADMITTED if name in old_spec}
    return {**new, "spec": {**admitted, **(new.get("spec") or {})}}


def _resized(old: Content, new: Content) -> Content:
    """Containers with the resources that the update names for them."""
    resources = {one.get("name"): one.get("resources") for one in new.get("containers") or ()}
    containers = [
        {**one, "resources": resources[one.get("name")]} if resources.get(one.get("name")) else one
        for one in old.get("containers") or ()
    ]
    return {**old, "containers": containers}


# ---- background -----------------------------------------------------------------------------


T = TypeVar("T")


async def paced(items: Iterable[T], per_second: float, clock: Clock) -> AsyncIterator[T]:
    """Each item at its tick, ``per_second`` ticks per second. A late tick does not delay the
    next."""
    begin = clock.now()
    for number, item in enumerate(items, start=1):
        await asyncio.sleep(max(begin + number / per_second - clock.now(), 0.0))
        yield item


async def at_pace(
    keys: Iterable[ObjectKey], per_second: int, clock: Clock, do: Callable[[ObjectKey], None]
) -> None:
    """Call ``do`` with each object at a pace; ``per_second`` 0: all objects at once."""
    if not per_second:
        for key in keys:
            do(key)
        return
    async for key in paced(keys, per_second, clock):
        do(key)


async def churn(operation: schema.Churn, contents: Sequence[Content], world: World) -> None:
    """Create objects at every tick, up to a number; or create and delete them in turn without
    end."""
    per_second = 1000 / (operation.interval_milliseconds or 500)
    if operation.mode == "create":
        ticks = range(operation.number) if operation.number else count()
        async for _ in paced(ticks, per_second, world.clock):
            for content in contents:
                _created(world, content)
        return
    slots: dict[tuple[int, int], ObjectKey | None] = {}
    async for tick in paced(count(), per_second, world.clock):
        for index, content in enumerate(contents):
            slot = (index, tick % operation.number)
            key = slots.get(slot)
            slots[slot] = _created(world, content) if key is None else _deleted(world, key)


def _created(world: World, content: Content) -> ObjectKey | None:
    """Create an object. As upstream, an object that cannot be created is tried again later."""
    try:
        return world.cluster.create(content).key
    except ApiError:
        return None


def _deleted(world: World, key: ObjectKey) -> None:
    try:
        world.cluster.delete(key)
    except ApiError:
        return  # the object is gone already: a pod may have been preempted


# ---- claim allocation -----------------------------------------------------------------------


#: Kind → (key, object) of all objects of the kind.
Objects = Callable[[str], Sequence[tuple[ObjectKey, ApiObject]]]


async def allocate_claims(world: World, namespace: str, gates: FeatureGates) -> None:
    """Allocate the claims of a namespace; "": of all namespaces. Raises WorkloadFailed."""
    cluster = world.cluster

    def objects(kind: str) -> list[tuple[ObjectKey, ApiObject]]:
        return [(each.key, each.object) for each in cluster.objects(kind)]

    try:
        for key, patch in allocations(objects, namespace, gates):
            if patch is None:
                raise WorkloadFailed(f"no node has devices for {key}")
            await cluster.patch(key.kind, key.namespace, key.name, patch, "status")
    except AllocationError as problem:
        raise WorkloadFailed(f"cannot allocate: {problem}") from None


def allocations(
    objects: Objects, namespace: str, gates: FeatureGates
) -> Iterator[tuple[ObjectKey, dict[str, Any] | None]]:
    """Each claim of a namespace ("": of all namespaces) without devices, with the patch that
    allocates devices; None: no node has enough. Raises AllocationError."""
    store = ObjectStore[Any]()
    for kind in DEVICE_KINDS:
        for _, stored in objects(kind):
            store.of(kind).put(stored)
    devices = Devices(NodeTable(), store, device_rules(gates))
    draws = stream(0, "allocResourceClaims")
    pools = PoolsByNode(devices.resource_slices, features_of(gates))
    claims = devices.resource_claims
    allocator = Allocator(pools, devices.device_classes, claims.allocated)
    nodes = [cast(Node, node) for _, node in objects(NODE)]
    for key, stored in objects(RESOURCE_CLAIM):
        claim = cast(ResourceClaim, stored)
        if claim.allocation is None and namespace in ("", key.namespace):
            draws.shuffle(nodes)
            allocation = _allocation(allocator, claim, nodes)
            if allocation is not None:
                claims.put_in_flight(claim, allocation)
            yield key, None if allocation is None else _patch(allocation)


def _allocation(
    allocator: Allocator, claim: ResourceClaim, nodes: Sequence[Node]
) -> AllocationResult | None:
    for node in nodes:
        allocated = allocator.allocate(node, [claim], lambda: None)
        if allocated is not None:
            return allocated[0]
    return None


def _patch(allocation: AllocationResult) -> dict[str, Any]:
    return {"status": {"allocation": msgspec.json.decode(msgspec.json.encode(allocation))}}


# ---- operations -----------------------------------------------------------------------------


Failed = Callable[[BaseException], None]


@final
class _Recorder:
    """Measures parts of a workload, one after the other."""

    def __init__(self, workload: str, world: World) -> None:
        self._workload = workload
        self._world = world
        self._log: BindingLog | None = None
        self._name = ""
        self.measured: list[Measurement] = []

    def begin(self, name: str, namespaces: tuple[str, ...], labels: Mapping[str, str]) -> None:
        if self._log is not None:
            raise WorkloadFailed(f"{self._name} is still being measured; one at a time")
        # Earlier objects are excluded from garbage collection while the part is measured. Most of
        # them belong to the API server, which a real scheduler's collector never sees. Upstream:
        # runtime.GC().
        gc.collect()
        gc.freeze()
        self._name = f"{self._workload}/{name}"
        self._log = BindingLog(self._world.clock, namespaces, labels)
        self._world.watch.join(self._log)

    def finish(self) -> None:
        log, self._log = self._log, None
        if log is None:
            raise WorkloadFailed("nothing is being measured; wanted startCollectingMetrics before")
        gc.unfreeze()
        self._world.watch.leave(log)
        self.measured.append(measurement(self._name, log, self._world.clock.now()))


@final
class Operations:
    """Performs one plan in one world. Use it once."""

    def __init__(self, plan: Plan, world: World, failed: Failed) -> None:
        """``failed``: called with exceptions of work that runs beside the operations."""
        self._plan = plan
        self._files = plan.manifests
        self._world = world
        self._failed = failed
        self._recorder = _Recorder(plan.name, world)
        self._performers: Mapping[type, Callable[[int, Any], Awaitable[None]]] = {
            schema.AllocResourceClaims: lambda _, operation: allocate_claims(
                world, operation.namespace, plan.config.gates
            ),
            schema.Barrier: self._barrier,
            schema.Churn: self._churn,
            schema.CreateAny: self._create_any,
            schema.CreateNamespaces: self._create_namespaces,
            schema.CreateNodes: self._create_nodes,
            schema.CreatePodGroups: self._create_any,
            schema.CreatePods: self._create_pods,
            schema.CreateResourceClaims: self._create_any,
            schema.DeletePods: self._delete_pods,
            schema.Sleep: self._sleep,
            schema.StartCollectingMetrics: self._start,
            schema.StopCollectingMetrics: self._stop,
            schema.UpdateAny: self._update_any,
        }

    @property
    def measured(self) -> list[Measurement]:
        return self._recorder.measured

    async def perform(self) -> None:
        """Perform all operations in order. Raises WorkloadFailed."""
        try:
            for index, operation in enumerate(self._plan.operations):
                await self._perform(index, operation)
        finally:
            gc.unfreeze()

    async def _perform(self, index: int, operation: schema.Operation) -> None:
        try:
            await self._performers[type(operation)](index, operation)
        except WorkloadFailed as problem:
            what = f"operation {index} ({operation.opcode})"
            raise WorkloadFailed(f"{what}: {problem}") from None

    # ---- measuring --------------------------------------------------------------------------

    async def _start(self, index: int, operation: schema.StartCollectingMetrics) -> None:
        self._recorder.begin(operation.name, operation.namespaces, operation.label_selector)

    async def _stop(self, index: int, operation: schema.StopCollectingMetrics) -> None:
        self._recorder.finish()

    # ---- creating ---------------------------------------------------------------------------

    async def _create_nodes(self, index: int, operation: schema.CreateNodes) -> None:
        prefix, name = f"node-{index}-", ""
        for number in range(operation.count):
            content = self._files.node(operation, prefix, number)
            node = prepared_node(content, operation, number, prefix)
            name = self._world.create(node).key.name
            if operation.node_allocatable_strategy is not None:
                self._world.create(csi_node(name, operation.node_allocatable_strategy))
        if name:
            await self._world.taken_in(name)

    async def _create_namespaces(self, index: int, operation: schema.CreateNamespaces) -> None:
        path = operation.namespace_template_path
        base: Content = {"apiVersion": "v1", "kind": "Namespace"}
        if path is not None:
            base = {**base, **self._files.file(path, is_template=False).made({})}
        for number in range(operation.count):
            content = named(base, f"{operation.prefix}-{number}")
            if self._world.cluster.get(key_of(content)) is None:
                self._world.create(content)
            self._world.ensure_namespace(f"{operation.prefix}-{number}")

    async def _create_any(
        self,
        index: int,
        operation: schema.CreateAny | schema.CreatePodGroups | schema.CreateResourceClaims,
    ) -> None:
        if operation.namespace:
            self._world.ensure_namespace(operation.namespace)
        is_template = not isinstance(operation, schema.CreateResourceClaims)
        file = self._files.file(operation.template_path, is_template=is_template)
        params = (
            {} if isinstance(operation, schema.CreateResourceClaims) else operation.template_params
        )
        number_of = operation.count if operation.count is not None else 1
        for number in range(number_of):
            content = file.made(env(params, number, number_of) if is_template else {})
            self._world.create(in_namespace(content, operation.namespace))

    async def _create_pods(self, index: int, operation: schema.CreatePods) -> None:
        namespace = operation.namespace or f"namespace-{index}"
        self._world.ensure_namespace(namespace)
        if operation.collect_metrics:
            self._recorder.begin(namespace, (namespace,), {})
        if operation.steady_state:
            await self._keep_steady(operation, namespace)
        else:
            keys = [self._pod(operation, namespace, n) for n in range(operation.count)]
            if operation.skip_wait_to_completion:
                self._world.awaited[namespace] += keys
            else:
                await self._world.reached(keys, SCHEDULED)
        if operation.collect_metrics:
            self._recorder.finish()

    def _pod(self, operation: schema.CreatePods, namespace: str, number: int) -> ObjectKey:
        """Create the objects that a pod needs, and then the pod. Returns the key of the pod."""
        for content in self._files.pod(operation, namespace, number)[:-1]:
            self._world.create(content)
        content = self._files.pod(operation, namespace, number)[-1]
        if operation.steady_state:  # such a pod is deleted without a grace period
            content = {
                **content,
                "spec": {**content["spec"], "terminationGracePeriodSeconds": 0},
            }
        return self._world.create(content).key

    async def _keep_steady(self, operation: schema.CreatePods, namespace: str) -> None:
        """Keep the number of pods steady: delete each bound pod and create a new one."""
        world, bound_count = self._world, 0
        end = world.clock.now() + seconds(operation.duration)
        bound = NewlyBound(namespace)
        world.watch.join(bound)
        try:
            for number in range(operation.count):
                self._pod(operation, namespace, number)
            while (left := end - world.clock.now()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await bound.some.wait()
                for key in bound.take():
                    bound_count += 1
                    world.cluster.delete(key)
                    self._pod(operation, namespace, 0)
        finally:
            world.watch.leave(bound)
        if not bound_count:
            raise WorkloadFailed(f"no pod at all was bound in {operation.duration}")

    # ---- changing objects -------------------------------------------------------------------

    async def _update_any(self, index: int, operation: schema.UpdateAny) -> None:
        if operation.namespace:
            self._world.ensure_namespace(operation.namespace)
        count = operation.count if operation.count is not None else 1
        if not operation.update_per_second:
            for number in range(count):
                self._update(operation, number, count)
            return
        async for number in paced(range(count), operation.update_per_second, self._world.clock):
            self._update(operation, number, count)

    def _update(self, operation: schema.UpdateAny, number: int, count: int) -> None:
        made = self._files.file(operation.template_path).made(env({}, number, count))
        content = in_namespace(made, operation.namespace)
        key = key_of(content)
        old = self._world.cluster.get(key)
        if old is None:
            raise WorkloadFailed(f"cannot update {key}: it is not there")
        try:
            self._world.cluster.update(updated(old.content, content, operation.subresources))
        except ApiError as problem:
            raise WorkloadFailed(f"cannot update {key}: {problem}") from None

    async def _delete_pods(self, index: int, operation: schema.DeletePods) -> None:
        keys = self._world.pods_in(operation.namespace, operation.label_selector)
        work = at_pace(keys, operation.delete_pods_per_second, self._world.clock, self._delete)
        if operation.skip_wait_to_completion:
            self._world.begin(work, self._failed)
        else:
            await work

    def _delete(self, key: ObjectKey) -> None:
        if self._world.cluster.get(key) is not None:
            self._world.cluster.delete(key)

    async def _churn(self, index: int, operation: schema.Churn) -> None:
        namespace = operation.namespace or f"namespace-{index}"
        self._world.ensure_namespace(namespace)
        contents = [
            in_namespace(self._files.file(path, is_template=False).made({}), namespace)
            for path in operation.template_paths
        ]
        self._world.begin(churn(operation, contents, self._world), self._failed)

    # ---- waiting ----------------------------------------------------------------------------

    async def _barrier(self, index: int, operation: schema.Barrier) -> None:
        awaited = self._world.awaited
        unknown = [name for name in operation.namespaces if name not in awaited]
        if unknown:
            raise WorkloadFailed(f"no namespace {unknown[0]} was made before")
        namespaces = operation.namespaces or tuple(awaited)
        keys = [key for name in namespaces for key in self._awaited(name, operation)]
        await self._world.reached(keys, operation.stage_requirement)
        if operation.stage_requirement == SCHEDULED:
            for name in namespaces:
                awaited[name] = []

    def _awaited(self, namespace: str, operation: schema.Barrier) -> list[ObjectKey]:
        labelled = set(self._world.pods_in(namespace, operation.label_selector))
        return [key for key in self._world.awaited[namespace] if key in labelled]

    async def _sleep(self, index: int, operation: schema.Sleep) -> None:
        await asyncio.sleep(seconds(operation.duration))
