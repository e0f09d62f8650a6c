"""What a pod asks for: integers per resource name.

Upstream: component-helpers/resource/helpers.go, PodRequests. cpu in millicores, everything else in
whole units, all rounded up. The rules in order: containers summed; init containers walked with the
sidecars started so far; the larger of both; pod-level requests replace; overhead is added. Under
in-place resize the aggregate is the maximum of what the spec asks, what the kubelet allocated and
what it actuated.
"""

from collections.abc import Callable, Iterable, Mapping

from bayplan.api.objects import Container, ContainerStatus, Pod, Quantities
from bayplan.api.quantity import INT64_MAX, thousandths, units

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

#: What a container that names no cpu or memory counts as, for scoring only.
DEFAULT_MILLI_CPU_REQUEST = 100
DEFAULT_MEMORY_REQUEST_BYTES = 200 * 1024 * 1024
NON_ZERO_DEFAULTS: Mapping[str, int] = {
    CPU: DEFAULT_MILLI_CPU_REQUEST,
    MEMORY: DEFAULT_MEMORY_REQUEST_BYTES,
}
NO_DEFAULTS: Mapping[str, int] = {}

Amounts = dict[str, int]
_RequestsOf = Callable[[Container], Mapping[str, int]]


def amounts(quantities: Quantities | None) -> Amounts:
    """Quantities as integers. Raises QuantityError."""
    if not quantities:
        return {}
    return {
        name: thousandths(quantity) if name == CPU else units(quantity)
        for name, quantity in quantities.items()
    }


def is_pod_level(resource: str) -> bool:
    """Resources that spec.resources may set for the pod as a whole."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX)


def is_native(resource: str) -> bool:
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    """A resource of some other domain, such as nvidia.com/gpu."""
    return not is_native(resource) and not resource.startswith("requests.")


def is_scalar(resource: str) -> bool:
    """Resources that upstream counts beside the four it knows; others it does not count."""
    return (
        is_extended(resource)
        or resource.startswith((HUGEPAGES_PREFIX, "attachable-volumes-"))
        or ("/" in resource and "kubernetes.io/" in resource)
    )


def is_counted(resource: str) -> bool:
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def requested(
    pod: Pod,
    *,
    defaults: Mapping[str, int] = NO_DEFAULTS,
    pod_level: bool = True,
) -> Amounts:
    """The pod's request. Raises QuantityError.

    ``defaults``: what a container that has no key for a resource counts as. ``pod_level``: whether
    spec.resources is honoured (upstream's NodeResourcesFit score does not).
    """
    level = _pod_level_requests(pod) if pod_level else {}
    if level:
        # A default stands only for what the pod as a whole does not request.
        defaults = {name: amount for name, amount in defaults.items() if name not in level}
    total = _resized(pod, defaults)
    if pod_level:
        total.update(_effective_pod_level(pod, level))
    _add(total, amounts(pod.spec.overhead))
    return total


def _pod_level_requests(pod: Pod) -> Amounts:
    resources = pod.spec.resources
    found = amounts(resources.requests) if resources is not None else {}
    return {name: amount for name, amount in found.items() if is_pod_level(name)}


def _effective_pod_level(pod: Pod, level: Amounts) -> Amounts:
    """spec.resources, or under a pod-level resize the largest of spec, actuated and allocated."""
    if not level or pod.status.resources is None:
        return level
    effective = {} if _resize_reason(pod) == "Infeasible" else dict(level)
    for known in (pod.status.resources.requests, pod.status.allocated_resources):
        supported = {n: a for n, a in amounts(known).items() if is_pod_level(n)}
        _raise_to(effective, supported)
    return effective


def _resized(pod: Pod, defaults: Mapping[str, int]) -> Amounts:
    statuses = _statuses(pod)
    spec = _aggregate(pod, lambda c: _with_defaults(_requests(c), defaults))
    if not any(s.allocated_resources or s.resources for s in statuses.values()):
        return spec
    infeasible = _resize_reason(pod) == "Infeasible"
    fallback: _RequestsOf = (lambda c: {}) if infeasible else _requests
    allocated = _aggregate(
        pod, lambda c: _with_defaults(_allocated(c, statuses, fallback), defaults)
    )
    actuated = _aggregate(pod, lambda c: _with_defaults(_actuated(c, statuses, fallback), defaults))
    if pod.status.allocated_resources and pod.status.resources and pod.status.resources.requests:
        allocated = amounts(pod.status.allocated_resources)
        actuated = amounts(pod.status.resources.requests)
    total: Amounts = {} if infeasible else spec
    _raise_to(total, allocated)
    _raise_to(total, actuated)
    return total


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    found = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return {s.name: s for s in found}


def _resize_reason(pod: Pod) -> str | None:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason
    return None


def _requests(container: Container) -> Amounts:
    return amounts(container.resources.requests) if container.resources is not None else {}


def _allocated(
    container: Container, statuses: Mapping[str, ContainerStatus], fallback: _RequestsOf
) -> Mapping[str, int]:
    status = statuses.get(container.name)
    if status is None or status.allocated_resources is None:
        return fallback(container)
    return amounts(status.allocated_resources)


def _actuated(
    container: Container, statuses: Mapping[str, ContainerStatus], fallback: _RequestsOf
) -> Mapping[str, int]:
    status = statuses.get(container.name)
    if status is not None and status.resources is not None and status.resources.requests:
        return amounts(status.resources.requests)
    return _allocated(container, statuses, fallback)


def _with_defaults(found: Mapping[str, int], defaults: Mapping[str, int]) -> Mapping[str, int]:
    return {**defaults, **found} if defaults else found


def _aggregate(pod: Pod, requests_of: _RequestsOf) -> Amounts:
    """Containers and sidecars together, or the largest moment of the start."""
    total: Amounts = {}
    for container in pod.spec.containers or ():
        _add(total, requests_of(container))
    sidecars: Amounts = {}
    start: Amounts = {}
    for container in pod.spec.init_containers or ():
        request = requests_of(container)
        if container.restart_policy == "Always":
            _add(total, request)
            _add(sidecars, request)
            _raise_to(start, sidecars)
        else:
            moment = dict(sidecars)
            _add(moment, request)
            _raise_to(start, moment)
    _raise_to(total, start)
    return total


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = min(total.get(name, 0) + amount, INT64_MAX)


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, 0) or name not in total:
            total[name] = max(amount, total.get(name, amount))


def all_containers(pod: Pod) -> Iterable[Container]:
    """Init containers first, as upstream visits them for images."""
    yield from pod.spec.init_containers or ()
    yield from pod.spec.containers or ()
