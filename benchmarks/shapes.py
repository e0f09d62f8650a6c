"""Loads in the shapes of upstream's scheduler_perf templates.

The same shapes, by the same names, as the peer program around kube-scheduler measures, so that
both sides can be run in turn: nodes of 4 cpu and 32Gi, plain pods of 100m and 500Mi.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
MOON = ("moon-1", "moon-2", "moon-3")

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """One load: what is there, and which pods come."""

    name: str
    nodes: int
    template: str
    zones: tuple[str, ...] = ()
    init_pods: int = 0
    init_template: str = "default"
    #: A pod that asks for more cpu than any node has comes before every n-th pod.
    unschedulable_every: int = 0
    #: A further node without a zone that takes many pods.
    big_node: bool = False
    #: How many times kube-scheduler's better figure is wanted; None: no target.
    wanted_ratio: float | None = None


SHAPES: tuple[Shape, ...] = (
    Shape("basic-500", 500, "default", wanted_ratio=4),
    Shape("basic-5000", 5000, "default", wanted_ratio=4),
    Shape("basic-15000", 15000, "default", wanted_ratio=4),
    Shape(
        "topology-spreading",
        5000,
        "topology-spreading",
        zones=MOON,
        init_pods=5000,
        wanted_ratio=3,
    ),
    Shape(
        "preferred-topology-spreading",
        5000,
        "preferred-topology-spreading",
        zones=MOON,
        init_pods=5000,
        wanted_ratio=3,
    ),
    Shape(
        "pod-anti-affinity",
        5000,
        "pod-anti-affinity",
        init_pods=1000,
        init_template="pod-anti-affinity",
        wanted_ratio=3,
    ),
    Shape(
        "preferred-pod-anti-affinity",
        5000,
        "preferred-pod-anti-affinity",
        init_pods=5000,
        init_template="preferred-pod-anti-affinity",
        wanted_ratio=3,
    ),
    Shape(
        "pod-affinity",
        5000,
        "pod-affinity",
        zones=("zone1",),
        init_pods=5000,
        init_template="pod-affinity",
        wanted_ratio=3,
    ),
    Shape(
        "preferred-pod-affinity",
        5000,
        "preferred-pod-affinity",
        init_pods=5000,
        init_template="preferred-pod-affinity",
        wanted_ratio=3,
    ),
    Shape(
        "node-affinity",
        5000,
        "node-affinity",
        zones=("zone1",),
        init_pods=5000,
        init_template="node-affinity",
        wanted_ratio=4,
    ),
    Shape("unschedulable-mixed-1in10", 5000, "default", unschedulable_every=10),
    Shape("unschedulable-only", 5000, "large-cpu"),
    Shape("daemonset", 15000, "daemonset", big_node=True),
)


def node(index: int, zones: tuple[str, ...]) -> Object:
    name = f"node-{index:05d}"
    labels = {HOST: name}
    if zones:
        labels[ZONE] = zones[index % len(zones)]
    return _node(name, labels, "110")


def big_node() -> Object:
    return _node("scheduler-perf-node", {HOST: "scheduler-perf-node"}, "90000")


def _node(name: str, labels: dict[str, str], pods: str) -> Object:
    amounts = {"cpu": "4", "memory": "32Gi", "pods": pods}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(shape: Shape) -> Iterator[Object]:
    for index in range(shape.nodes):
        yield node(index, shape.zones)
    if shape.big_node:
        yield big_node()


def init_pods(shape: Shape) -> Iterator[Object]:
    """Pods that are there already, one after another on the nodes."""
    for index in range(shape.init_pods):
        pod = make_pod(shape.init_template, f"init-{index:06d}", "sched-0")
        pod["spec"]["nodeName"] = f"node-{index % shape.nodes:05d}"
        yield pod


def pods(shape: Shape, count: int) -> Iterator[Object]:
    """The pods that come."""
    for index in range(count):
        if shape.unschedulable_every and index % shape.unschedulable_every == 0:
            yield make_pod("large-cpu", f"big-{index:06d}", "sched-1")
        yield make_pod(shape.template, f"pod-{index:06d}", "sched-1")


def make_pod(template: str, name: str, namespace: str) -> Object:
    labels, spec = _template(template)
    requests = spec.pop("requests", {"cpu": "100m", "memory": "500Mi"})
    container: Object = {"name": "pause", "image": "pause:3.10.2"}
    if requests:
        container["resources"] = {"requests": requests}
        container["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": labels,
        },
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def _template(name: str) -> tuple[dict[str, str], Object]:
    """(labels, what the spec has besides its container)."""
    if name == "default":
        return {}, {}
    if name == "large-cpu":
        return {}, {"requests": {"cpu": "9", "memory": "500Mi"}}
    if name.endswith("topology-spreading"):
        when = "ScheduleAnyway" if name.startswith("preferred") else "DoNotSchedule"
        return {"color": "blue"}, {"topologySpreadConstraints": [_spread("blue", when)]}
    if name == "node-affinity":
        zones = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
        return {}, _node_affinity({"matchExpressions": [zones]})
    if name == "daemonset":
        field = {"key": "metadata.name", "operator": "In", "values": ["scheduler-perf-node"]}
        return {}, {"requests": {}, **_node_affinity({"matchFields": [field]})}
    return _pod_affinity(name)


def _spread(color: str, when: str) -> Object:
    return {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": color}},
    }


def _node_affinity(term: Object) -> Object:
    required = {"nodeSelectorTerms": [term]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": rule}}


_AFFINITIES = {
    "pod-anti-affinity": ("podAntiAffinity", "green", HOST),
    "preferred-pod-anti-affinity": ("podAntiAffinity", "yellow", HOST),
    "pod-affinity": ("podAffinity", "blue", ZONE),
    "preferred-pod-affinity": ("podAffinity", "red", HOST),
}


def _pod_affinity(name: str) -> tuple[dict[str, str], Object]:
    kind, color, key = _AFFINITIES[name]
    term: Object = {
        "topologyKey": key,
        "labelSelector": {"matchLabels": {"color": color}},
        "namespaces": ["sched-1", "sched-0"],
    }
    if name.startswith("preferred"):
        weighted = [{"weight": 1, "podAffinityTerm": term}]
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    else:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"color": color}, {"affinity": {kind: rule}}
