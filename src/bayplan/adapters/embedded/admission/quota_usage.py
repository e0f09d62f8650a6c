"""What an object uses of a quota, by kind.

An evaluator knows the resources of a quota that a kind uses, the usage of one object, and whether
an object is in a scope. Upstream: pkg/quota/v1/evaluator/core (pods.go, services.go,
persistent_volume_claims.go, resource_claims.go), apiserver/pkg/quota/v1/generic.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Protocol, cast, final

from bayplan.adapters.embedded.pod_amounts import (
    charged_limits,
    charged_requests,
    container_amounts,
    has_pod_level_resources,
    limits_part,
    requests_part,
)
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api import device_objects
from bayplan.api.admission_objects import ScopeRequirement
from bayplan.api.amounts import Amount, AmountsByResource, amount_of, amounts_of, total
from bayplan.api.object_meta import controller_of, resource_of
from bayplan.api.objects import (
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
    ApiObject,
    Container,
    Pod,
    PodAffinity,
    ResourceRequirements,
    is_terminal,
)
from bayplan.api.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    PODS,
    is_native,
    may_be_devices,
)
from bayplan.api.quantity import NANOS
from bayplan.api.storage_objects import BETA_STORAGE_CLASS, STORAGE, PersistentVolumeClaim
from bayplan.objects.keys import Content, ObjectKey

ONE = Amount(NANOS)
REQUESTS, LIMITS = "requests.", "limits."
_COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)


class Evaluator(Protocol):
    """The rules of one kind."""

    def matching(self, names: Iterable[str]) -> list[str]:
        """The resources of a quota that objects of the kind use."""
        ...

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        """What one object uses."""
        ...

    def is_in(self, scope: ScopeRequirement, decoded: ApiObject) -> bool:
        """Whether one object is in a scope."""
        ...

    def missing(self, required: Iterable[str], decoded: ApiObject) -> str | None:
        """What an object must specify because a quota counts it; None: nothing is missing."""
        ...


def count_name(kind: str) -> str:
    """The resource that counts all objects of a kind: "count/pods", "count/jobs.batch"."""
    group = kind.partition(" ")[0].rpartition("/")[0]
    return f"count/{resource_of(kind)}" + (f".{group}" if group else "")


# ---- all kinds ------------------------------------------------------------------------------


_LEGACY_NAMES = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")


class ObjectCount:
    """Counts the objects of a kind."""

    def __init__(self, kind: str) -> None:
        resource = resource_of(kind)
        legacy = (resource,) if kind.startswith("v1 ") and resource in _LEGACY_NAMES else ()
        self._names = (count_name(kind), *legacy)

    def matching(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._names]

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        return dict.fromkeys(self._names, ONE)

    def is_in(self, scope: ScopeRequirement, decoded: ApiObject) -> bool:
        return False

    def missing(self, required: Iterable[str], decoded: ApiObject) -> str | None:
        return None


# ---- pods -----------------------------------------------------------------------------------


_POD_NAMES = frozenset(
    (
        count_name(POD),
        PODS,
        *(f"{prefix}{name}" for name in _COMPUTE for prefix in ("", REQUESTS, LIMITS)),
    )
)
#: Resources that each container must specify if a quota counts them.
_REQUIRED = frozenset(
    (CPU, MEMORY, *(f"{prefix}{name}" for name in (CPU, MEMORY) for prefix in (REQUESTS, LIMITS)))
)


@final
class PodUsage:
    """Pods: their number, requests and limits."""

    def matching(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in _POD_NAMES or _is_scalar_request(name)]

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        pod = cast(Pod, decoded)
        counted = {count_name(POD): ONE}
        if is_terminal(pod):
            return counted
        return {**counted, **_compute_usage(charged_requests(pod), charged_limits(pod))}

    def is_in(self, scope: ScopeRequirement, decoded: ApiObject) -> bool:
        is_member = _SCOPES.get(scope.scope_name)
        if is_member is not None:
            return is_member(cast(Pod, decoded))
        if scope.scope_name == "PriorityClass":
            return _selects(scope, cast(Pod, decoded).spec.priority_class_name)
        return False

    def missing(self, required: Iterable[str], decoded: ApiObject) -> str | None:
        pod = cast(Pod, decoded)
        if has_pod_level_resources(pod):
            return None
        names = sorted(_REQUIRED.intersection(required))
        containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
        lacking = {
            name: sorted({c.name for c in containers if not _has(c, name)}) for name in names
        }
        texts = [f"{name} for: {','.join(lacking[name])}" for name in names if lacking[name]]
        return f"must specify {'; '.join(texts)}" if texts else None


def _is_scalar_request(name: str) -> bool:
    if name.startswith((HUGEPAGES_PREFIX, f"{REQUESTS}{HUGEPAGES_PREFIX}")):
        return True
    is_devices = name.startswith(f"{REQUESTS}{device_objects.DEVICE_CLASS_RESOURCE_PREFIX}")
    return name.startswith(REQUESTS) and (not is_native(name) or is_devices)


def _has(container: Container, name: str) -> bool:
    requests = container_amounts(container, requests_part)
    return name in _compute_usage(requests, container_amounts(container, limits_part))


def _compute_usage(
    requests: Mapping[str, Amount], limits: Mapping[str, Amount]
) -> AmountsByResource:
    usage = {PODS: ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGEPAGES_PREFIX):
            usage[name] = usage[f"{REQUESTS}{name}"] = amount
        elif may_be_devices(name):
            usage[f"{REQUESTS}{name}"] = amount
    usage |= {f"{LIMITS}{name}": limits[name] for name in _COMPUTE if name in limits}
    return usage


def _is_terminating(pod: Pod) -> bool:
    """Whether the pod ends after a time. It does not mean that it is being deleted."""
    seconds = pod.spec.active_deadline_seconds
    return seconds is not None and seconds >= 0


def _is_best_effort(pod: Pod) -> bool:
    """Whether nothing in the pod requests cpu or memory, or limits them."""
    if pod.spec.resources is not None and has_pod_level_resources(pod):
        parts: list[ResourceRequirements | None] = [pod.spec.resources]
    else:
        containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
        parts = [each.resources for each in containers]
    return not any(
        amounts_of(quantities).get(name, Amount(0)).nanos
        for part in parts
        if part is not None
        for quantities in (part.requests, part.limits)
        for name in (CPU, MEMORY)
    )


def _crosses_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    parts: tuple[PodAffinity | None, ...] = (affinity.pod_affinity, affinity.pod_anti_affinity)
    terms = [term for part in parts if part is not None for term in part.required or ()]
    terms += [
        w.pod_affinity_term for part in parts if part is not None for w in part.preferred or ()
    ]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


_SCOPES: Mapping[str, Callable[[Pod], bool]] = {
    "Terminating": _is_terminating,
    "NotTerminating": lambda pod: not _is_terminating(pod),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}


def _selects(scope: ScopeRequirement, *names: str | None) -> bool:
    """Whether the operator of a scope matches one of the names; None and "" are no names."""
    present = [name for name in names if name]
    match scope.operator:
        case "Exists":
            return bool(present)
        case "DoesNotExist":
            return not present
        case "In":
            return any(name in (scope.values or ()) for name in present)
        case "NotIn":
            return not present or any(name not in (scope.values or ()) for name in present)
        case _:
            return False


# ---- claims of volumes ----------------------------------------------------------------------


_CLAIMS, _REQUESTED_STORAGE = "persistentvolumeclaims", f"{REQUESTS}{STORAGE}"
_OF_CLASS = ".storageclass.storage.k8s.io/"


@final
class VolumeClaimUsage(ObjectCount):
    """Claims of volumes: their number and their storage, in all and by class."""

    def __init__(self) -> None:
        super().__init__(PERSISTENT_VOLUME_CLAIM)

    def matching(self, names: Iterable[str]) -> list[str]:
        own = (count_name(PERSISTENT_VOLUME_CLAIM), _CLAIMS, _REQUESTED_STORAGE)
        by_class = (f"{_OF_CLASS}{_CLAIMS}", f"{_OF_CLASS}{_REQUESTED_STORAGE}")
        return [name for name in names if name in own or name.endswith(by_class)]

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        claim = cast(PersistentVolumeClaim, decoded)
        usage = {count_name(PERSISTENT_VOLUME_CLAIM): ONE, _CLAIMS: ONE}
        storage = _whole((claim.spec.resources.requests or {}).get(STORAGE))
        allocated = _whole(
            ((content.get("status") or {}).get("allocatedResources") or {}).get(STORAGE)
        )
        if storage is not None:
            usage[_REQUESTED_STORAGE] = max((storage, allocated or storage), key=lambda a: a.nanos)
        annotations = claim.metadata.annotations or {}
        name = annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name)
        if name:
            by_class = (_CLAIMS, _REQUESTED_STORAGE)
            usage |= {f"{name}{_OF_CLASS}{each}": usage[each] for each in by_class if each in usage}
        return usage

    def is_in(self, scope: ScopeRequirement, decoded: ApiObject) -> bool:
        claim = cast(PersistentVolumeClaim, decoded)
        is_known = scope.scope_name == "VolumeAttributesClass"
        return is_known and _selects(scope, claim.spec.volume_attributes_class_name)


def _whole(quantity: str | int | float | None) -> Amount | None:
    """An amount of bytes, rounded up."""
    if quantity is None:
        return None
    amount = amount_of(quantity)
    return Amount(-(-amount.nanos // NANOS) * NANOS, amount.form)


# ---- services -------------------------------------------------------------------------------


_SERVICES, _LOAD_BALANCERS, _NODE_PORTS = "services", "services.loadbalancers", "services.nodeports"


@final
class ServiceUsage(ObjectCount):
    """Services: their number, load balancers and node ports."""

    def __init__(self) -> None:
        super().__init__(SERVICE)

    def matching(self, names: Iterable[str]) -> list[str]:
        own = (count_name(SERVICE), _SERVICES, _LOAD_BALANCERS, _NODE_PORTS)
        return [name for name in names if name in own]

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        spec = content.get("spec") or {}
        ports: list[Content] = spec.get("ports") or []
        usage = {count_name(SERVICE): ONE, _SERVICES: ONE}
        if spec.get("type") == "LoadBalancer":
            usage[_LOAD_BALANCERS] = ONE
            if spec.get("allocateLoadBalancerNodePorts") is False:
                ports = [port for port in ports if port.get("nodePort")]
        if spec.get("type") in ("LoadBalancer", "NodePort"):
            usage[_NODE_PORTS] = Amount(len(ports) * NANOS)
        return usage


# ---- claims of devices ----------------------------------------------------------------------


_DEVICES_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = f"{REQUESTS}{device_objects.DEVICE_CLASS_RESOURCE_PREFIX}"
#: The number of devices that a request for all devices is charged with: the most that one claim
#: can get.
_CHARGED_FOR_ALL = 32


@final
class DeviceClaimUsage(ObjectCount):
    """Claims of devices: their number, and devices by class and by extended resource."""

    _owner_kind: ClassVar = ("v1", "Pod")

    def __init__(self, store: VersionedStore, pods: PodUsage) -> None:
        super().__init__(device_objects.RESOURCE_CLAIM)
        self._store = store
        self._pods = pods

    def matching(self, names: Iterable[str]) -> list[str]:
        names = list(names)
        resources = self._extended_resources() if any(map(_is_scalar_request, names)) else {}
        extended = {f"{REQUESTS}{resource}" for resource in resources.values()}
        implicit = {f"{_IMPLICIT}{name}" for name in resources}
        own = {count_name(device_objects.RESOURCE_CLAIM), *extended, *implicit}
        return [name for name in names if name in own or name.endswith(_DEVICES_OF_CLASS)]

    def usage(self, content: Content, decoded: ApiObject) -> AmountsByResource:
        claim = cast(device_objects.ResourceClaim, decoded)
        devices = total(_devices_of(claim))
        usage = {count_name(device_objects.RESOURCE_CLAIM): ONE}
        usage |= {f"{name}{_DEVICES_OF_CLASS}": amount for name, amount in devices.items()}
        resources = self._extended_resources()
        of_pod = self._usage_of_owner(claim)
        for name, amount in devices.items():
            names = [f"{_IMPLICIT}{name}"]
            names += [f"{REQUESTS}{resources[name]}"] if name in resources else []
            for each in names:
                remaining = amount.nanos - of_pod.get(each, Amount(0)).nanos
                if remaining > 0:
                    usage[each] = Amount(remaining)
        return usage

    def _extended_resources(self) -> dict[str, str]:
        """Device class → the extended resource that it stands for."""
        classes = [
            cast(device_objects.DeviceClass, one.object)
            for one in self._store.all(device_objects.DEVICE_CLASS)
        ]
        return {
            each.metadata.name: each.spec.extended_resource_name
            for each in classes
            if each.spec.extended_resource_name
        }

    def _usage_of_owner(self, claim: device_objects.ResourceClaim) -> AmountsByResource:
        """What the pod is charged for already, if the scheduler made the claim for its extended
        resources."""
        annotations = claim.metadata.annotations or {}
        if annotations.get(device_objects.EXTENDED_RESOURCE_CLAIM_ANNOTATION) != "true":
            return {}
        owner = controller_of(claim.metadata)
        if owner is None or (owner.api_version, owner.kind) != self._owner_kind:
            return {}
        stored = self._store.get(ObjectKey(POD, claim.metadata.namespace or "", owner.name))
        if stored is None or stored.object.metadata.uid != owner.uid:
            return {}
        return self._pods.usage(stored.content, stored.object)


def _devices_of(claim: device_objects.ResourceClaim) -> Iterable[AmountsByResource]:
    """Device class → number of devices, for each request of a claim."""
    for request in claim.spec.devices.requests or ():
        if request.first_available:
            counts: AmountsByResource = {}
            for each in request.first_available:
                most = max(_device_count(each), counts.get(each.device_class_name, Amount(0)).nanos)
                counts[each.device_class_name] = Amount(most)
            yield counts
        elif request.exactly is not None:
            yield {request.exactly.device_class_name: Amount(_device_count(request.exactly))}


def _device_count(
    request: device_objects.ExactDeviceRequest | device_objects.DeviceSubRequest,
) -> int:
    """The number of devices, in billionths."""
    if request.allocation_mode == device_objects.ALL_DEVICES:
        return _CHARGED_FOR_ALL * NANOS
    return request.count * NANOS if request.allocation_mode == device_objects.EXACT_COUNT else 0
