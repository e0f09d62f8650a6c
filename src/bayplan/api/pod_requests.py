"""The requests of a pod: integers per resource name.

Upstream: component-helpers/resource/helpers.go, PodRequests. The rules in order: containers summed;
init containers walked with the sidecars started so far; the larger of both; pod-level requests
replace; overhead is added. Under in-place resize the aggregate is the maximum of the spec's
requests, the allocated and the actuated amounts; before Kubernetes 1.37 the sum of each container's
maximum. What the devices of claims take of the node is added to the containers' sums. All amounts
are exact (billionths) until the last step, which rounds up once: cpu to millicores, everything else
to whole units.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from bayplan.api.device_objects import DEVICE_CLASS_RESOURCE_PREFIX
from bayplan.api.objects import Container, ContainerStatus, Pod, PodSpec, PodStatus, Quantities
from bayplan.api.quantity import (
    NANOS,
    NANOS_PER_MILLI,
    nanos,
    thousandths,
    thousandths_of,
    units,
    units_of,
)

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

#: The amounts of a container without a cpu or memory request, for scoring only, in billionths.
NON_ZERO_DEFAULTS: Mapping[str, int] = {
    CPU: 100 * NANOS_PER_MILLI,
    MEMORY: 200 * 1024 * 1024 * NANOS,
}
NO_DEFAULTS: Mapping[str, int] = {}

Amounts = dict[str, int]


class PodRules(Struct, frozen=True):
    """What of a pod counts in a version of kube-scheduler and under its gates."""

    #: Whether ``spec.resources`` counts, the requests of the pod as a whole.
    has_pod_level: bool = True
    #: Whether a kubelet's report about a resize counts.
    reads_resizes: bool = True
    #: In a resize: the largest of three sums, and not the sum of each container's largest amount.
    compares_sums: bool = True
    #: In a resize: whether the status of the pod as a whole counts.
    has_pod_level_resize: bool = True
    #: Whether requests beyond 2^63-1 count as this limit. Otherwise they become 0 or wrap.
    large_requests_saturate: bool = False
    #: Whether the operators Lt and Gt of a toleration compare numbers, or tolerate nothing.
    compares_taints: bool = False
    #: Whether what the devices of claims take of the node counts: DRANodeAllocatableResources.
    counts_claims: bool = False


NEWEST_POD_RULES = PodRules()
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


def may_be_devices(resource: str) -> bool:
    """Whether a DeviceClass can stand for the resource."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX)


def is_scalar(resource: str) -> bool:
    """Whether upstream counts the resource besides cpu, memory, ephemeral-storage and pods."""
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
    rules: PodRules = NEWEST_POD_RULES,
) -> Amounts:
    """The pod's request: cpu in millicores, everything else in whole units. Raises QuantityError.

    ``defaults``: the amounts of a container without a key for the resource, in billionths.
    ``pod_level``: whether spec.resources is honoured (upstream's NodeResourcesFit score does not).
    """
    level = _pod_level_requests(pod) if pod_level and rules.has_pod_level else {}
    if level and defaults:
        # A default applies only to a resource that the pod as a whole does not request.
        cached = _footprint(pod, level, NO_DEFAULTS, rules)
        defaults = {name: amount for name, amount in defaults.items() if name not in cached}
    saturates = rules.large_requests_saturate
    return {
        name: (thousandths_of if name == CPU else units_of)(amount, saturates=saturates)
        for name, amount in _footprint(pod, level, defaults, rules).items()
    }


def resize_report(status: PodStatus) -> object:
    """The part of a status that `requested` depends on: the kubelet's report of resources for an
    in-place resize. None: the status has no such report."""
    if not (
        status.container_statuses
        or status.init_container_statuses
        or status.resources
        or status.allocated_resources is not None
    ):
        return None
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    of_pod = (status.resources, status.allocated_resources)
    if of_pod == (None, None):
        for each in statuses:
            if each.resources is not None or each.allocated_resources is not None:
                break
        else:
            return None
    return of_pod, statuses, pending_resize(status)


def pending_resize(status: PodStatus) -> tuple[str | None, ...]:
    """The reason of the first condition PodResizePending; empty: there is no such condition."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return (condition.reason,)
    return ()


def all_containers(spec: PodSpec) -> Iterable[Container]:
    """Init containers first."""
    yield from spec.init_containers or ()
    yield from spec.containers or ()


# ---- exact from here on: all amounts in billionths -----------------------------------------


def exact_amounts(quantities: Quantities | None) -> Amounts:
    """Quantities in billionths. Raises QuantityError."""
    return {name: nanos(quantity) for name, quantity in (quantities or {}).items()}


def exact_requests(pod: Pod, rules: PodRules) -> Amounts:
    """What the containers request, and what the devices of claims take. Raises QuantityError."""
    total = _aggregate(pod, _requests)
    _add(total, _claimed(pod, rules))
    return total


def exact_limits(pod: Pod, rules: PodRules) -> Amounts:
    """The limits of the containers. What the devices of claims take is added to a limit that is
    set, and to huge pages. Upstream: addDRANodeAllocatableLimits. Raises QuantityError."""
    total = _aggregate(pod, _limits)
    claimed = _claimed(pod, rules)
    _add(
        total,
        {
            name: amount
            for name, amount in claimed.items()
            if name in total or name.startswith(HUGEPAGES_PREFIX)
        },
    )
    return total


def _claimed(pod: Pod, rules: PodRules) -> Amounts:
    """What the devices of claims take of the node. Upstream:
    addDRANodeAllocatableClaimResources."""
    total: Amounts = {}
    claims = pod.status.node_allocatable_resource_claim_statuses if rules.counts_claims else ()
    for claim in claims or ():
        parts = [(each.name, each.quantity, 1) for each in claim.mapping or ()]
        container_count = len(claim.containers or ())
        for each in claim.overhead or ():
            parts.append((each.name, each.per_pod, 1))
            parts.append((each.name, each.per_container, container_count))
        for name, quantity, factor in parts:
            _add(total, {name: 0 if quantity is None else nanos(quantity) * factor})
    return total


def _footprint(pod: Pod, level: Amounts, defaults: Mapping[str, int], rules: PodRules) -> Amounts:
    if rules.reads_resizes:
        resized = _resized if rules.compares_sums else _resized_by_container
        total = resized(pod, defaults, rules)
        total.update(_effective_pod_level(pod, level) if rules.has_pod_level_resize else level)
    else:
        total = _aggregate(pod, lambda c: _with_defaults(_requests(c), defaults))
        _add(total, _claimed(pod, rules))
        total |= level
    _add(total, exact_amounts(pod.spec.overhead))
    return total


def _pod_level_requests(pod: Pod) -> Amounts:
    resources = pod.spec.resources
    amounts = exact_amounts(resources.requests) if resources is not None else {}
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}


def _effective_pod_level(pod: Pod, level: Amounts) -> Amounts:
    """spec.resources, or under a pod-level resize the largest of spec, actuated and allocated."""
    if not level or pod.status.resources is None:
        return level
    effective = {} if _is_resize_infeasible(pod) else dict(level)
    for resources in (pod.status.resources.requests, pod.status.allocated_resources):
        _raise_to(effective, {n: a for n, a in exact_amounts(resources).items() if is_pod_level(n)})
    return effective


def _resized(pod: Pod, defaults: Mapping[str, int], rules: PodRules) -> Amounts:
    """The requests of the containers; with a kubelet's report, the largest of requested, allocated
    and actuated."""
    spec = _aggregate(pod, lambda c: _with_defaults(_requests(c), defaults))
    claimed = _claimed(pod, rules)
    _add(spec, claimed)
    # The status of the pod as a whole contains what the devices of its claims take.
    reported = _pod_level_status(pod) if rules.has_pod_level_resize else None
    if reported is None:
        reported = _container_statuses(pod, defaults)
        if reported is None:
            return spec
        _add(reported[0], claimed)
    total: Amounts = {} if _is_resize_infeasible(pod) else spec
    for aggregate in reported:
        _raise_to(total, aggregate)
    return total


def _resized_by_container(pod: Pod, defaults: Mapping[str, int], rules: PodRules) -> Amounts:
    """The sum of each container's largest amount; init containers that end have that of the
    spec."""
    reported = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    statuses = {s.name: s for s in reported if s.resources is not None}
    ending = {c.name for c in pod.spec.init_containers or () if c.restart_policy != "Always"}
    infeasible = _is_resize_infeasible(pod)

    def largest(container: Container) -> Mapping[str, int]:
        status = None if container.name in ending else statuses.get(container.name)
        if status is None or status.resources is None:
            return _with_defaults(_requests(container), defaults)
        total: Amounts = {} if infeasible else _requests(container)
        _raise_to(total, exact_amounts(status.resources.requests))
        _raise_to(total, exact_amounts(status.allocated_resources))
        return _with_defaults(total, defaults)

    return _aggregate(pod, largest)


def _pod_level_status(pod: Pod) -> tuple[Amounts, Amounts] | None:
    """(allocated, actuated) of the pod as a whole, if its status has both."""
    allocated, actuated = pod.status.allocated_resources, pod.status.resources
    if allocated is None or actuated is None or actuated.requests is None:
        return None
    return exact_amounts(allocated), exact_amounts(actuated.requests)


def _container_statuses(pod: Pod, defaults: Mapping[str, int]) -> tuple[Amounts, Amounts] | None:
    """(allocated, actuated) summed over containers, if any status reports resources."""
    reported = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    if all(s.allocated_resources is None and s.resources is None for s in reported):
        return None
    statuses = {s.name: s for s in reported}
    infeasible = _is_resize_infeasible(pod)
    fallback: _RequestsOf = (lambda c: {}) if infeasible else _requests
    return (
        _aggregate(pod, lambda c: _with_defaults(_allocated(c, statuses, fallback), defaults)),
        _aggregate(pod, lambda c: _with_defaults(_actuated(c, statuses, fallback), defaults)),
    )


def _is_resize_infeasible(pod: Pod) -> bool:
    return pending_resize(pod.status) == ("Infeasible",)


def _requests(container: Container) -> Amounts:
    return exact_amounts(container.resources.requests) if container.resources is not None else {}


def _limits(container: Container) -> Amounts:
    return exact_amounts(container.resources.limits) if container.resources is not None else {}


def _allocated(
    container: Container, statuses: Mapping[str, ContainerStatus], fallback: _RequestsOf
) -> Mapping[str, int]:
    status = statuses.get(container.name)
    if status is None or status.allocated_resources is None:
        return fallback(container)
    return exact_amounts(status.allocated_resources)


def _actuated(
    container: Container, statuses: Mapping[str, ContainerStatus], fallback: _RequestsOf
) -> Mapping[str, int]:
    status = statuses.get(container.name)
    if status is None or status.resources is None or status.resources.requests is None:
        return _allocated(container, statuses, fallback)
    return exact_amounts(status.resources.requests)


def _with_defaults(amounts: Mapping[str, int], defaults: Mapping[str, int]) -> Mapping[str, int]:
    return {**defaults, **amounts} if defaults else amounts


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
        else:
            moment = dict(sidecars)
            _add(moment, request)
            _raise_to(start, moment)
    _raise_to(total, start)
    return total


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        total[name] = max(amount, total.get(name, amount))
