"""Workloads of which not all pods fit, drawn over controllers, and the cluster that they do not fit
into.

The cluster has four nodes: one is tainted, each has the pod of a DaemonSet, and a Deployment with a
budget, a StatefulSet and a Job take most of the room. A drawn workload has one reason to wait.
"""

from collections.abc import Callable

from bayplan.rng import Stream
from tests.kit.manifests import api_object
from tests.live.mirror import Object

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController")


def surroundings() -> list[Object]:
    """The cluster and its other workloads."""
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    tolerations = [{"operator": "Exists"}]
    logs = workload("DaemonSet", "logs", "200m", spec={"tolerations": tolerations})
    del logs["spec"]["replicas"]
    late = {"provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer"}
    return [
        *(_node(name, zone) for name, zone in _NODES.items()),
        api_object("storage.k8s.io/v1 StorageClass", "late", **late),
        api_object("policy/v1 PodDisruptionBudget", "web", "default", spec=budget),
        logs,
        workload("Deployment", "web", "900m", replicas=3),
        workload("StatefulSet", "db", "400m", replicas=2),
        workload("Job", "batch", "400m", replicas=2),
    ]


def drawn_workload(random: Stream, name: str) -> tuple[Object, Object | None]:
    """(the workload, a change of its template that starts a rollout, or None)."""
    family = random.choice(_FAMILIES)
    kind = random.choice(_KINDS)
    made = workload(kind, name, "100m", replicas=random.randint(2, 5))
    return family(random, made)


def pod_count(made: Object) -> int:
    """How many pods the workload is to have at one time."""
    if made["kind"] == "DaemonSet":
        return len(_NODES) - 1  # one is tainted
    spec = made["spec"]
    count = spec.get("replicas", spec.get("parallelism", 1))
    assert isinstance(count, int)
    return count


# ---- families -----------------------------------------------------------------------------------


Drawn = tuple[Object, Object | None]


def _spec(made: Object) -> Object:
    return made["spec"]["template"]["spec"]


def _requests(made: Object) -> dict[str, str]:
    return _spec(made)["containers"][0]["resources"]["requests"]


def _impossible(random: Stream, made: Object) -> Drawn:
    _requests(made)["cpu"] = str(random.randint(5, 9))
    return made, None


def _no_room(random: Stream, made: Object) -> Drawn:
    _requests(made)["cpu"] = f"{random.randint(13, 22)}00m"
    return made, None


def _typing_error(random: Stream, made: Object) -> Drawn:
    _spec(made)["nodeSelector"] = {"disktype": random.choice(("ssdd", "nvem", "sdd"))}
    return made, None


def _wrong_term(random: Stream, made: Object) -> Drawn:
    expression = {"key": "disktype", "operator": "In", "values": ["tape"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    _spec(made)["affinity"] = {"nodeAffinity": {REQUIRED: terms}}
    return made, None


def _spread(random: Stream, made: Object) -> Drawn:
    """The tainted node counts as a domain without pods."""
    _spec(made)["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": made["metadata"]["name"]}},
        }
    ]
    _resize(made, random.randint(4, 6))
    return made, None


def _domains(random: Stream, made: Object) -> Drawn:
    _spread(random, made)
    (constraint,) = _spec(made)["topologySpreadConstraints"]
    constraint |= {"topologyKey": ZONE, "minDomains": random.randint(3, 5)}
    return made, None


def _alone(random: Stream, made: Object) -> Drawn:
    labels = {"matchLabels": {"app": made["metadata"]["name"]}}
    rule = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": labels}]}}
    _spec(made)["affinity"] = rule
    _resize(made, random.randint(4, 5))
    return made, None


def _port(random: Stream, made: Object) -> Drawn:
    _spec(made)["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    _resize(made, random.randint(4, 5))
    return made, None


def _tainted(random: Stream, made: Object) -> Drawn:
    _spec(made)["nodeSelector"] = {"disktype": "tape" if random.random() < 0.3 else "dedicated"}
    return made, None


def _rollout(random: Stream, made: Object) -> Drawn:
    """Old and new pods have no room beside each other."""
    name = made["metadata"]["name"]
    deployment, _ = _alone(random, workload("Deployment", name, "100m", replicas=3))
    _resize(deployment, 3)
    return deployment, {"spec": {"template": {"metadata": {"labels": {"revision": "2"}}}}}


def _volume(random: Stream, made: Object) -> Drawn:
    """Claims of a class that does not exist."""
    made = workload("StatefulSet", made["metadata"]["name"], "100m", replicas=random.randint(1, 3))
    requests = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": requests, "storageClassName": "fast"}
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return made, None


def _daemons(random: Stream, made: Object) -> Drawn:
    """Nodes that are too full for a pod of their own."""
    cpu = f"{random.randint(5, 8)}00m" if random.random() < 0.6 else "3"
    made = workload("DaemonSet", made["metadata"]["name"], cpu)
    del made["spec"]["replicas"]
    return made, None


_FAMILIES: tuple[Callable[[Stream, Object], Drawn], ...] = (
    _impossible, _no_room, _no_room, _typing_error, _wrong_term, _spread, _spread, _domains, _alone,
    _port, _tainted, _rollout, _volume, _daemons,
)  # fmt: skip


def _resize(made: Object, count: int) -> None:
    spec = made["spec"]
    for field in ("replicas", "parallelism", "completions"):
        if field in spec:
            spec[field] = count


# ---- objects ------------------------------------------------------------------------------------


def workload(
    kind: str, name: str, cpu: str, *, replicas: int = 1, spec: Object | None = None
) -> Object:
    """A workload of one of the controllers."""
    labels = {"app": name}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    inner: Object = {"containers": [container], "terminationGracePeriodSeconds": 0, **(spec or {})}
    outer: Object = {"template": {"metadata": {"labels": labels}, "spec": inner}}
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    if kind == "Job":
        inner["restartPolicy"] = "Never"
        outer |= {"parallelism": replicas, "completions": replicas}
    else:
        selector = labels if version == "v1" else {"matchLabels": labels}
        outer |= {"replicas": replicas, "selector": selector}
    if kind == "StatefulSet":
        outer["serviceName"] = name
    return api_object(f"{version} {kind}", name, "default", spec=outer)


def _node(name: str, zone: str) -> Object:
    disk = {"n1": "ssd", "n2": "ssd", "n3": "nvme", "n4": "dedicated"}[name]
    offered = {"cpu": "2", "memory": "8Gi", "pods": "20"}
    taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if name == "n4" else []
    status = {"allocatable": offered, "capacity": offered}
    made = api_object("v1 Node", name, spec={"taints": taints}, status=status)
    made["metadata"]["labels"] = {HOST: name, ZONE: zone, "disktype": disk}
    return made
