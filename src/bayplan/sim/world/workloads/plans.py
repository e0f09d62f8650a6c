"""What a workload controller does next: a function of the controller, its pods and the nodes.

Each plan is one pass of the controller of kube-controller-manager over one object. A plan may leave
work for a later pass.

Some points differ from upstream. Rollouts of DaemonSets are not simulated: pods are not replaced
because a template has changed. ``minReadySeconds`` counts as 0. A pod that has run for its whole
duration (`DURATION_ANNOTATION`) is finished: its controller does not replace it. The pods of a
missing node are left to pod garbage collection.

Upstream: pkg/controller/{replicaset,replication,daemon}.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, final

from msgspec import Struct, field

from bayplan.api.objects import DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER
from bayplan.clock import epoch_of
from bayplan.durations import DURATION_ANNOTATION
from bayplan.objects.keys import Content, ObjectKey, key_of, kind_of
from bayplan.objects.workloads import DELETION_COST_ANNOTATION
from bayplan.sim.input.controller_pods import (
    DaemonTemplate,
    is_active,
    is_running,
    pod_for_node,
    pod_from,
    replica_count,
    target_node,
)
from bayplan.sim.input.workload import has_ended

# ---- the pods of a controller ---------------------------------------------------------------


@final
class OwnedPods:
    """The pods of one controller by their state, each by its uid."""

    def __init__(self, pods: Iterable[Content] = ()) -> None:
        #: Pods that have not ended and are not terminating.
        self.active: dict[str, Content] = {}
        self.terminating: dict[str, Content] = {}
        #: Pods that have ended and still exist.
        self.ended: dict[str, Content] = {}
        #: Pods whose running time has passed. They may be gone.
        self.finished: dict[str, Content] = {}
        for pod in pods:
            self.put(pod)

    def put(self, pod: Content) -> None:
        """Add a pod, or note its new state."""
        uid = pod["metadata"]["uid"]
        if is_active(pod):
            self.active[uid] = pod
            return
        self.active.pop(uid, None)
        self.terminating.pop(uid, None)
        if not has_ended(pod):
            self.terminating[uid] = pod
        elif is_finished(pod):
            self.finished[uid] = pod
        else:
            self.ended[uid] = pod

    def remove(self, uid: str) -> None:
        """Note that a pod is gone. A finished pod stays finished."""
        for pods in (self.active, self.terminating, self.ended):
            pods.pop(uid, None)

    def existing(self) -> Iterator[Content]:
        """The pods that are not finished."""
        for pods in (self.active, self.terminating, self.ended):
            yield from pods.values()


def is_finished(pod: Content) -> bool:
    """Whether a pod has run for its whole duration."""
    if (pod.get("status") or {}).get("phase") != "Succeeded":
        return False
    return DURATION_ANNOTATION in (pod["metadata"].get("annotations") or {})


def restart_count(pod: Content) -> int:
    """How often the containers of a pod were started again, of the one with the most."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((one.get("restartCount") or 0 for one in statuses), default=0)


class Surroundings(Struct, frozen=True):
    """What a controller sees besides its pods."""

    #: Seconds since 1970.
    now_seconds: float
    exists: Callable[[ObjectKey], bool]
    #: (namespace, name) → whether a pod has, or had, this name.
    was_named: Callable[[str, str], bool]
    #: Names for new pods of a controller, which no pod has or had.
    names: Callable[[Content], Iterator[str]]
    #: The nodes for which a DaemonSet is to be brought up to date.
    nodes: Sequence[Content] = ()
    #: The template of a StatefulSet before it was changed; None: it was not changed.
    old_template: Content | None = None
    #: How often the containers of a pod were started again, of the one with the most.
    restart_count: Callable[[Content], int] = restart_count


class Plan(Struct):
    """What a controller does in one pass, in this order: patches, deletions, creations."""

    create: list[Content] = field(default_factory=list[Content])
    delete: list[ObjectKey] = field(default_factory=list[ObjectKey])
    patches: list[tuple[ObjectKey, Content]] = field(
        default_factory=list[tuple[ObjectKey, Content]]
    )
    #: Whether the controller goes on when one of its pods runs.
    waits_for_pod: bool = False
    #: When the controller continues at the latest, in seconds since 1970; None: when something
    #: happens.
    next_seconds: float | None = None


def plan_of(controller: Content, pods: OwnedPods, surroundings: Surroundings) -> Plan:
    """The next pass of a controller of pods. Jobs, StatefulSets and Deployments have plans of their
    own: `job_plan`, `stateful_set_plan`, `deployment_plan`."""
    kind = kind_of(controller)
    if controller["metadata"].get("deletionTimestamp"):
        return Plan()
    if kind in (REPLICA_SET, REPLICATION_CONTROLLER):
        return _replicas(controller, pods, surroundings)
    assert kind == DAEMON_SET, kind
    return _daemons(controller, pods, surroundings)


def amount_of(value: Any, replicas: int, *, default: int | str, rounds_up: bool = False) -> int:
    """A number of pods in the spec of a controller: a number, or a percentage of its replicas.

    Any other value counts as the default. Upstream: apimachinery pkg/util/intstr
    (GetScaledValueFromIntOrPercent).
    """
    text = str(value)
    if text.isdecimal():
        return int(text)
    percent = text.removesuffix("%")
    if text == percent or not percent.isdecimal():
        return amount_of(default, replicas, default=0, rounds_up=rounds_up)
    hundredths = replicas * int(percent)
    return -(-hundredths // 100) if rounds_up else hundredths // 100


# ---- ReplicaSets and ReplicationControllers -------------------------------------------------


def _replicas(controller: Content, pods: OwnedPods, surroundings: Surroundings) -> Plan:
    """Upstream: replicaset/replica_set.go (manageReplicas)."""
    replicas, active = replica_count(controller), list(pods.active.values())
    if len(active) > replicas:
        removed = first_to_go(
            active, len(active) - replicas, surroundings.now_seconds, surroundings.restart_count
        )
        return Plan(delete=list(map(key_of, removed)))
    missing = replicas - len(active) - len(pods.finished)
    names = surroundings.names(controller)
    return Plan(create=[pod_from(controller, next(names)) for _ in range(missing)])


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(
    pods: Sequence[Content],
    count: int,
    now_seconds: float,
    restarts: Callable[[Content], int] = restart_count,
) -> list[Content]:
    """The pods that a ReplicaSet deletes if it gets smaller by ``count``. ``now_seconds``: seconds
    since 1970.

    Upstream: controller_utils.go (ActivePodsWithRanks). Ages count in powers of two; the uid
    decides between pods of one age. Where the first criteria decide, the others are not computed.
    """
    on_node = Counter((pod.get("spec") or {}).get("nodeName", "") for pod in pods)
    equal: dict[tuple[bool, int, bool, int, int], list[Content]] = {}
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName", "")
        phase = _PHASES.get((pod.get("status") or {}).get("phase") or "", 0)
        first = (bool(node), phase, is_running(pod), _deletion_cost(pod), -on_node[node])
        equal.setdefault(first, []).append(pod)

    def rank(pod: Content) -> tuple[object, ...]:
        return (
            _age_power(_ready_since(pod), now_seconds),
            -restarts(pod),
            _age_power(creation_seconds(pod), now_seconds),
            pod["metadata"]["uid"],
        )

    removed: list[Content] = []
    for first in sorted(equal):
        if len(removed) >= count:
            break
        removed += sorted(equal[first], key=rank)
    return removed[:count]


def ranked_for_removal(pods: Iterable[Content]) -> list[Content]:
    """The pods in the order in which a Job removes them. Upstream: ActivePods."""

    def rank(pod: Content) -> tuple[object, ...]:
        return (
            bool((pod.get("spec") or {}).get("nodeName")),
            _PHASES.get((pod.get("status") or {}).get("phase") or "", 0),
            is_running(pod),
            -_ready_since(pod),
            -restart_count(pod),
            -creation_seconds(pod),
        )

    return sorted(pods, key=rank)


def _deletion_cost(pod: Content) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST_ANNOTATION, 0))
    except ValueError:
        return 0


def _ready_since(pod: Content) -> float:
    """When a pod became ready, in seconds since 1970. Nothing reports readiness here, so a running
    pod counts as ready since its start."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return _seconds(condition.get("lastTransitionTime"))
    return _seconds(status.get("startTime")) if is_running(pod) else math.inf


def creation_seconds(content: Content) -> float:
    """When an object was created, in seconds since 1970; infinity: at an unknown time."""
    return _seconds(content["metadata"].get("creationTimestamp"))


def _seconds(stamp: str | None) -> float:
    """A time stamp in seconds since 1970. A missing one counts as later than all others."""
    seconds = epoch_of(stamp)
    return math.inf if seconds is None else seconds


def _age_power(since_seconds: float, now_seconds: float) -> int:
    """The power of two of an age in nanoseconds. Upstream: logarithmicRankDiff."""
    nanoseconds = (now_seconds - since_seconds) * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


# ---- DaemonSets -----------------------------------------------------------------------------


def _daemons(controller: Content, pods: OwnedPods, surroundings: Surroundings) -> Plan:
    """The plan for a DaemonSet: one pod for each node for which it is meant.

    Upstream: daemon/daemon_controller.go (podsShouldBeOnNode, getUnscheduledPodsWithoutNode).
    """
    by_node: dict[str, list[Content]] = {}
    for pod in pods.existing():
        by_node.setdefault(target_node(pod) or "", []).append(pod)
    finished = {target_node(pod) for pod in pods.finished.values()}
    template, names = DaemonTemplate(controller), surroundings.names(controller)
    plan = Plan()
    for node in surroundings.nodes:
        name: str = node["metadata"]["name"]
        there = by_node.pop(name, [])
        if not template.may_stay(node):
            plan.delete += [key_of(pod) for pod in there if not _is_leaving(pod)]
        elif there:
            plan.delete += [key_of(pod) for pod in there if _is_done(pod)]
            running = [pod for pod in there if is_active(pod)]
            plan.delete += [key_of(pod) for pod in sorted(running, key=_seniority)[1:]]
        elif name not in finished and template.is_meant_for(node):
            plan.create.append(pod_for_node(controller, next(names), name))
    for there in by_node.values():
        plan.delete += [key_of(pod) for pod in there if _lost_its_node(pod, surroundings)]
    return plan


def _is_leaving(pod: Content) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _is_done(pod: Content) -> bool:
    return has_ended(pod) and not _is_leaving(pod)


def _seniority(pod: Content) -> tuple[object, ...]:
    """The sort key: pods on their node come first, then older pods."""
    return (not pod["spec"].get("nodeName"), creation_seconds(pod), pod["metadata"]["name"])


def _lost_its_node(pod: Content, surroundings: Surroundings) -> bool:
    """Whether a pending pod is meant for a node that does not exist."""
    if pod["spec"].get("nodeName") or _is_leaving(pod):
        return False
    node = target_node(pod)
    return node is not None and not surroundings.exists(ObjectKey("v1 Node", "", node))
