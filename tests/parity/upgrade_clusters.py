"""Clusters drawn so that upgrades of Kubernetes change the answers about their pods.

A cluster has the lists of a recorded case: plain nodes, pods that run and pods that wait. On top
come the parts of some families; each family has what one or a few rows of the tables of changes
are about. Objects are written as an API server would store them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from bayplan.rng import stream

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_CSI = "disk.example.com"
_DRIVER = "gpu.example.com"
_FAMILIES_PER_CLUSTER = 6


class Draw:
    """One cluster in the making."""

    def __init__(self, seed: int) -> None:
        self.random = stream(seed, "upgrade")
        self.lists: dict[str, list[Json]] = {}
        self._count = 0
        self.families: list[str] = []

    def add(self, name: str, **content: Any) -> Json:
        self.lists.setdefault(name, []).append(content)
        return content

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    @property
    def nodes(self) -> list[Json]:
        return self.lists["nodes"]

    def node(self) -> Json:
        return self.random.choice(self.nodes)

    def pod(self, prefix: str, requests: Json | None = None, **spec: Any) -> Json:
        """A pod of the namespace default that waits, or that runs with ``nodeName``."""
        meta = {"name": self.name(prefix), "namespace": spec.pop("namespace", "default")}
        meta["labels"] = spec.pop("labels", {"app": prefix})
        meta["uid"] = f"uid-{meta['name']}"
        status = spec.pop("status", {})
        status |= {"phase": "Running" if "nodeName" in spec else "Pending"}
        if "nodeName" in spec:
            status["startTime"] = f"2026-01-01T00:00:{self._count % 60:02}Z"
        resources = {"requests": requests or {}}
        limits = {name: amount for name, amount in resources["requests"].items() if "/" in name}
        resources |= {"limits": limits} if limits else {}
        container = {"name": "c", "image": "reg/none:1", "resources": resources}
        whole = {"schedulerName": "default-scheduler", "containers": [container], **spec}
        for each in whole["containers"]:
            each.setdefault("image", "reg/none:1")
        return self.add("pods", metadata=meta, spec=whole, status=status)

    def slice(self, node: str, devices: list[Json], count: int = 1, **spec: Any) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": count}
        named = {"name": self.name(f"slice-{node}")}
        body = {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": devices, **spec}
        self.add("resourceSlices", metadata=named, spec=body)

    def claim(self, exactly: Json, **parts: Any) -> str:
        """The name of a new claim for devices of the class gpu."""
        name = self.name("claim")
        body = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
        wish = parts.pop("request", {"name": "r0", "exactly": body})
        meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        if "status" in parts:
            meta["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        devices = {"requests": [wish], **parts.pop("devices", {})}
        self.add("resourceClaims", metadata=meta, spec={"devices": devices}, **parts)
        return name

    def user(self, *claims: str, **spec: Any) -> Json:
        entries = [{"name": f"c{i}", "resourceClaimName": one} for i, one in enumerate(claims)]
        return self.pod("user", {"cpu": "100m"}, resourceClaims=entries, **spec)


# ---- what every cluster has ----------------------------------------------------------------


def draw_cluster(
    seed: int, without: Collection[str] = ()
) -> tuple[dict[str, list[Json]], list[str]]:
    """(the lists of a cluster, the names of its families). ``without``: families that are left
    out."""
    draw = Draw(seed)
    choose = draw.random
    for number in range(choose.randint(3, 6)):
        allocatable = {
            "cpu": choose.choice(("2", "4", "8")),
            "memory": choose.choice(("4Gi", "8Gi", "16Gi", "32Gi")),
            "pods": "110",
        }
        labels = {HOST: f"n{number}", ZONE: f"z{number % 2}"}
        meta = {"name": f"n{number}", "labels": labels}
        draw.add("nodes", metadata=meta, spec={}, status={"allocatable": allocatable})
    for name, labels in (("default", {"team": "a"}), ("plain", {}), ("other", {"team": "b"})):
        draw.add("namespaces", metadata={"name": name, "labels": labels})
    for name in ("gpu", "any"):
        selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
        spec = {"selectors": [selector]} if name == "gpu" else {}
        draw.add("deviceClasses", metadata={"name": name}, spec=spec)
    for _ in range(choose.randint(3, 8)):
        draw.pod("runs", _requests(draw), nodeName=draw.node()["metadata"]["name"], priority=0)
    for _ in range(choose.randint(1, 4)):
        draw.pod("plain", _requests(draw))
    names = [name for name in FAMILIES if name not in without]
    draw.families = choose.sample(names, _FAMILIES_PER_CLUSTER)
    for name in draw.families:
        FAMILIES[name](draw)
    # As an API server lists them: the size of an image is that on the first node with its name.
    lists = {name: sorted(each, key=_full_name) for name, each in draw.lists.items()}
    return lists, draw.families


def _full_name(content: Json) -> tuple[str, str]:
    return content["metadata"].get("namespace", ""), content["metadata"]["name"]


def _requests(draw: Draw) -> Json:
    cpu = draw.random.choice(("100m", "250m", "500m", "1"))
    return {"cpu": cpu, "memory": draw.random.choice(("128Mi", "512Mi", "1Gi", "3Gi"))}


# ---- families: pods and nodes --------------------------------------------------------------


def _too_large(draw: Draw) -> None:
    draw.pod("huge", {"cpu": "99"})


def _preemptor(draw: Draw) -> None:
    draw.pod("victim", {"cpu": "1500m"}, nodeName=draw.node()["metadata"]["name"], priority=-5)
    draw.pod("preemptor", {"cpu": "1800m", "memory": "3Gi"}, priority=100)


def _namespace_selectors(draw: Draw) -> None:
    for namespace in ("default", "plain", "other"):
        node = draw.node()["metadata"]["name"]
        draw.pod("peer", {"cpu": "10m"}, namespace=namespace, nodeName=node, priority=1000)
    selector: Json = {"key": "team", "operator": "DoesNotExist"}
    if draw.random.random() < 0.5:
        selector = {"key": "team", "operator": "NotIn", "values": ["b"]}
    term = {
        "topologyKey": HOST,
        "labelSelector": {"matchLabels": {"app": "peer"}},
        "namespaceSelector": {"matchExpressions": [selector]},
    }
    kind = draw.random.choice(("podAffinity", "podAntiAffinity"))
    rules: Json = {REQUIRED: [term]}
    if draw.random.random() < 0.5:
        rules = {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}
    draw.pod("meets", {"cpu": "50m"}, affinity={kind: rules})


def _image_volumes(draw: Draw) -> None:
    for image in ("reg/volume:1", "reg/main:1"):
        for node in draw.random.sample(draw.nodes, 2):
            size = draw.random.choice((300_000_000, 700_000_000, 900_000_000))
            entry = {"names": [image], "sizeBytes": size}
            node["status"].setdefault("images", []).append(entry)
    volume = {"name": "v", "image": {"reference": "reg/volume:1"}}
    container = {"name": "c", "image": "reg/main:1"}
    draw.pod("images", containers=[container], volumes=[volume])


def _resizes(draw: Draw) -> None:
    node = draw.node()
    cpu = int(node["status"]["allocatable"]["cpu"])
    container = ({"requests": {"cpu": f"{cpu * 300}m"}}, {"requests": {"cpu": f"{cpu * 100}m"}})
    statuses = [
        {"name": f"c{i}", "resources": each, "allocatedResources": each["requests"]}
        for i, each in enumerate(reversed(container))
    ]
    containers = [{"name": f"c{i}", "resources": each} for i, each in enumerate(container)]
    name = node["metadata"]["name"]
    status = {"containerStatuses": statuses}
    draw.pod("resized", containers=containers, nodeName=name, status=status, priority=1000)
    draw.pod("room", {"cpu": f"{cpu * 450}m"}, nodeSelector={HOST: name})


def _whole_pod_resizes(draw: Draw) -> None:
    node = draw.node()
    cpu = int(node["status"]["allocatable"]["cpu"])
    name = node["metadata"]["name"]
    small, large = ({"requests": {"cpu": f"{cpu * part}m"}} for part in (200, 700))
    status = {"resources": large, "allocatedResources": large["requests"]}
    draw.pod("whole", nodeName=name, resources=small, status=status, priority=1000)
    draw.pod("beside", {"cpu": f"{cpu * 450}m"}, nodeSelector={HOST: name})


def _node_features(draw: Draw) -> None:
    if draw.random.random() < 0.6:
        feature = "RestartAllContainersOnContainerExits"
        draw.node()["status"]["declaredFeatures"] = [feature]
    codes = {"operator": "In", "values": [42]}
    rule = {"action": "RestartAllContainers", "exitCodes": codes}
    container = {"name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    draw.pod("restarts", containers=[container])


# ---- families: volumes ---------------------------------------------------------------------


def _storage_class(draw: Draw) -> str:
    name = draw.name("late")
    draw.add(
        "storageClasses",
        metadata={"name": name},
        provisioner=_CSI,
        volumeBindingMode="WaitForFirstConsumer",
    )
    return name


def _volume_claim(draw: Draw, **spec: Any) -> str:
    name = draw.name("data")
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    resources = {"requests": {"storage": "2Gi"}}
    body = {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}
    status = {"phase": "Bound" if "volumeName" in spec else "Pending"}
    if "volumeName" in spec:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    draw.add("persistentVolumeClaims", metadata=meta, spec=body, status=status)
    return name


def _mount(claim: str) -> list[Json]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]


def _free_volumes(draw: Draw) -> None:
    """Free volumes of several sizes: capacity scores them."""
    storage = _storage_class(draw)
    for node in draw.random.sample(draw.nodes, draw.random.randint(2, 3)):
        size = draw.random.choice(("2Gi", "5Gi", "20Gi"))
        match = {"key": HOST, "operator": "In", "values": [node["metadata"]["name"]]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": terms},
        }
        name = draw.name("volume")
        available = {"phase": "Available"}
        draw.add("persistentVolumes", metadata={"name": name}, spec=spec, status=available)
    draw.pod(
        "stores", {"cpu": "10m"}, volumes=_mount(_volume_claim(draw, storageClassName=storage))
    )


def _storage_capacity(draw: Draw) -> None:
    """Volumes to be provisioned where the driver has room."""
    storage = _storage_class(draw)
    if not draw.lists.get("csiDrivers"):
        meta = {"name": _CSI}
        draw.add("csiDrivers", metadata=meta, spec={"storageCapacity": True})
    for node in draw.random.sample(draw.nodes, draw.random.randint(2, 3)):
        room = draw.random.choice(("3Gi", "10Gi", "100Gi"))
        labels = {"matchLabels": {HOST: node["metadata"]["name"]}}
        meta = {"name": draw.name("room"), "namespace": "default"}
        draw.add(
            "csiStorageCapacities",
            metadata=meta,
            storageClassName=storage,
            capacity=room,
            nodeTopology=labels,
        )
    draw.pod("makes", {"cpu": "10m"}, volumes=_mount(_volume_claim(draw, storageClassName=storage)))


def _missing_driver(draw: Draw) -> None:
    driver = draw.name("csi").replace("-", ".")
    spec = {"preventPodSchedulingIfMissing": draw.random.random() < 0.8}
    draw.add("csiDrivers", metadata={"name": driver}, spec=spec)
    for node in draw.random.sample(draw.nodes, 2):
        name = node["metadata"]["name"]
        here = [each for each in draw.lists.get("csiNodes", ()) if each["metadata"]["name"] == name]
        entry = {"name": driver, "nodeID": name, "allocatable": {"count": 5}}
        if here:
            here[0]["spec"]["drivers"].append(entry)
        else:
            draw.add("csiNodes", metadata={"name": name}, spec={"drivers": [entry]})
    volume = draw.name("bound")
    claim = _volume_claim(draw, volumeName=volume, storageClassName="")
    reference = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    body = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": driver, "volumeHandle": volume},
        "claimRef": reference,
        "storageClassName": "",
    }
    bound = {"phase": "Bound"}
    draw.add("persistentVolumes", metadata={"name": volume}, spec=body, status=bound)
    draw.pod("mounts", {"cpu": "10m"}, volumes=_mount(claim))


# ---- families: devices ---------------------------------------------------------------------


def _device(name: str, **parts: Any) -> Json:
    return {"name": name, "attributes": {"model": {"string": "h100"}}, **parts}


def _own_node(draw: Draw) -> str:
    """A node whose pool of devices no other family uses."""
    number = len(draw.nodes)
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    meta = {"name": f"d{number}", "labels": {HOST: f"d{number}", ZONE: "z0", "devices": "yes"}}
    taint = {"key": "devices", "value": "yes", "effect": "NoSchedule"}
    draw.add("nodes", metadata=meta, spec={"taints": [taint]}, status={"allocatable": allocatable})
    return f"d{number}"


def _on(node: str) -> Json:
    """Where a pod with claims goes: to the node of its family."""
    toleration = {"key": "devices", "operator": "Exists"}
    return {"nodeSelector": {HOST: node}, "tolerations": [toleration]}


def _wrong_selector(draw: Draw) -> None:
    node = _own_node(draw)
    draw.slice(node, [_device("d0")])
    selector = {"cel": {"expression": f'device.attributes["{_DRIVER}"].nope == "x"'}}
    draw.user(draw.claim({"selectors": [selector]}), **_on(node))


def _tainted_device(draw: Draw) -> None:
    node = _own_node(draw)
    effect = draw.random.choice(("NoSchedule", "NoExecute", "None"))
    draw.slice(node, [_device("d0", taints=[{"key": "bad", "effect": effect}])])
    draw.user(draw.claim({}), **_on(node))


def _taint_rule(draw: Draw) -> None:
    node = _own_node(draw)
    draw.slice(node, [_device("d0")])
    taint = {"key": "sick", "effect": "NoSchedule"}
    selector = {"driver": _DRIVER, "pool": node}
    spec = {"deviceSelector": selector, "taint": taint}
    draw.add("deviceTaintRules", metadata={"name": draw.name("rule")}, spec=spec)
    draw.user(draw.claim({}), **_on(node))


def _extended_resource(draw: Draw) -> None:
    node = _own_node(draw)
    draw.slice(node, [_device("d0"), _device("d1")])
    name = "deviceclass.resource.kubernetes.io/gpu"
    if draw.random.random() < 0.5:
        name = "example.com/accelerator"
        draw.lists["deviceClasses"][0]["spec"]["extendedResourceName"] = name
    draw.pod("extended", {name: draw.random.choice(("1", "2", "3"))}, **_on(node))


def _partitions(draw: Draw) -> None:
    node = _own_node(draw)
    counters = {"name": "cs", "counters": {"mem": {"value": "80Gi"}}}

    def half(name: str) -> Json:
        consumed = {"counterSet": "cs", "counters": {"mem": {"value": "40Gi"}}}
        return _device(name, consumesCounters=[consumed])

    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    body = {"driver": _DRIVER, "nodeName": node, "pool": pool, "sharedCounters": [counters]}
    draw.add("resourceSlices", metadata={"name": draw.name("counters")}, spec=body)
    draw.slice(node, [half("d0"), half("d1"), half("d2")], 2)
    draw.user(draw.claim({"count": draw.random.choice((1, 2, 3))}), **_on(node))


def _shares(draw: Draw) -> None:
    node = _own_node(draw)
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi", "max": "40Gi"}}
    capacity = {"memory": {"value": "40Gi", "requestPolicy": policy}}
    draw.slice(node, [_device("d0", allowMultipleAllocations=True, capacity=capacity)])
    amount = draw.random.choice(("20Gi", "50Gi", "1E", "9223372036854775807"))
    draw.user(draw.claim({"capacity": {"requests": {"memory": amount}}}), **_on(node))


def _binding_conditions(draw: Draw) -> None:
    node = _own_node(draw)
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    draw.slice(node, [_device("d0", bindsToNode=True, **conditions)])
    draw.user(draw.claim({}), **_on(node))


def _distinct_attribute(draw: Draw) -> None:
    node = _own_node(draw)
    other = {"attributes": {"model": {"string": "a100"}}}
    second = {"name": "d1", **(other if draw.random.random() < 0.5 else _device("d1"))}
    draw.slice(node, [_device("d0"), second])
    constraints = [{"distinctAttribute": f"{_DRIVER}/model"}]
    draw.user(draw.claim({"count": 2}, devices={"constraints": constraints}), **_on(node))


def _too_many_devices(draw: Draw) -> None:
    node = _own_node(draw)
    draw.slice(node, [_device(f"d{number}") for number in range(40)])
    draw.user(draw.claim({"count": 33}), **_on(node))


def _claim_of_another_pod(draw: Draw) -> None:
    name = draw.claim({})
    entry = {"name": "c0", "resourceClaimTemplateName": "template"}
    statuses = [{"name": "c0", "resourceClaimName": name}]
    draw.pod("gated", resourceClaims=[entry], status={"resourceClaimStatuses": statuses})


def _allocated_and_free_claims(draw: Draw) -> None:
    """A claim that is allocated for all nodes, and one that is not allocated yet."""
    devices = [_device("everywhere")]
    pool = {"name": "all", "generation": 1, "resourceSliceCount": 1}
    body = {"driver": _DRIVER, "allNodes": True, "pool": pool, "devices": devices}
    draw.add("resourceSlices", metadata={"name": draw.name("shared")}, spec=body)
    result = {"request": "r0", "driver": _DRIVER, "pool": "all", "device": "everywhere"}
    status = {"allocation": {"devices": {"results": [result]}}}
    here = draw.claim({}, status=status)
    first, second = _own_node(draw), _own_node(draw)
    for node in (first, second):
        draw.slice(node, [_device("d0")])
    tolerations = [{"key": "devices", "operator": "Exists"}]
    where = {"nodeSelector": {"devices": "yes"}, "tolerations": tolerations}
    draw.user(here, draw.claim({}), **where)


def _first_available(draw: Draw) -> None:
    """A prioritized list, whose first choice only one node has."""
    better, plain = _own_node(draw), _own_node(draw)
    draw.slice(better, [{"name": "d0", "attributes": {"model": {"string": "best"}}}])
    draw.slice(plain, [_device("d0")])

    def choice(name: str, model: str) -> Json:
        expression = f'device.attributes["{_DRIVER}"].model == "{model}"'
        selectors = [{"cel": {"expression": expression}}]
        count = {"allocationMode": "ExactCount", "count": 1}
        return {"name": name, "deviceClassName": "gpu", "selectors": selectors, **count}

    choices = [choice("best", "best"), choice("good", "h100")]
    name = draw.claim({}, request={"name": "r0", "firstAvailable": choices})
    tolerations = [{"key": "devices", "operator": "Exists"}]
    match = {"key": HOST, "operator": "In", "values": [better, plain]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [match]}]}
    draw.user(name, tolerations=tolerations, affinity={"nodeAffinity": {REQUIRED: terms}})


def _incomplete_pool(draw: Draw) -> None:
    node = _own_node(draw)
    draw.slice(node, [_device("d0")], 2)
    draw.user(draw.claim({}), **_on(node))


def _claim_to_release(draw: Draw) -> None:
    """A claim that is allocated where the pod does not fit: PostFilter releases it."""
    node = _own_node(draw)
    draw.slice(node, [_device("d0")])
    match = {"key": HOST, "operator": "In", "values": [node]}
    allocation = {
        "devices": {
            "results": [{"request": "r0", "driver": _DRIVER, "pool": node, "device": "d0"}]
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [match]}]},
    }
    name = draw.claim({}, status={"allocation": allocation})
    draw.user(name, nodeSelector={"devices": "no"})


FAMILIES: Final[Mapping[str, Callable[[Draw], None]]] = {
    "too large": _too_large,
    "preemptor": _preemptor,
    "namespace selectors": _namespace_selectors,
    "image volumes": _image_volumes,
    "resizes": _resizes,
    "whole pod resizes": _whole_pod_resizes,
    "node features": _node_features,
    "free volumes": _free_volumes,
    "storage capacity": _storage_capacity,
    "missing driver": _missing_driver,
    "wrong selector": _wrong_selector,
    "tainted device": _tainted_device,
    "taint rule": _taint_rule,
    "extended resource": _extended_resource,
    "partitions": _partitions,
    "shares": _shares,
    "binding conditions": _binding_conditions,
    "distinct attribute": _distinct_attribute,
    "too many devices": _too_many_devices,
    "claim of another pod": _claim_of_another_pod,
    "allocated and free claims": _allocated_and_free_claims,
    "first available": _first_available,
    "incomplete pool": _incomplete_pool,
    "claim to release": _claim_to_release,
}
