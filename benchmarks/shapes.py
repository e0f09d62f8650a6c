"""Loads in the shapes of upstream's scheduler_perf templates.

The same shapes, by the same names and with as many pods, as the peer program around kube-scheduler
measures, so that both sides can be run in turn: nodes of 4 cpu and 32Gi, pods of 100m and 500Mi.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
MOON = ("moon-1", "moon-2", "moon-3")
#: Requests more cpu than any node has.
TOO_LARGE = "large-cpu"
#: Preempts less important pods.
PREEMPTING = "high-priority"
#: The node of all pods of a DaemonSet, and pods of a DaemonSet with a node each.
BIG_NODE = "scheduler-perf-node"
ONE_PER_NODE = "daemonset-per-node"
#: Pods of a ReplicaSet of this name and with this label.
WORKLOAD = "workload"
#: The number of less important pods on each node, and of victims for one pod.
LESS_IMPORTANT, VICTIMS_PER_POD = 4, 3
_WITHOUT_LIMITS = (TOO_LARGE, "hostport", "saturation")

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """One load: the cluster and the pods that arrive."""

    name: str
    nodes: int
    template: str
    pods: int
    zones: tuple[str, ...] = ()
    init_pods: int = 0
    init_template: str = "default"
    #: One pod that fits no node arrives before every n-th pod.
    unschedulable_every: int = 0
    #: A further node without a zone that takes many pods.
    big_node: bool = False
    #: Without the default constraints that spread pods of a Service or a workload.
    no_spread: bool = False
    #: Pods that preempt arrive together, and not one after another.
    together: bool = False
    #: Whether kube-scheduler's side has the load, too.
    has_peer: bool = True

    @property
    def preempts(self) -> bool:
        """Whether each pod preempts others."""
        return self.template == PREEMPTING

    def expected_victims(self, bound: int) -> int:
        """The number of victims of the first ``bound`` pods."""
        return bound * VICTIMS_PER_POD if self.preempts else 0

    def expected_bound(self, attempts: int) -> int:
        """The number of the first attempts that must be successful."""
        if self.template == TOO_LARGE:
            return 0
        if not self.unschedulable_every:
            return attempts
        # Each round is one pod that does not fit, and then as many as do.
        return attempts - -(-attempts // (self.unschedulable_every + 1))


def _affinity(template: str, pods: int, init_pods: int, zones: tuple[str, ...] = ()) -> Shape:
    """Pods among placed pods of the same kind, on 5,000 nodes."""
    return Shape(template, 5000, template, pods, zones, init_pods, init_template=template)


def _preemption(nodes: int) -> Shape:
    """As many pods as nodes; the nodes are full of less important pods."""
    init_pods = nodes * LESS_IMPORTANT
    name = f"preemption-{nodes}"
    return Shape(name, nodes, PREEMPTING, nodes, (), init_pods, "low-priority")


SHAPES: tuple[Shape, ...] = (
    Shape("basic-500", 500, "default", 2000),
    Shape("basic-5000", 5000, "default", 10_000),
    Shape("basic-15000", 15_000, "default", 10_000),
    Shape("topology-spreading", 5000, "topology-spreading", 5000, MOON, 5000),
    Shape("preferred-topology-spreading", 5000, "preferred-topology-spreading", 5000, MOON, 5000),
    _affinity("pod-anti-affinity", 2000, 1000),
    _affinity("preferred-pod-anti-affinity", 5000, 5000),
    _affinity("pod-affinity", 5000, 5000, ("zone1",)),
    _affinity("preferred-pod-affinity", 5000, 5000),
    _affinity("node-affinity", 10_000, 5000, ("zone1",)),
    Shape("unschedulable-mixed-1in10", 5000, "default", 5000, unschedulable_every=10),
    Shape("unschedulable-only", 5000, TOO_LARGE, 1000),
    _preemption(1000),
    _preemption(5000),
    replace(_preemption(1000), name="preemption-together", pods=200, together=True, has_peer=False),
    Shape("daemonset", 15_000, "daemonset", 30_000, big_node=True),
    Shape(ONE_PER_NODE, 5000, ONE_PER_NODE, 5000, has_peer=False),
    # Each binding is told as an API server tells it, which gives the pod the zone of its node.
    Shape("workload-5000", 5000, WORKLOAD, 10_000, has_peer=False),
    Shape("workload-zones-5000", 5000, WORKLOAD, 10_000, MOON, has_peer=False),
    # The peer's own reuse of answers is on here, which it cannot be with spread defaults.
    Shape("nospread-batching=true-basic-5000", 5000, "default", 10_000, no_spread=True),
    Shape("nospread-batching=true-hostport-5000", 5000, "hostport", 5000, no_spread=True),
    Shape("nospread-batching=true-saturation-5000", 5000, "saturation", 5000, no_spread=True),
)


def node(index: int, zones: tuple[str, ...]) -> Object:
    name = f"node-{index:05d}"
    labels = {HOST: name}
    if zones:
        labels[ZONE] = zones[index % len(zones)]
    return _node(name, labels, "110")


def big_node() -> Object:
    return _node(BIG_NODE, {HOST: BIG_NODE}, "90000")


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


def replica_set() -> Object:
    """The owner of the pods of a workload."""
    metadata = {"name": WORKLOAD, "namespace": "sched-1", "uid": WORKLOAD}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": WORKLOAD}}}}


def init_pods(shape: Shape) -> Iterator[Object]:
    """Placed pods, one after another on the nodes."""
    for index in range(shape.init_pods):
        pod = make_pod(shape.init_template, f"init-{index:06d}", "sched-0")
        pod["spec"]["nodeName"] = f"node-{index % shape.nodes:05d}"
        yield pod


def pods(shape: Shape) -> Iterator[Object]:
    """The pods that arrive, in order."""
    for index in range(shape.pods):
        if shape.unschedulable_every and index % shape.unschedulable_every == 0:
            yield make_pod(TOO_LARGE, f"big-{index:06d}", "sched-1")
        node_name = f"node-{index:05d}" if shape.template == ONE_PER_NODE else BIG_NODE
        yield make_pod(shape.template, f"pod-{index:06d}", "sched-1", node_name)


def make_pod(template: str, name: str, namespace: str, node_name: str = BIG_NODE) -> Object:
    """``node_name``: the node of a DaemonSet's pod."""
    labels, spec = _template(template, node_name)
    requests = spec.pop("requests", {"cpu": "100m", "memory": "500Mi"})
    container: Object = {"name": "pause", "image": "pause:3.10.2"}
    if requests:
        container["resources"] = {"requests": requests}
        container["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
        if template not in _WITHOUT_LIMITS:
            container["resources"]["limits"] = requests
    container.update(spec.pop("container", {}))
    metadata: Object = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    metadata["labels"] = labels
    if template == WORKLOAD:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": WORKLOAD, "uid": WORKLOAD}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    return {
        "metadata": metadata,
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def _template(name: str, node_name: str) -> tuple[dict[str, str], Object]:
    """(labels, fields of the spec besides its container). ``node_name``: of a DaemonSet's pod."""
    if name == "default":
        return {}, {}
    if name == WORKLOAD:
        return {"app": WORKLOAD}, {}
    if name == TOO_LARGE:
        return {}, {"requests": {"cpu": "9", "memory": "500Mi"}}
    if name == "hostport":
        port = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
        return {}, {"requests": {"cpu": "100m", "memory": "100Mi"}, "container": {"ports": [port]}}
    if name == "saturation":
        return {}, {"requests": {"cpu": "3", "memory": "1Gi"}, "container": {"ports": []}}
    if name == "low-priority":
        requests = {"cpu": "900m", "memory": "500Mi"}
        return {}, {"requests": requests, "terminationGracePeriodSeconds": 0}
    if name == PREEMPTING:
        return {}, {"requests": {"cpu": "3", "memory": "500Mi"}, "priority": 10}
    if name.endswith("topology-spreading"):
        when = "ScheduleAnyway" if name.startswith("preferred") else "DoNotSchedule"
        return {"color": "blue"}, {"topologySpreadConstraints": [_spread("blue", when)]}
    if name == "node-affinity":
        zones = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
        return {}, _node_affinity({"matchExpressions": [zones]})
    if name in ("daemonset", ONE_PER_NODE):
        field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
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
