"""Pods that fit nowhere, drawn over the default plugins, and the cluster that they do not fit into.

`CLUSTER` has four usable nodes in two zones, each with one free core, a tainted one, and a cordoned
one. A drawn pod has one family's reason not to fit, or the reasons of two families at once.
"""

from collections.abc import Callable
from typing import Any

from bayplan.rng import Stream
from tests.kit.manifests import api_object
from tests.live.mirror import Object

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU = "example.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "c", "n6": "c"}
_USABLE = ("n1", "n2", "n3", "n4")
_STORAGE = "storage.k8s.io/v1"
_DEVICES = "resource.k8s.io/v1"
_CORE = "v1"


def base_objects() -> list[Object]:
    """All objects except the drawn pods."""
    objects = [_node(name, zone) for name, zone in NODES.items()]
    late = {"provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer"}
    objects += [
        api_object(f"{_STORAGE} StorageClass", "late", **late),
        api_object(f"{_DEVICES} DeviceClass", "rare", spec={}),
        api_object("v1 PersistentVolume", "far", spec=_volume("far", zone="c")),
        _bound_claim("far"),
        api_object("v1 PersistentVolume", "only", spec=_volume("only", mode="ReadWriteOncePod")),
        _bound_claim("only", mode="ReadWriteOncePod"),
    ]
    for name in _USABLE:
        limits = {"cpu": "3", "memory": "5Gi", GPU: "1", "ephemeral-storage": "5Gi"}
        port = {"containerPort": 8080, "hostPort": 8080}
        hates = {"podAntiAffinity": {REQUIRED: [_term("hated")]}}
        filler = _pod(f"filler-{name}", limits, labels={"app": "web"}, affinity=hates)
        filler["spec"]["containers"][0]["ports"] = [port]
        filler["spec"]["nodeName"] = name
        objects.append(filler)
    for number in range(3):
        spread = _pod(f"spread-{number}", {"cpu": "1m"}, labels={"app": "spread"})
        spread["spec"]["nodeName"] = "n1"
        objects.append(spread)
    user = _pod("user-of-only", {"cpu": "1m"}, volumes=[_claim_volume("only")])
    user["spec"]["nodeName"] = "n2"
    return [*objects, user]


def drawn(random: Stream, name: str) -> list[Object]:
    """The objects that a drawn pod needs, and last the pod, which fits nowhere."""
    pod = _pod(name, {"cpu": "100m"})
    count = 2 if random.random() < 0.3 else 1
    objects: list[Object] = []
    for family in random.sample(FAMILIES, count):
        objects += family(random, pod) or []
    return [*objects, pod]


# ---- families -----------------------------------------------------------------------------------


def _requests(pod: Object) -> dict[str, str]:
    return pod["spec"]["containers"][0]["resources"]["requests"]


def _cpu(random: Stream, pod: Object) -> None:
    _requests(pod)["cpu"] = f"{random.randint(1001, 16000)}m"


def _memory(random: Stream, pod: Object) -> None:
    _requests(pod)["memory"] = f"{random.randint(4000, 64000)}Mi"


def _gpus(random: Stream, pod: Object) -> None:
    count = str(random.randint(2, 6))
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"][GPU] = count
    resources["limits"] = {GPU: count}


def _disk(random: Stream, pod: Object) -> None:
    _requests(pod)["ephemeral-storage"] = f"{random.randint(6, 60)}Gi"


def _several(random: Stream, pod: Object) -> None:
    _cpu(random, pod)
    _memory(random, pod)


def _selector(random: Stream, pod: Object) -> None:
    labels = {"disk": random.choice(["nvme", "tape"]), "generation": "9"}
    pod["spec"].setdefault("nodeSelector", {}).update(
        labels if random.random() < 0.3 else {"disk": "x"}
    )


def _affinity(random: Stream, pod: Object) -> None:
    expressions = [
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "missing", "operator": "Exists"},
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions[random.randint(0, 1) :]}]}
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: terms}


def _tainted(random: Stream, pod: Object) -> None:
    pod["spec"].setdefault("nodeSelector", {})["dedicated"] = "x"


def _cordoned(random: Stream, pod: Object) -> None:
    pod["spec"].setdefault("nodeSelector", {})[HOST] = "n6"


def _port(random: Stream, pod: Object) -> None:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]


def _alone(random: Stream, pod: Object) -> None:
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["podAntiAffinity"] = {REQUIRED: [_term("web", random.choice([HOST, ZONE]))]}


def _together(random: Stream, pod: Object) -> None:
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["podAffinity"] = {REQUIRED: [_term("nobody", random.choice([HOST, ZONE]))]}


def _hated(random: Stream, pod: Object) -> None:
    pod["metadata"]["labels"]["app"] = "hated"


def _spread(random: Stream, pod: Object) -> None:
    pod["metadata"]["labels"]["app"] = "spread"
    pod["spec"].setdefault("nodeSelector", {})[ZONE] = "a"
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": random.randint(1, 2),
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}},
            "nodeAffinityPolicy": "Ignore",
        }
    ]


def _gated(random: Stream, pod: Object) -> None:
    pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]


def _no_claim(random: Stream, pod: Object) -> None:
    name = f"missing-{pod['metadata']['name']}"
    pod["spec"].setdefault("volumes", []).append(_claim_volume(name))


def _no_class(random: Stream, pod: Object) -> list[Object]:
    name = f"data-{pod['metadata']['name']}"
    pod["spec"].setdefault("volumes", []).append(_claim_volume(name))
    spec = {**_claim_spec(), "storageClassName": f"class-{name}"}
    return [api_object("v1 PersistentVolumeClaim", name, "default", spec=spec)]


def _far_volume(random: Stream, pod: Object) -> None:
    pod["spec"].setdefault("volumes", []).append(_claim_volume("far"))


def _exclusive(random: Stream, pod: Object) -> None:
    pod["spec"].setdefault("volumes", []).append(_claim_volume("only"))


def _no_device_claim(random: Stream, pod: Object) -> None:
    name = f"device-{pod['metadata']['name']}"
    pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]


def _no_device(random: Stream, pod: Object) -> list[Object]:
    name = f"device-{pod['metadata']['name']}"
    pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    request = {"name": "r", "exactly": {"deviceClassName": "rare"}}
    spec = {"devices": {"requests": [request]}}
    return [api_object(f"{_DEVICES} ResourceClaim", name, "default", spec=spec)]


#: Each family changes the pod, and may return objects that the pod needs.
FAMILIES: list[Callable[[Stream, Object], list[Object] | None]] = [
    _cpu, _cpu, _memory, _gpus, _disk, _several, _selector, _affinity, _tainted, _cordoned, _port,
    _alone, _together, _hated, _spread, _gated, _no_claim, _no_class, _far_volume, _exclusive,
    _no_device_claim, _no_device,
]  # fmt: skip


# ---- objects ------------------------------------------------------------------------------------


def _node(name: str, zone: str) -> Object:
    labels = {ZONE: zone, HOST: name, "disk": "ssd" if zone == "a" else "hdd"}
    offered = {"cpu": "4", "memory": "8Gi", GPU: "2", "ephemeral-storage": "10Gi", "pods": "20"}
    spec: Object = {}
    if name == "n5":
        labels["dedicated"] = "x"
        spec = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}
    if name == "n6":
        spec = {"unschedulable": True}
    node = api_object(
        "v1 Node", name, spec=spec, status={"allocatable": offered, "capacity": offered}
    )
    node["metadata"]["labels"] = labels
    return node


def _pod(name: str, requests: dict[str, str], **options: Any) -> Object:
    limits = {GPU: requests[GPU]} if GPU in requests else {}
    resources = {"requests": dict(requests), "limits": limits}
    spec: Object = {"containers": [{"name": "c", "image": "x", "resources": resources}]}
    for field in ("affinity", "volumes"):
        if field in options:
            spec[field] = options[field]
    pod = api_object("v1 Pod", name, "default", spec=spec)
    pod["metadata"]["labels"] = dict(options.get("labels", {}))
    return pod


def _term(app: str, key: str = HOST) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def _claim_volume(name: str) -> Object:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def _claim_spec(mode: str = "ReadWriteOnce") -> Object:
    return {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}


def _volume(name: str, zone: str = "", mode: str = "ReadWriteOnce") -> Object:
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "csi": {"driver": "disk.example", "volumeHandle": name},
        "claimRef": {"apiVersion": _CORE, "namespace": "default", "name": name},
    }
    if zone:
        there = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    return spec


def _bound_claim(name: str, mode: str = "ReadWriteOnce") -> Object:
    spec = {**_claim_spec(mode), "volumeName": name, "storageClassName": ""}
    claim = api_object("v1 PersistentVolumeClaim", name, "default", spec=spec)
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return claim
