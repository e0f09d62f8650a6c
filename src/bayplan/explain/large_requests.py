"""Requests that kube-scheduler cannot count: before 1.38, an amount beyond 64 bits becomes 0 or
wraps, so that a pod that no node can hold fits. Upstream: #141305.
"""

from collections.abc import Iterable, Iterator

from msgspec import structs

from bayplan.answers.amounts import amount_text
from bayplan.api.objects import Pod
from bayplan.api.pod_requests import CPU, requested
from bayplan.api.quantity import QuantityError
from bayplan.model.cluster_model import ClusterModel
from bayplan.printable import printable


def large_request_remarks(model: ClusterModel, pods: Iterable[Pod]) -> tuple[str, ...]:
    """A remark on each request of these pods that the scheduler of the model counts as another
    amount."""
    if model.scheduler.pod_rules.large_requests_saturate:
        return ()
    return tuple(dict.fromkeys(text for pod in pods for text in _remarks(model, pod)))


def _remarks(model: ClusterModel, pod: Pod) -> Iterator[str]:
    rules = model.scheduler.pod_rules
    try:
        whole = requested(pod, rules=structs.replace(rules, large_requests_saturate=True))
        counted = requested(pod, rules=rules)
    except QuantityError:
        return
    for name in sorted(whole):
        if counted[name] != whole[name]:
            unit = "millicores" if name == CPU else "units"
            yield printable(
                f"the request for {name} is more than 2^63-1 {unit}: kube-scheduler before 1.38 "
                f"counts it as {amount_text(name, counted[name])}, so the pod may get a node "
                "that cannot hold it; from 1.38 on it fits nowhere"
            )
