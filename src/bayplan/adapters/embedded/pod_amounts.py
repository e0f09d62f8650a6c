"""What a pod requests and what limits it has, as admission counts them.

The amounts keep the form in which they were written, for messages print them. Upstream:
component-helpers/resource/helpers.go (PodRequests, PodLimits) and the copy in
plugin/pkg/admission/limitranger.
"""

from collections.abc import Callable, Mapping

from bayplan.api.amounts import Amount, AmountsByResource, amounts_of, largest, total
from bayplan.api.objects import Container, Pod, Quantities, ResourceRequirements
from bayplan.api.pod_requests import CPU, MEMORY, is_pod_level, requested, resize_report
from bayplan.api.quantity import NANOS, NANOS_PER_MILLI

#: The requests or the limits of a container or of a pod as a whole.
Part = Callable[[ResourceRequirements], Quantities | None]


def requests_part(resources: ResourceRequirements) -> Quantities | None:
    return resources.requests


def limits_part(resources: ResourceRequirements) -> Quantities | None:
    return resources.limits


def limited_amounts(pod: Pod, part: Part) -> AmountsByResource:
    """The amounts that a LimitRange of type Pod compares: without overhead."""
    return {**_of_containers(pod, part), **_of_whole(pod, part, _is_cpu_or_memory)}


def charged_requests(pod: Pod) -> AmountsByResource:
    """The requests that a quota counts."""
    amounts = {
        **_of_containers(pod, requests_part),
        **_of_whole(pod, requests_part, is_pod_level),
    }
    amounts = total((amounts, amounts_of(pod.spec.overhead)))
    if resize_report(pod.status) is None:
        return amounts
    return {
        name: Amount(amount * (NANOS_PER_MILLI if name == CPU else NANOS), _form(amounts, name))
        for name, amount in requested(pod).items()
    }


def charged_limits(pod: Pod) -> AmountsByResource:
    """The limits that a quota counts. Overhead is added to limits that exist."""
    limits = {**_of_containers(pod, limits_part), **_of_whole(pod, limits_part, is_pod_level)}
    overhead = amounts_of(pod.spec.overhead)
    return {
        name: limit.plus(overhead[name]) if name in overhead and limit.nanos else limit
        for name, limit in limits.items()
    }


def aggregated_requests(pod: Pod) -> AmountsByResource:
    """What the containers request together."""
    return _of_containers(pod, requests_part)


def aggregated_limits(pod: Pod) -> AmountsByResource:
    """The limits of the containers together."""
    return _of_containers(pod, limits_part)


def has_pod_level_resources(pod: Pod) -> bool:
    """Whether spec.resources speaks of the pod as a whole."""
    resources = pod.spec.resources
    names = [] if resources is None else [*(resources.requests or ()), *(resources.limits or ())]
    return any(map(is_pod_level, names))


def container_amounts(container: Container, part: Part) -> AmountsByResource:
    resources = container.resources
    return {} if resources is None else amounts_of(part(resources))


def _of_containers(pod: Pod, part: Part) -> AmountsByResource:
    """Containers and sidecars together, or the largest moment of the start."""
    together = [container_amounts(each, part) for each in pod.spec.containers or ()]
    sidecars: AmountsByResource = {}
    moments: list[Mapping[str, Amount]] = []
    for container in pod.spec.init_containers or ():
        amounts = container_amounts(container, part)
        if container.restart_policy == "Always":
            together.append(amounts)
            sidecars = total((sidecars, amounts))
            moments.append(sidecars)
        else:
            moments.append(total((amounts, sidecars)))
    return largest((total(together), *moments))


def _of_whole(pod: Pod, part: Part, counts: Callable[[str], bool]) -> AmountsByResource:
    resources = pod.spec.resources
    amounts = {} if resources is None else amounts_of(part(resources))
    return {name: amount for name, amount in amounts.items() if counts(name)}


def _is_cpu_or_memory(resource: str) -> bool:
    return resource in (CPU, MEMORY)


def _form(amounts: Mapping[str, Amount], name: str) -> str:
    return amounts.get(name, Amount(0)).form
