"""Pod groups, preemptions and arrivals: metrics of scheduling, and how a seed arranges a workload.

In the arrival experiment, the pods that wait at 0 s are shuffled. Then pods follow that are drawn
from them at random, with replacement, until the requests for a resource reach a percentage of the
capacity of all nodes. A pod that is drawn again has a number behind its name.

Requests for ``nvidia.com/gpu`` are counted in the thousandths of the annotation
``bayplan.dev/gpu-milli``, if the pod has one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast, final

import msgspec
from msgspec import Struct

from bayplan.api.objects import (
    DISRUPTION_TARGET,
    NODE,
    POD,
    PREEMPTION_BY_SCHEDULER,
    Node,
    Pod,
    decode,
)
from bayplan.api.pod_requests import amounts, requested
from bayplan.comparison.metrics.run_metric import RunMetric
from bayplan.comparison.renumbering import renumbered
from bayplan.comparison.statistics import span_metrics
from bayplan.journal import AttemptRecord, Record
from bayplan.rng import Stream, stream
from bayplan.sim.input.openb import GPU, GPU_MILLI_ANNOTATION
from bayplan.sim.input.workload import Content, Workload, is_pending_pod
from bayplan.sim.output.result import PodGroupResult, PodResult, SimulationResult
from bayplan.state.pods import PodInfo

# ---- gangs ----------------------------------------------------------------------------------


@final
class Gangs(RunMetric):
    """Groups with an object: how many reached their minimum, and the virtual seconds from the
    creation of the minimum of members to the binding of the minimum of members."""

    name = "gangs"

    def __init__(self) -> None:
        #: Pod → group, both as "namespace/name".
        self._groups: dict[str, str] = {}

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None and new.group_key is not None:
            self._groups[new.key] = str(new.group_key)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        if not result.pod_groups:
            return {}
        members: dict[str, list[PodResult]] = {name: [] for name in result.pod_groups}
        for pod, group in self._groups.items():
            if group in members and pod in result.pods:
                members[group].append(result.pods[pod])
        spans = [
            span
            for name, group in result.pod_groups.items()
            for span in _waited(group, members[name])
        ]
        return {
            "gangs_placed": float(len(spans)),
            "gangs_waiting": float(len(result.pod_groups) - len(spans)),
            **span_metrics("gang_waiting_seconds", spans),
        }


def _waited(group: PodGroupResult, members: list[PodResult]) -> Iterator[float]:
    """Nothing where too few were ever bound."""
    came = sorted(pod.created_at for pod in members if pod.created_at is not None)
    bound = sorted(pod.bound_at for pod in members if pod.bound_at is not None)
    needed = max(group.min_member, 1)
    if len(bound) >= needed:
        yield max(bound[needed - 1] - came[needed - 1], 0.0)


# ---- preemptions ----------------------------------------------------------------------------


@final
class Preemptions(RunMetric):
    """Attempts that nominated a node for preemption, and the victims."""

    name = "preemptions"

    def __init__(self) -> None:
        self._count = 0
        self._victims: set[str] = set()

    def record(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.nominated_node:
            self._count += 1

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None and any(
            condition.type == DISRUPTION_TARGET and condition.reason == PREEMPTION_BY_SCHEDULER
            for condition in new.pod.status.conditions or ()
        ):
            self._victims.add(new.uid)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        return {
            "preemptions": float(self._count),
            "preemption_victims": float(len(self._victims)),
        }


# ---- arrivals -------------------------------------------------------------------------------


class FillingDemand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Draw further pods until they request this percentage of a resource."""

    resource: str
    percent: float


class Arrivals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How a seed arranges an input."""

    shuffled: bool = False
    until_demand: FillingDemand | None = None
    #: Nodes get a number before their names; see `bayplan.comparison.renumbering`.
    nodes_renumbered: bool = False


def arranged(workload: Workload, arrivals: Arrivals, seed: int) -> Workload:
    """The workload as one seed has it."""
    if arrivals.nodes_renumbered:
        workload = renumbered(workload, seed)
    if not arrivals.shuffled and arrivals.until_demand is None:
        return workload
    chance = stream(seed, "arrivals")
    placed = [one for one in workload.initial if not is_pending_pod(one)]
    pods = [one for one in workload.initial if is_pending_pod(one)]
    if arrivals.shuffled:
        chance.shuffle(pods)
    if arrivals.until_demand is not None and pods:
        missing = _missing(placed, pods, arrivals.until_demand)
        pods = [*pods, *_drawn(pods, missing, arrivals, chance)]
    return msgspec.structs.replace(workload, initial=(*placed, *pods))


def _missing(placed: Iterable[Content], pods: Iterable[Content], demand: FillingDemand) -> float:
    """The amount that further pods must request."""
    has = sum(_of_node(one, demand.resource) for one in placed if one.get("kind") == "Node")
    request = sum(requested_by(one, demand.resource) for one in pods)
    return has * demand.percent / 100 - request


def _drawn(
    pods: list[Content], missing: float, arrivals: Arrivals, chance: Stream
) -> Iterator[Content]:
    assert arrivals.until_demand is not None
    resource = arrivals.until_demand.resource
    # Without a pod that requests the resource, drawing would never end.
    amounts_requested = [requested_by(one, resource) for one in pods]
    if not any(amounts_requested):
        return
    count = 0
    while missing > 0:
        index = chance.randrange(len(pods))
        count += 1
        missing -= amounts_requested[index]
        yield _renamed(pods[index], count)


def _renamed(pod: Content, number: int) -> Content:
    """A copy of the pod with a name of its own and no uid."""
    meta = {name: value for name, value in pod["metadata"].items() if name != "uid"}
    return {**pod, "metadata": {**meta, "name": f"{meta['name']}.{number}"}}


# ---- amounts --------------------------------------------------------------------------------


def requested_by(content: Content, resource: str) -> float:
    """The request of a pod for a resource; a share of a GPU counts as a share."""
    pod = cast(Pod, decode(POD, content))
    request = requested(pod).get(resource, 0)
    return request * gpu_share(pod.metadata.annotations) if resource == GPU else request


def gpu_share(annotations: dict[str, str] | None) -> float:
    """The share of each requested GPU that a pod uses: 1 without the annotation."""
    text = (annotations or {}).get(GPU_MILLI_ANNOTATION, "")
    return int(text) / 1000 if text.isascii() and text.isdecimal() else 1.0


def _of_node(content: Content, resource: str) -> int:
    node = cast(Node, decode(NODE, content))
    return amounts(cast(Any, node.status.allocatable)).get(resource, 0)
