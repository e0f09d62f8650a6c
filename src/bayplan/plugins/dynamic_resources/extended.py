"""Extended resources that devices stand for: a pod requests example.com/gpu and gets a device.

A DeviceClass may name an extended resource. If a node does not offer that resource itself, the
scheduler creates a claim for the pod, with a request per container, and writes into the pod's
status which container gets which request. Upstream: extendeddynamicresources.go.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from bayplan.api import device_objects
from bayplan.api.object_meta import ObjectMeta, OwnerReference, is_controlled_by
from bayplan.api.objects import Container, ContainerExtendedResourceRequest
from bayplan.api.pod_requests import all_containers, is_scalar, may_be_devices
from bayplan.api.quantity import INT64_MAX, NANOS, nanos
from bayplan.framework.handle import DeviceClassLister
from bayplan.framework.status import Status, unresolvable
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo, PodShape

#: The name of a claim that exists in memory only; no claim in the API can have it.
IN_MEMORY_NAME = "<extended-resources>"
STALE_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"

Mappings = tuple[ContainerExtendedResourceRequest, ...]


def wants_devices(shape: PodShape, classes: DeviceClassLister) -> bool:
    """Whether pods of this shape have claims, or request a resource that a class stands for."""
    if shape.spec.resource_claims:
        return True
    resources = shape.once_per_spec("DynamicResources.resources", _resources_of_devices)
    return any(classes.behind(name) is not None for name in resources)


def _resources_of_devices(shape: PodShape) -> tuple[str, ...]:
    return tuple(filter(may_be_devices, shape.requests))


def requested_devices(pod: PodInfo, classes: DeviceClassLister) -> bool:
    """Whether the pod requests a resource that some DeviceClass stands for."""
    return any(
        amount and may_be_devices(name) and classes.behind(name) is not None
        for name, amount in pod.requests.items()
    )


def special_claim(
    pod: PodInfo, claims: Iterable[device_objects.ResourceClaim]
) -> device_objects.ResourceClaim:
    """The pod's claim for extended resources. It is a claim that an earlier attempt left, or a new
    one."""
    for claim in claims:
        if _is_special_claim_of(claim, pod):
            return claim
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    return device_objects.ResourceClaim(
        metadata=ObjectMeta(
            namespace=pod.namespace,
            name=IN_MEMORY_NAME,
            uid=f"{IN_MEMORY_NAME} {pod.uid}",
            generate_name=f"{pod.name}-extended-resources-",
            owner_references=(owner,),
            annotations={device_objects.EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        )
    )


def _is_special_claim_of(claim: device_objects.ResourceClaim, pod: PodInfo) -> bool:
    annotations = claim.metadata.annotations or {}
    is_special = annotations.get(device_objects.EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true"
    return is_special and is_controlled_by(claim.metadata, pod.uid)


class NodeClaim(Struct, frozen=True):
    """The special claim as a node needs it."""

    claim: device_objects.ResourceClaim
    mappings: Mappings


def claim_for_node(
    pod: PodInfo, special: device_objects.ResourceClaim, node: NodeInfo, classes: DeviceClassLister
) -> NodeClaim | Status | None:
    """The special claim for a node. None: no device of this node stands for a resource that the pod
    requests."""
    if special.spec.devices.requests is not None:
        return unresolvable(STALE_CLAIM)
    class_names: dict[str, str] = {}
    offered = node.node.status.allocatable or {}
    for name, amount in pod.requests.items():
        if not amount or not is_scalar(name) or not may_be_devices(name):
            continue
        device_class = classes.behind(name)
        if device_class is not None and not node.allocatable.get(name, 0):
            class_names[name] = device_class.metadata.name
        elif name not in offered:
            return unresolvable(CANNOT_FIT)
    requests, mappings = _requests(pod, class_names)
    devices = device_objects.DeviceClaim(requests=tuple(requests))
    claim = msgspec.structs.replace(special, spec=device_objects.ResourceClaimSpec(devices=devices))
    return NodeClaim(claim, tuple(mappings)) if class_names else None


# ---- requests per container ----------------------------------------------------------------


class _ContainerRequests(Struct):
    """The requests of the containers for one resource."""

    requests: list[device_objects.DeviceRequest]
    mappings: list[ContainerExtendedResourceRequest]


def _requests(
    pod: PodInfo, class_names: Mapping[str, str]
) -> tuple[list[device_objects.DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """The requests for extended resources. ``class_names``: resource → class."""
    requests: list[device_objects.DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(class_names):
        of_resource = _of_resource(pod, resource, class_names[resource])
        requests += of_resource.requests
        mappings += of_resource.mappings
    return sorted(requests, key=lambda request: request.name), mappings


def _of_resource(pod: PodInfo, resource: str, class_name: str) -> _ContainerRequests:
    """The requests for one resource. Containers that keep running have devices of their own. Init
    containers use these devices first.

    If init containers need more devices, the largest request serves all of them.
    """
    containers = list(all_containers(pod.spec))
    init_count = len(pod.spec.init_containers or ())
    lasting: list[device_objects.DeviceRequest | None] = [None] * len(containers)
    lasting_mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers):
        if not _is_short_lived(container, index, init_count):
            lasting[index], mapped = _of_container(
                index, container, resource, class_name, reusable=()
            )
            lasting_mappings += mapped
    short: list[device_objects.DeviceRequest] = []
    short_mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers[:init_count]):
        if _is_short_lived(container, index, init_count):
            reusable = [request for request in lasting[index:] if request is not None]
            request_needed, mapped = _of_container(
                index, container, resource, class_name, reusable=reusable
            )
            short += [request_needed] if request_needed is not None else []
            short_mappings += mapped
    largest = max(short, key=_count, default=None)
    if largest is not None:
        short_mappings = _renamed(short_mappings, {each.name for each in short}, largest.name)
    device_requests = [each for each in (largest, *lasting) if each is not None]
    return _ContainerRequests(device_requests, [*lasting_mappings, *short_mappings])


def _is_short_lived(container: Container, index: int, init_count: int) -> bool:
    return index < init_count and container.restart_policy != "Always"


def _of_container(
    index: int,
    container: Container,
    resource: str,
    class_name: str,
    *,
    reusable: Sequence[device_objects.DeviceRequest],
) -> tuple[device_objects.DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """The request that the container needs in addition to those it may reuse, and all requests that
    it uses."""
    requests = (container.resources.requests if container.resources is not None else None) or {}
    amount, remainder = divmod(nanos(requests.get(resource, 0)), NANOS)
    if not amount or remainder or amount > INT64_MAX:
        return None, []
    mappings: list[ContainerExtendedResourceRequest] = []
    for request in reusable:
        mappings.append(_mapping(container, resource, request.name))
        amount -= _count(request)
        if amount <= 0:
            return None, mappings
    name = f"container-{index}-request-{sorted(requests).index(resource)}"
    exactly = device_objects.ExactDeviceRequest(
        device_class_name=class_name, allocation_mode=device_objects.EXACT_COUNT, count=amount
    )
    mappings.append(_mapping(container, resource, name))
    return device_objects.DeviceRequest(name=name, exactly=exactly), mappings


def _count(request: device_objects.DeviceRequest) -> int:
    assert request.exactly is not None
    return request.exactly.count


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(
        container_name=container.name, resource_name=resource, request_name=request
    )


def _renamed(
    mappings: Sequence[ContainerExtendedResourceRequest], these: set[str], to: str
) -> list[ContainerExtendedResourceRequest]:
    return [
        msgspec.structs.replace(each, request_name=to) if each.request_name in these else each
        for each in mappings
    ]
