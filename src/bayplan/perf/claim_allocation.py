"""Allocating claims without pods, as if they had been given to pods before: what a benchmark fills
a cluster with. One claim after the other gets devices of a node that is drawn, always alike.
Upstream: allocResourceClaimsOp in scheduler_perf's dra.go.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import msgspec

from bayplan.adapters.object_names import ObjectKey
from bayplan.api.device_objects import RESOURCE_CLAIM, AllocationResult, ResourceClaim
from bayplan.api.objects import NODE, ApiObject, Node
from bayplan.config.feature_gates import FeatureGates
from bayplan.perf.world import WorkloadFailed, World
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.features import features_of
from bayplan.plugins.dynamic_resources.problems import AllocationError
from bayplan.rng import stream
from bayplan.state.devices import DEVICE_KINDS, Devices
from bayplan.state.node_table import NodeTable
from bayplan.state.object_store import ObjectStore

#: Key and object of all that there are of a kind.
Objects = Callable[[str], Sequence[tuple[ObjectKey, ApiObject]]]


async def allocate_claims(world: World, namespace: str, gates: FeatureGates) -> None:
    """Of a namespace, or of all. Raises WorkloadFailed."""
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
    """Each claim of a namespace (all where it is "") that has no devices yet, with the patch that
    gives it some; None: no node has enough. Raises AllocationError."""
    store = ObjectStore()
    for kind in DEVICE_KINDS:
        for _, found in objects(kind):
            store.of(kind).put(found)
    rules = gates.enabled("DRADeviceTaintRules")
    devices = Devices(NodeTable(), store, has_taint_rules=rules)
    draws = stream(0, "allocResourceClaims")
    pools = PoolsByNode(devices.resource_slices, features_of(gates))
    claims = devices.resource_claims
    allocator = Allocator(pools, devices.device_classes, claims.allocated)
    nodes = [cast(Node, node) for _, node in objects(NODE)]
    for key, found in objects(RESOURCE_CLAIM):
        claim = cast(ResourceClaim, found)
        if claim.allocation is None and namespace in ("", key.namespace):
            draws.shuffle(nodes)
            given = _given(allocator, claim, nodes)
            if given is not None:
                claims.put_in_flight(claim, given)
            yield key, None if given is None else _patch(given)


def _given(
    allocator: Allocator, claim: ResourceClaim, nodes: Sequence[Node]
) -> AllocationResult | None:
    for node in nodes:
        found = allocator.allocate(node, [claim], lambda: None)
        if found is not None:
            return found[0]
    return None


def _patch(given: AllocationResult) -> dict[str, Any]:
    return {"status": {"allocation": msgspec.json.decode(msgspec.json.encode(given))}}
