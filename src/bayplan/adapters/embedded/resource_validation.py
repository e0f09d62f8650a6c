"""Validation of quantities, and of the requests and limits of containers and pods.

The words are those of kube-apiserver. Where it goes through a map, its order is not fixed; here it
is that of the manifest. Upstream: validateResourceRequirements, validatePodResources in
pkg/apis/core/validation/validation.go.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

from bayplan.adapters.embedded.field_errors import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    key_path,
    not_found,
    not_supported,
    qualified_name,
    required,
)
from bayplan.adapters.embedded.pod_amounts import (
    aggregated_limits,
    aggregated_requests,
    container_amounts,
    limits_part,
)
from bayplan.api import pod_requests
from bayplan.api.amounts import amounts_of, canonical
from bayplan.api.objects import (
    ContainerResourceClaim,
    Pod,
    PodSpec,
    Quantities,
    ResourceRequirements,
)
from bayplan.api.quantity import QUANTITY, Quantity, QuantityError, is_quantity, parse
from bayplan.problems import Problem, joined, wrong

_CONTAINER_RESOURCES = (pod_requests.CPU, pod_requests.MEMORY, pod_requests.EPHEMERAL_STORAGE)
_COMPUTE = (pod_requests.CPU, pod_requests.MEMORY)
HUGEPAGES_PREFIXES = (pod_requests.HUGEPAGES_PREFIX, f"requests.{pod_requests.HUGEPAGES_PREFIX}")
#: Resources without a domain. Those that no container has exist for quotas.
STANDARD_RESOURCES = (
    *_CONTAINER_RESOURCES,
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
)

# ---- quantities -----------------------------------------------------------------------------


def unreadable(amounts: Quantities | None, path: str) -> Iterator[Problem]:
    """Quantities that are none. A server refuses such an object before it validates it."""
    for name, value in (amounts or {}).items():
        if not is_quantity(value):
            yield wrong(joined(path, name), value, QUANTITY)


def unreadable_resources(spec: PodSpec, path: str) -> Iterator[Problem]:
    """`unreadable` quantities of a pod."""
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers or ()):
            where = f"{path}.{field}[{index}].resources"
            yield from _unreadable_parts(container.resources, where)
    yield from _unreadable_parts(spec.resources, f"{path}.resources")
    yield from unreadable(spec.overhead, f"{path}.overhead")


def _unreadable_parts(resources: ResourceRequirements | None, path: str) -> Iterator[Problem]:
    if resources is not None:
        yield from unreadable(resources.limits, f"{path}.limits")
        yield from unreadable(resources.requests, f"{path}.requests")


def quantities(amounts: Quantities | None, path: str) -> Iterator[Problem]:
    """Check quantities of any resources, such as a node's."""
    for name, value in (amounts or {}).items():
        if not is_quantity(value):
            yield wrong(joined(path, name), value, QUANTITY)
            continue
        yield from _amount(name, value, key_path(path, name))


def _amount(name: str, value: Quantity, path: str) -> Iterator[Problem]:
    amount = parse(value)
    if amount < 0:
        yield invalid(path, canonical(value), "must be greater than or equal to 0")
    if (name == "pods" or _is_extended_name(name)) and amount.denominator != 1:
        yield invalid(path, canonical(value), "must be an integer")


def _pages(name: str, value: Quantity, path: str) -> Iterator[Problem]:
    if name.startswith(pod_requests.HUGEPAGES_PREFIX) and not _is_multiple(parse(value), name):
        detail = f"{canonical(value)} is not positive integer multiple of {name}"
        yield invalid(path, canonical(value), detail)


def _is_multiple(amount: Fraction, resource: str) -> bool:
    """Whether an amount of huge pages is a multiple of the page size; False: no valid page size."""
    try:
        size = parse(resource.removeprefix(pod_requests.HUGEPAGES_PREFIX))
    except (QuantityError, ArithmeticError):
        return False
    return size > 0 and (amount / size).denominator == 1


# ---- names ----------------------------------------------------------------------------------


def container_resource(name: str, path: str) -> Iterator[Problem]:
    """Check the name of a resource that a container may request."""
    problems = list(resource_name(name, path))
    yield from problems
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(pod_requests.HUGEPAGES_PREFIX):
            detail = "must be a standard resource for containers"
            yield invalid(path, name, detail, _CONTAINER_RESOURCES)
    elif not pod_requests.is_native(name) and not _is_extended_name(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _is_extended_name(name: str) -> bool:
    """Whether a quota can name the resource, too."""
    return pod_requests.is_extended(name) and not any(qualified_name(f"requests.{name}", ""))


def _pod_resource(name: str, path: str) -> Iterator[Problem]:
    problems = list(resource_name(name, path))
    yield from problems
    if not problems and not pod_requests.is_pod_level(name):
        yield not_supported(
            path, name, (pod_requests.CPU, pod_requests.HUGEPAGES_PREFIX, pod_requests.MEMORY)
        )


def resource_name(name: str, path: str) -> Iterator[Problem]:
    """Check the name of any resource."""
    problems = list(qualified_name(name, path))
    yield from problems
    is_standard = name in STANDARD_RESOURCES or name.startswith(HUGEPAGES_PREFIXES)
    if not problems and "/" not in name and not is_standard:
        yield invalid(path, name, "must be a standard resource type or fully qualified")


# ---- requests and limits --------------------------------------------------------------------


def overhead(amounts: Quantities | None, path: str, *, is_new: bool = True) -> Iterator[Problem]:
    if amounts is not None:
        yield from requirements(ResourceRequirements(limits=amounts), path, is_new=is_new)


def requirements(
    resources: ResourceRequirements | None,
    path: str,
    claim_names: frozenset[str] = frozenset(),
    *,
    of_pod: bool = False,
    is_new: bool = True,
) -> Iterator[Problem]:
    """Check the requests and limits of a container, or of a whole pod.

    ``claim_names``: the names of the pod's claims of devices. ``is_new``: False for an object that
    a server has stored: what it lacks is no problem.
    """
    if resources is None:
        return
    check = _pod_resource if of_pod else container_resource
    bad = list(_unreadable_parts(resources, path))
    yield from bad
    if bad:
        return
    yield from _part(resources.limits, f"{path}.limits", check)
    for name, value in (resources.requests or {}).items():
        where = key_path(f"{path}.requests", name)
        yield from check(name, where)
        yield from _amount(name, value, where)
        yield from _against_limit(resources, name, path, is_new=is_new)
        yield from _pages(name, value, where)
    names = {*(resources.limits or ()), *(resources.requests or ())}
    has_pages = any(name.startswith(pod_requests.HUGEPAGES_PREFIX) for name in names)
    if is_new and has_pages and not names.intersection(_COMPUTE):
        yield forbidden(path, "HugePages require cpu or memory")
    if is_new:
        yield from _claims(resources.claims or (), claim_names, f"{path}.claims")


def _part(
    amounts: Quantities | None, path: str, check: Callable[[str, str], Iterator[Problem]]
) -> Iterator[Problem]:
    for name, value in (amounts or {}).items():
        where = key_path(path, name)
        yield from check(name, where)
        yield from _amount(name, value, where)
        yield from _pages(name, value, where)


def overcommits(name: str) -> bool:
    """Whether limits of a resource may exceed its requests."""
    return pod_requests.is_native(name) and not name.startswith(pod_requests.HUGEPAGES_PREFIX)


def _against_limit(
    resources: ResourceRequirements, name: str, path: str, *, is_new: bool
) -> Iterator[Problem]:
    request, limits = (resources.requests or {})[name], resources.limits or {}
    is_fixed = not overcommits(name)
    if name not in limits:
        if is_fixed and is_new:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    limit = limits[name]
    rule = None
    if parse(request) != parse(limit) and is_fixed:
        rule = "equal to"
    elif parse(request) > parse(limit):
        rule = "less than or equal to"
    if rule is not None:
        detail = f"must be {rule} {name} limit of {canonical(limit)}"
        yield invalid(f"{path}.requests", canonical(request), detail)


def _claims(
    claims: tuple[ContainerResourceClaim, ...], claim_names: frozenset[str], path: str
) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim.name:
            yield required(where)
            continue
        if claim.name in seen:
            yield duplicate(where, claim.name)
        else:
            yield from _claimed(claim, seen, where)
        if claim.name not in claim_names:
            listed = ": " + ", ".join(sorted(claim_names)) if claim_names else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield not_found(where, claim.name, detail)


def _claimed(claim: ContainerResourceClaim, seen: set[str], path: str) -> Iterator[Problem]:
    """Check a claim, or one request of it, and add it to ``seen``."""
    key = claim.name
    if claim.request:
        yield from dns_label(claim.request, f"{path}.request")
        key = f"{claim.name}/{claim.request}"
    if key in seen:
        yield duplicate(path, key)
    elif not claim.request:
        for other in seen:
            if other.startswith(f"{claim.name}/"):
                yield duplicate(path, claim.name)
    seen.add(key)


# ---- resources of a whole pod ---------------------------------------------------------------


def pod_resources(spec: PodSpec, path: str, *, is_new: bool = True) -> Iterator[Problem]:
    """Check the requests and limits of a pod as a whole against those of its containers."""
    if spec.resources is None:
        return
    if spec.resources.claims is not None:
        detail = "claims may not be set for Resources at pod-level"
        yield forbidden(f"{path}.claims", detail)
    problems = list(requirements(spec.resources, path, of_pod=True, is_new=is_new))
    yield from problems
    try:
        yield from _consistency(spec, path)
    except (QuantityError, ArithmeticError):
        return  # `requirements` of the containers reports it


def _consistency(spec: PodSpec, path: str) -> Iterator[Problem]:
    assert spec.resources is not None
    pod, whole = Pod(spec=spec), spec.resources
    requests, limits = amounts_of(whole.requests), amounts_of(whole.limits)
    for name, amount in aggregated_requests(pod).items():
        if name in requests and amount.nanos > requests[name].nanos:
            detail = f"must be greater than or equal to aggregate container requests of {amount}"
            yield invalid(key_path(f"{path}.requests", name), str(requests[name]), detail)
    for name, amount in aggregated_limits(pod).items():
        limit = limits.get(name) if name.startswith(pod_requests.HUGEPAGES_PREFIX) else None
        if limit is not None and amount.nanos > limit.nanos:
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            yield invalid(key_path(f"{path}.limits", name), str(limit), detail)
    for index, container in enumerate(spec.containers or ()):
        for name, amount in container_amounts(container, limits_part).items():
            if name in limits and amount.nanos > limits[name].nanos:
                where = f"{key_path(f'{path}.containers[{index}]', name)}.limits"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(where, str(amount), detail)
