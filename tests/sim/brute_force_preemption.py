"""What preemption must come to: the victims on a node, and how many of them budgets protect.

A second implementation of the search for victims, from the JSON of API objects. All pods of lower
priority leave a node. If the pod fits then, they come back one by one: pods that a budget protects
first, then by falling priority and by start time, and equals in any order. A pod that does not fit
beside the pod is a victim. Of all nodes, one with the fewest violations is chosen.

Upstream: default_preemption.go, SelectVictimsOnNode and filterPodsWithPDBViolation; preemption.go,
pickOneNodeForPreemption.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice, permutations, product

from tests.sim.brute_force import Content, Picture, key_of, labels_of, selects, uid_of
from tests.sim.brute_force_storage import why_not

BUDGET = "policy/v1 PodDisruptionBudget"


#: So many orders of equals are tried at most.
_ORDERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Eviction:
    """What may come of a node, over all orders of equals."""

    victim_count_max: int
    violation_count_min: int
    violation_count_max: int


def priority_of(pod: Content) -> int:
    return pod["spec"].get("priority") or 0


def eviction_on(picture: Picture, pod: Content, node_name: str) -> Eviction | None:
    """None: evictions do not help, the node has no pod of lower priority, or its pods have too many
    orders."""
    lower = [each for each in picture.occupants(node_name) if priority_of(each) < priority_of(pod)]
    without_all = picture.without(map(uid_of, lower))
    if not lower or why_not(without_all, pod, node_name):
        return None
    orders = list(islice(_orders(lower), _ORDERS_MAX))
    if len(orders) == _ORDERS_MAX:
        return None
    counts = [_counts(without_all, pod, node_name, order) for order in orders]
    violations = [violation_count for _, violation_count in counts]
    return Eviction(max(count for count, _ in counts), min(violations), max(violations))


def _orders(pods: list[Content]) -> Iterator[list[Content]]:
    """From the most important pod on."""
    ranked = sorted(pods, key=_importance)
    classes = [
        list(islice(permutations(equals), _ORDERS_MAX))
        for _, equals in groupby(ranked, _importance)
    ]
    return (list(chain.from_iterable(order)) for order in product(*classes))


def _counts(
    without_all: Picture, pod: Content, node_name: str, lower: list[Content]
) -> tuple[int, int]:
    """(number of victims, how many of them a budget protects)."""
    protected = _protected(without_all, lower)
    order = [each for each in lower if uid_of(each) in protected]
    order += [each for each in lower if uid_of(each) not in protected]
    remaining, victims = without_all, set[str]()
    for each in order:
        with_it = remaining.with_pod(each, node_name)
        if why_not(with_it, pod, node_name):
            victims.add(uid_of(each))
        else:
            remaining = with_it
    return len(victims), len(victims & protected)


def _importance(pod: Content) -> tuple[int, str]:
    """The most important pod comes first."""
    return -priority_of(pod), (pod.get("status") or {}).get("startTime") or ""


def _protected(picture: Picture, pods: list[Content]) -> set[str]:
    """The uids of the pods that some budget does not allow to be evicted."""
    left = {
        key: (budget.get("status") or {}).get("disruptionsAllowed") or 0
        for key, budget in picture.kind(BUDGET).items()
    }
    protected: set[str] = set()
    for pod in pods:
        namespace, name = key_of(pod)
        for key, budget in sorted(picture.kind(BUDGET).items()):
            is_meant = key[0] == namespace and selects(budget["spec"]["selector"], labels_of(pod))
            disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
            if not is_meant or name in disrupted:
                continue
            left[key] -= 1
            if left[key] < 0:
                protected.add(uid_of(pod))
                break
    return protected
