"""Devices, classes and claims for tests, and clusters that have them."""

from collections.abc import Callable
from typing import Any, cast

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.api.objects import Node, decode
from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.dynamic_resources.allocator import Allocator, PoolsByNode
from bayplan.plugins.dynamic_resources.features import features_of
from bayplan.state.device_table import Devices
from bayplan.state.node_table import NodeTable
from bayplan.testing import MemoryDevices, SampleCluster, node

Json = dict[str, Any]

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> Json:
    """``attributes=dict(model="a100", index=3)``, ``capacity=dict(memory="40Gi")`` are short."""
    content: Json = {"name": name, **fields}
    if "attributes" in fields:
        content["attributes"] = {n: _attribute(v) for n, v in fields["attributes"].items()}
    if "capacity" in fields:
        content["capacity"] = {
            n: v if isinstance(v, dict) else {"value": v} for n, v in fields["capacity"].items()
        }
    return content


def _attribute(value: Any) -> Json:
    kind = {bool: "bool", int: "int", str: "string"}[type(value)]
    return value if isinstance(value, dict) else {kind: value}


def slice_of(name: str, *devices: Json | str, **spec: Any) -> Json:
    """A slice of the node of its name, alone in its pool; ``spec`` overrides."""
    listed = [device(each) if isinstance(each, str) else each for each in devices]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1, **spec.pop("pool", {})}
    whole = {"driver": DRIVER, "pool": pool, "devices": listed, **spec}
    if not {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"} & whole.keys():
        whole["nodeName"] = name
    return {"metadata": {"name": name}, "spec": whole}


def class_of(name: str = "gpu", *expressions: str, **spec: Any) -> Json:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


def exactly(name: str = "r", class_name: str = "gpu", **fields: Any) -> Json:
    """A request for one device; ``expressions`` are its selectors."""
    return {"name": name, "exactly": _request(class_name, fields)}


def all_of(name: str = "r", class_name: str = "gpu", **fields: Any) -> Json:
    request = exactly(name, class_name, allocationMode="All", **fields)
    del request["exactly"]["count"]
    return request


def first_of(name: str, **alternatives: Json) -> Json:
    """``first_of("r", big=dict(count=2), small={})``"""
    listed = [
        {"name": each, **_request(fields.pop("class_name", "gpu"), dict(fields))}
        for each, fields in alternatives.items()
    ]
    return {"name": name, "firstAvailable": listed}


def _request(class_name: str, fields: Json) -> Json:
    selectors = [{"cel": {"expression": each}} for each in fields.pop("expressions", ())]
    defaults = {"allocationMode": "ExactCount", "count": 1}
    return {"deviceClassName": class_name, "selectors": selectors, **defaults, **fields}


def claim(name: str = "c", *requests: Json, status: Json | None = None, **devices: Any) -> Json:
    """A claim in the namespace default; ``devices`` are further fields of spec.devices."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"metadata": meta, "spec": spec, "status": status or {}}


def allocated(*devices: tuple[str, str], node_name: str = "", users: Any = ()) -> Json:
    """The status of a claim that has these devices (pool, device), for users (name, uid)."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": pool, "device": each} for pool, each in devices
    ]
    allocation: Json = {"devices": {"results": results}}
    if node_name:
        field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in users]
    return {"allocation": allocation, "reservedFor": reserved}


def put(store: ObjectStore[Any], *contents: Json) -> None:
    """Store slices, classes and claims, distinguished by their fields."""
    for content in contents:
        spec = content["spec"]
        kind = RESOURCE_SLICE if "driver" in spec else DEVICE_CLASS
        kind = RESOURCE_CLAIM if isinstance(spec.get("devices"), dict) else kind
        store.of(kind).put(decode(kind, content))


def memory_cluster() -> SampleCluster:
    """A cluster whose plugins read `MemoryDevices` with the content of the cluster's store."""
    devices = MemoryDevices()
    cluster = SampleCluster(devices=devices)

    def claim_changed(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is not None:
            devices.resource_claims.put(new)
        elif old is not None:
            devices.resource_claims.remove(old.metadata.namespace or "", old.metadata.name)

    def slice_changed(old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            devices.resource_slices.put(new)
        elif old is not None:
            devices.resource_slices.remove(old.metadata.name)

    def class_changed(old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            devices.device_classes.put(new)
        elif old is not None:
            devices.device_classes.remove(old.metadata.name)

    cluster.store.of(RESOURCE_CLAIM).observe(claim_changed)
    cluster.store.of(RESOURCE_SLICE).observe(slice_changed)
    cluster.store.of(DEVICE_CLASS).observe(class_changed)
    return cluster


#: Makes the cluster of `sample`; tests replace it by `memory_cluster`.
new_cluster: Callable[[], SampleCluster] = SampleCluster


def sample(*contents: Json, nodes: tuple[str, ...] = ("n1", "n2")) -> SampleCluster:
    cluster = new_cluster()
    cluster.add(*(node(name, allocatable={"cpu": "8", "pods": "110"}) for name in nodes))
    put(cluster.store, class_of(), *contents)
    return cluster


def as_claim(content: Json) -> ResourceClaim:
    return cast(ResourceClaim, decode(RESOURCE_CLAIM, content))


def as_slice(content: Json) -> ResourceSlice:
    return cast(ResourceSlice, decode(RESOURCE_SLICE, content))


def as_class(content: Json) -> DeviceClass:
    return cast(DeviceClass, decode(DEVICE_CLASS, content))


def allocate_on(
    node_name: str | Node,
    contents: tuple[Json, ...],
    *claims: Json,
    kubernetes: KubernetesVersion = NEWEST,
) -> list[list[str]] | None:
    """Per claim "request pool/device" of each device; None if the node lacks devices."""
    store = ObjectStore[Any]()
    put(store, class_of(), *contents)
    devices = Devices(NodeTable(), store)
    where = node(node_name) if isinstance(node_name, str) else node_name
    allocator = Allocator(
        PoolsByNode(devices.resource_slices, features_of(default_gates(kubernetes))),
        devices.device_classes,
        devices.resource_claims.allocated,
    )
    results = allocator.allocate(where, [as_claim(each) for each in claims], lambda: None)
    if results is None:
        return None
    return [[f"{r.request} {r.pool}/{r.device}" for r in each.results] for each in results]
