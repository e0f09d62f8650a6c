"""Lower requests to what a node has free."""

from collections.abc import Iterator, Mapping
from typing import Any

from bayplan.answers.amounts import amount_text, rounded_down, short_text
from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amounts
from bayplan.explain.diagnosis import NodeDiagnosis
from bayplan.explain.fixes.edits import EditNotPossibleError, Harm, PodEdit, Spec
from bayplan.plugins.node_resources_fit import NodeResourcesFit

#: The number of different targets that are tried, the nearest first.
_TARGETS_MAX = 6


def lower_requests(diagnosis: NodeDiagnosis) -> Iterator[PodEdit]:
    """Requests that would fit on the nodes that are nearest to fitting; none is lowered to 0.

    It does no harm to lower a request that no node could ever hold.
    """
    targets: dict[tuple[tuple[str, int], ...], float] = {}
    requests = diagnosis.pod.requests
    for lacking in diagnosis.amounts.distinct_lacking(
        diagnosis.nodes_rejected_by(NodeResourcesFit.name)
    ):
        if not lacking or PODS in lacking:
            continue
        target = {name: rounded_down(name, requests[name] - lack) for name, lack in lacking.items()}
        if not all(target.values()):
            continue
        lost = max((requests[name] - amount) / requests[name] for name, amount in target.items())
        key = tuple(sorted(target.items()))
        targets[key] = min(lost, targets.get(key, lost))
    for key in sorted(targets, key=lambda key: (targets[key], key))[:_TARGETS_MAX]:
        is_impossible = all(_exceeds_every_node(diagnosis, name) for name, _ in key)
        yield _lowered(dict(key), requests, Harm.NONE if is_impossible else Harm.RULE)


def _exceeds_every_node(diagnosis: NodeDiagnosis, resource: str) -> bool:
    return diagnosis.pod.requests[resource] > diagnosis.amounts.most_allocatable(resource)


def _lowered(target: Mapping[str, int], requests: Mapping[str, int], harm: Harm) -> PodEdit:
    steps = [
        f"{name} from {short_text(name, requests[name])} to {amount_text(name, amount)}"
        for name, amount in sorted(target.items())
    ]

    def apply(spec: Spec) -> None:
        for resource, amount in target.items():
            lower_to(spec, resource, amount, requests[resource])

    text = f"lower the request for {', and for '.join(steps)}"
    return PodEdit(text, apply, harm, family=f"lower {', '.join(sorted(target))}")


def lower_to(spec: Spec, resource: str, amount: int, before: int) -> None:
    """Lower what the containers of a spec request together from ``before`` to ``amount``."""
    excess = before - amount
    whole = spec.get("resources")
    if whole and resource in (whole.get("requests") or {}):
        _set(whole, resource, max(_requested(whole, resource) - excess, 0))
    containers = [each for each in spec["containers"] if _requested_by(each, resource)]
    sidecars = [
        each
        for each in spec.get("initContainers") or ()
        if each.get("restartPolicy") == "Always" and _requested_by(each, resource)
    ]
    running = sorted((*containers, *sidecars), key=lambda each: -_requested_by(each, resource))
    total = sum(_requested_by(each, resource) for each in running)
    overhead = amounts(spec.get("overhead") or {}).get(resource, 0)
    left = max(total - max(amount - overhead, 0), 0)
    for container in running:
        present = _requested_by(container, resource)
        _set(container["resources"], resource, max(present - left, 0))
        left = max(left - present, 0)
    for container in spec.get("initContainers") or ():
        if _requested_by(container, resource) > max(amount - overhead, 0):
            _set(container["resources"], resource, max(amount - overhead, 0))
    if left:
        raise EditNotPossibleError(f"the containers do not request {left} of {resource}")


def _requested_by(container: Mapping[str, Any], resource: str) -> int:
    return _requested(container.get("resources") or {}, resource)


def _requested(resources: Mapping[str, Any], resource: str) -> int:
    quantity = (resources.get("requests") or {}).get(resource)
    if quantity is None:
        quantity = (resources.get("limits") or {}).get(resource)
    return 0 if quantity is None else amounts({resource: quantity}).get(resource, 0)


def _set(resources: dict[str, Any], resource: str, amount: int) -> None:
    text = amount_text(resource, amount)
    resources.setdefault("requests", {})[resource] = text
    if resource not in (CPU, MEMORY, EPHEMERAL_STORAGE) and resource in (
        resources.get("limits") or {}
    ):
        # The API server refuses a limit that differs from the request.
        resources["limits"][resource] = text
