"""Clusters and workloads for counting how many pods of a workload fit.

Each drawn cluster has a few nodes and pods, and nothing of another cluster. A drawn workload has
requests, and what one or two families add: selectors, tolerations, affinity, spreading, host ports,
extended resources, volumes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bayplan.rng import Stream, stream
from tests.kit.manifests import api_object
from tests.live.mirror import Object

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU = "example.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APP = {"app": "counted"}
DRIVER = "disk.example"
_STORAGE = "storage.k8s.io/v1"


@dataclass
class Case:
    """A cluster and the workload whose fitting pods are counted."""

    name: str
    #: In the order of creation.
    objects: list[Object] = field(default_factory=list[Object])
    workload: Object = field(default_factory=dict[str, Any])
    families: list[str] = field(default_factory=list[str])

    @property
    def nodes(self) -> list[Object]:
        return [each for each in self.objects if each["kind"] == "Node"]

    @property
    def template(self) -> Object:
        return self.workload["spec"]["template"]

    @property
    def pod_spec(self) -> Object:
        return self.template["spec"]

    def pod(self, number: int, uid: str) -> tuple[list[Object], Object]:
        """(claims, pod) as the workload's controller creates them; ``uid``: the workload's."""
        kind, name = self.workload["kind"], self.workload["metadata"]["name"]
        spec = {**self.pod_spec}
        labels = dict(self.template["metadata"]["labels"])
        pod_name = f"{name}-{number}"
        claims: list[Object] = []
        if kind == "StatefulSet":
            labels["statefulset.kubernetes.io/pod-name"] = pod_name
            labels["apps.kubernetes.io/pod-index"] = str(number)
            volumes = [*spec.get("volumes", ())]
            for claim in self.workload["spec"]["volumeClaimTemplates"]:
                own = f"{claim['metadata']['name']}-{pod_name}"
                claims.append(
                    api_object("v1 PersistentVolumeClaim", own, "default", spec=claim["spec"])
                )
                source = {"claimName": own}
                volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": source})
            spec["volumes"] = volumes
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid}
        created = api_object("v1 Pod", pod_name, "default", spec=spec)
        created["metadata"] |= {
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        return claims, created


def drawn_case(number: int, seed: str) -> Case:
    """The cluster and the workload that are drawn for a number."""
    random = stream(number, seed)
    case = Case(f"c{number}")
    zones = ["a", "b", "c"][: random.randint(2, 3)]
    for index in range(random.randint(3, 7)):
        case.objects.append(_node(random, f"{case.name}-n{index}", random.choice(zones)))
    for index in range(random.randint(1, 6)):
        case.objects.append(_running(random, case, index))
    cpu = random.choice(["600m", "850m", "1", "1300m", "2"])
    requests = {"cpu": cpu, "memory": f"{random.randint(500, 3000)}Mi"}
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    case.workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "counted", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": APP},
            "template": {"metadata": {"labels": APP}, "spec": {"containers": [container]}},
        },
    }
    # The first family rotates; half of the cases have a second family.
    first = FAMILIES[number % len(FAMILIES)]
    families = [first]
    if first is not _equal_nodes and random.random() < 0.5:
        families.append(random.choice([each for each in FAMILIES[:-1] if each is not first]))
    for family in families:
        family(random, case)
        case.families.append(family.__name__.strip("_"))
    return case


# ---- families -----------------------------------------------------------------------------------


def _requests(random: Stream, case: Case) -> None:
    """Each pod also requests a little ephemeral storage."""
    _container(case)["resources"]["requests"]["ephemeral-storage"] = f"{random.randint(1, 3)}Gi"


def _extended(random: Stream, case: Case) -> None:
    count = str(random.randint(1, 2))
    resources = _container(case)["resources"]
    resources["requests"][GPU] = count
    resources["limits"] = {GPU: count}


def _selector(random: Stream, case: Case) -> None:
    case.pod_spec["nodeSelector"] = {"disk": random.choice(["ssd", "hdd"])}


def _node_affinity(random: Stream, case: Case) -> None:
    expressions = [
        {"key": ZONE, "operator": "NotIn", "values": ["b"]},
        {"key": "generation", "operator": "Gt", "values": ["1"]},
        {"key": "disk", "operator": "In", "values": ["ssd"]},
    ]
    terms = [{"matchExpressions": [each]} for each in random.sample(expressions, 2)]
    node_affinity = {REQUIRED: {"nodeSelectorTerms": terms}}
    case.pod_spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity


def _tolerations(random: Stream, case: Case) -> None:
    """More nodes have a taint; some pods tolerate it."""
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    for node in random.sample(case.nodes, 2):
        node["spec"]["taints"] = [taint]
    if random.random() < 0.6:
        toleration = {"key": "dedicated", "operator": "Equal", "value": "x"}
        case.pod_spec["tolerations"] = [toleration]


def _host_port(random: Stream, case: Case) -> None:
    port = {"containerPort": 80, "hostPort": random.choice([8080, 9090])}
    _container(case)["ports"] = [port]


def _anti_affinity(random: Stream, case: Case) -> None:
    """Anti-affinity between the pods, and to existing pods."""
    key = random.choice([HOST, HOST, ZONE])
    terms = [_term("counted", key)] if random.random() < 0.7 else [_term("web", HOST)]
    case.pod_spec.setdefault("affinity", {})["podAntiAffinity"] = {REQUIRED: terms}


def _affinity(random: Stream, case: Case) -> None:
    """Affinity to existing pods, or between the pods."""
    term = _term(random.choice(["web", "db", "counted"]), random.choice([HOST, ZONE]))
    case.pod_spec.setdefault("affinity", {})["podAffinity"] = {REQUIRED: [term]}


def _spreading(random: Stream, case: Case) -> None:
    constraint = {
        "maxSkew": random.randint(1, 2),
        "topologyKey": random.choice([ZONE, ZONE, HOST]),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": APP},
        "nodeTaintsPolicy": random.choice(["Honor", "Ignore"]),
    }
    if constraint["topologyKey"] == ZONE and random.random() < 0.3:
        constraint["minDomains"] = 3
    case.pod_spec["topologySpreadConstraints"] = [constraint]


def _attach_limits(random: Stream, case: Case) -> None:
    """Each pod has a provisioned volume, and nodes attach only a few volumes."""
    _stateful(case, "late")
    for node in case.nodes:
        name = node["metadata"]["name"]
        count = {"count": random.randint(1, 3)}
        driver = {"name": DRIVER, "nodeID": name, "allocatable": count}
        case.objects.append(api_object(f"{_STORAGE} CSINode", name, spec={"drivers": [driver]}))


def _local_volumes(random: Stream, case: Case) -> None:
    """Each pod uses one of the existing volumes."""
    _stateful(case, "local")
    for node in case.nodes:
        host = {"key": HOST, "operator": "In", "values": [node["metadata"]["name"]]}
        for number in range(random.randint(0, 2)):
            name = f"{node['metadata']['name']}-{number}"
            spec = _volume(host) | {"local": {"path": f"/mnt/{number}"}}
            spec["storageClassName"] = "local"
            case.objects.append(api_object("v1 PersistentVolume", name, spec=spec))


def _shared_volume(random: Stream, case: Case) -> None:
    """All pods use one volume, which only one zone reaches or only one pod at a time may use."""
    mode = random.choice(["ReadWriteMany", "ReadWriteMany", "ReadWriteOncePod"])
    zone = random.choice(sorted({node["metadata"]["labels"][ZONE] for node in case.nodes}))
    reach = {"key": ZONE, "operator": "In", "values": [zone]}
    name = f"{case.name}-shared"
    spec = _volume(reach, mode) | {
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "claimRef": {"apiVersion": "v1", "namespace": "default", "name": name},
    }
    claim = api_object("v1 PersistentVolumeClaim", name, "default")
    claim["spec"] = {**_claim_spec(""), "accessModes": [mode], "volumeName": name}
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    case.objects += [api_object("v1 PersistentVolume", name, spec=spec), claim]
    source = {"name": "shared", "persistentVolumeClaim": {"claimName": name}}
    case.pod_spec.setdefault("volumes", []).append(source)


def _equal_nodes(random: Stream, case: Case) -> None:
    """Pods want their own kind in their zone, and all nodes are equal: which zone gets the first
    pod is drawn, and the zones have different numbers of nodes."""
    case.objects = case.nodes
    for index, node in enumerate(case.nodes):
        node["metadata"]["labels"] |= {ZONE: "a" if index else "b", "disk": "ssd"}
        node["spec"] = {}
        node["status"] = case.nodes[0]["status"]
    terms = [_term("counted", ZONE)]
    case.pod_spec.setdefault("affinity", {})["podAffinity"] = {REQUIRED: terms}


FAMILIES: list[Callable[[Stream, Case], None]] = [
    _requests, _extended, _selector, _node_affinity, _tolerations, _host_port, _anti_affinity,
    _affinity, _spreading, _attach_limits, _local_volumes, _shared_volume, _equal_nodes,
]  # fmt: skip


# ---- objects ------------------------------------------------------------------------------------


def storage_classes() -> list[Object]:
    """The storage classes that drawn workloads use."""
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    return [
        api_object(f"{_STORAGE} StorageClass", "late", provisioner=DRIVER, **late),
        api_object(
            f"{_STORAGE} StorageClass",
            "local",
            "",
            provisioner="kubernetes.io/no-provisioner",
            **late,
        ),
    ]


def _node(random: Stream, name: str, zone: str) -> Object:
    offered = {
        "cpu": str(random.randint(4, 8)),
        "memory": f"{random.randint(8, 24)}Gi",
        "ephemeral-storage": "10Gi",
        "pods": str(random.choice([6, 110])),
        GPU: str(random.randint(0, 4)),
    }
    labels = {
        HOST: name,
        ZONE: zone,
        "disk": random.choice(["ssd", "hdd"]),
        "generation": str(random.randint(1, 3)),
    }
    spec: Object = {}
    if random.random() < 0.2:
        effect = random.choice(["NoSchedule", "PreferNoSchedule"])
        spec = {"taints": [{"key": "dedicated", "value": "x", "effect": effect}]}
    node = api_object("v1 Node", name, spec=spec)
    node["metadata"]["labels"] = labels
    return node | {"status": {"allocatable": offered, "capacity": offered}}


def _running(random: Stream, case: Case, index: int) -> Object:
    requests = {"cpu": f"{random.randint(1, 9)}00m", "memory": f"{random.randint(1, 20)}00Mi"}
    container: Object = {"name": "c", "image": "x", "resources": {"requests": requests}}
    if random.random() < 0.3:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    pod = api_object(
        "v1 Pod", f"{case.name}-running-{index}", "default", spec={"containers": [container]}
    )
    pod["metadata"]["labels"] = {"app": random.choice(["web", "db"])}
    pod["spec"]["nodeName"] = random.choice(case.nodes)["metadata"]["name"]
    if random.random() < 0.1:
        pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term("counted", HOST)]}}
    return pod


def _stateful(case: Case, storage_class: str) -> None:
    claim = {"metadata": {"name": "data"}, "spec": _claim_spec(storage_class)}
    case.workload["kind"] = "StatefulSet"
    spec = case.workload["spec"]
    spec["serviceName"] = "counted"
    spec.setdefault("volumeClaimTemplates", []).append(claim)
    if len(spec["volumeClaimTemplates"]) > 1:
        claim["metadata"]["name"] = "more"


def _claim_spec(storage_class: str) -> Object:
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }


def _volume(expression: Object, mode: str = "ReadWriteOnce") -> Object:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "nodeAffinity": {"required": terms},
    }


def _container(case: Case) -> Object:
    return case.pod_spec["containers"][0]


def _term(app: str, key: str) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
