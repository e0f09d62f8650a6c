"""Quantities, and what containers may ask for, as the API server checks them.

One rule of upstream's is left out on purpose: a request for a resource that cannot be promised
twice (a GPU) without a limit is refused there. It says clearly what is wanted, and is taken here.
"""

from collections.abc import Iterator
from fractions import Fraction

from bayplan.api.objects import Quantities, ResourceRequirements
from bayplan.api.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    is_extended,
    is_native,
    is_pod_level,
)
from bayplan.api.quantity import Quantity, QuantityError, parse
from bayplan.api.selectors import is_label_key
from bayplan.problems import Problem, joined, wrong

QUANTITY = "a quantity such as 500m, 2 or 1Gi"
_CONTAINER_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_RESOURCES = (CPU, MEMORY)


def quantity(value: Quantity, path: str, resource: str = "") -> Iterator[Problem]:
    """Not negative, and whole where only whole ones exist."""
    try:
        amount = parse(value)
    except (QuantityError, ArithmeticError):
        yield wrong(path, value, QUANTITY)
        return
    if amount < 0:
        yield wrong(path, value, "a quantity that is not negative")
    elif resource.startswith(HUGEPAGES_PREFIX) and not _is_pages(amount, resource):
        yield wrong(path, value, f"a multiple of {resource.removeprefix(HUGEPAGES_PREFIX)}")
    elif amount.denominator != 1 and (resource == "pods" or is_extended(resource)):
        yield wrong(path, value, "a whole number of them")


def _is_pages(amount: Fraction, resource: str) -> bool:
    """Whether an amount of huge pages is so many whole pages; what is no page size has none."""
    try:
        size = parse(resource.removeprefix(HUGEPAGES_PREFIX))
    except (QuantityError, ArithmeticError):
        return False
    return size > 0 and (amount / size).denominator == 1


def quantities(found: Quantities | None, path: str) -> Iterator[Problem]:
    """What a node has."""
    for name, value in (found or {}).items():
        yield from quantity(value, joined(path, name), name)


def overhead(found: Quantities | None, path: str) -> Iterator[Problem]:
    yield from _amounts(found, path, of_pod=False)


def requirements(
    found: ResourceRequirements | None, path: str, *, of_pod: bool = False
) -> Iterator[Problem]:
    """Requests and limits of a container, or of a pod as a whole."""
    if found is None:
        return
    problems = [
        *_amounts(found.limits, joined(path, "limits"), of_pod=of_pod),
        *_amounts(found.requests, joined(path, "requests"), of_pod=of_pod),
    ]
    yield from problems
    if not problems:
        yield from _within_limits(found, joined(path, "requests"))


def _amounts(found: Quantities | None, path: str, *, of_pod: bool) -> Iterator[Problem]:
    for name, value in (found or {}).items():
        yield from _resource_name(name, path, of_pod=of_pod)
        yield from quantity(value, joined(path, name), name)


def _resource_name(name: str, path: str, *, of_pod: bool) -> Iterator[Problem]:
    if of_pod:
        if not is_pod_level(name):
            wanted = f"{CPU}, {MEMORY} or {HUGEPAGES_PREFIX}…, as a pod may ask for as a whole"
            yield wrong(path, name, wanted, _POD_RESOURCES)
    elif "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(HUGEPAGES_PREFIX):
            wanted = f"{', '.join(_CONTAINER_RESOURCES)} or a name such as example.com/gpu"
            yield wrong(path, name, wanted, _CONTAINER_RESOURCES)
    elif not is_label_key(name) or not (is_native(name) or is_extended(name)):
        yield wrong(path, name, "a resource's name such as example.com/gpu")


def _within_limits(found: ResourceRequirements, path: str) -> Iterator[Problem]:
    limits = found.limits or {}
    for name, value in (found.requests or {}).items():
        if name not in limits:
            continue
        asked, most = parse(value), parse(limits[name])
        overcommits = is_native(name) and not name.startswith(HUGEPAGES_PREFIX)
        if asked > most:
            yield wrong(joined(path, name), value, f"at most its limit of {limits[name]}")
        elif asked < most and not overcommits:
            yield wrong(joined(path, name), value, f"exactly its limit of {limits[name]}")
