"""The objects of the drawn worlds: nodes, pods, storage, devices, groups, as JSON.

Every field that a Filter plugin reads occurs, with few values each, so that pods conflict.
"""

import json
from collections.abc import Callable, Collection
from typing import Any

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.rng import Stream

Content = dict[str, Any]

DRIVER = "disk.test"
DEVICE_DRIVER = "gpu.test"
GPU = "example.com/gpu"
#: Storage classes: with existing volumes, with provisioned volumes.
LOCAL, PROVISIONED = "local", "made"
NAMESPACES = ("default", "blue")
ZONES = ("a", "b", "c")
TAINT: Content = {"key": "team", "value": "x"}
OTHER_SCHEDULER = "other-scheduler"
HOSTNAME = "kubernetes.io/hostname"


def content(kind: str, name: str, namespace: str = "", **fields: Any) -> Content:
    version, _, word = kind.partition(" ")
    meta: Content = {"name": name, **fields.pop("meta", {})}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": word, "metadata": meta, **fields}


def namespaces() -> list[Content]:
    return [content("v1 Namespace", name, meta={"labels": {"team": name}}) for name in NAMESPACES]


# ---- nodes --------------------------------------------------------------------------------


def random_node(random: Stream, name: str) -> Content:
    labels = {HOSTNAME: name, "zone": random.choice(ZONES), "disk": random.choice(("ssd", "hdd"))}
    allocatable = {
        "cpu": random.choice(("2", "4", "8")),
        "memory": "16Gi",
        "pods": random.choice(("4", "110")),
        GPU: random.choice(("0", "1", "2")),
    }
    return content(
        "v1 Node",
        name,
        meta={"labels": labels},
        spec=node_spec(random),
        status={"allocatable": allocatable},
    )


def node_spec(random: Stream) -> Content:
    spec: Content = {}
    if random.random() < 0.25:
        effect = random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        spec["taints"] = [{**TAINT, "effect": effect}]
    if random.random() < 0.1:
        spec["unschedulable"] = True
    return spec


def attachments_of(random: Stream, name: str) -> Content:
    """How many volumes a node attaches."""
    driver = {
        "name": DRIVER,
        "nodeID": name,
        "topologyKeys": ["zone"],
        "allocatable": {"count": random.choice((1, 2))},
    }
    return content("storage.k8s.io/v1 CSINode", name, spec={"drivers": [driver]})


def devices_of(name: str) -> Content:
    """Two devices of a node."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d0"}, {"name": "d1"}]
    spec = {"driver": DEVICE_DRIVER, "pool": pool, "nodeName": name, "devices": devices}
    return content(RESOURCE_SLICE, name, spec=spec)


# ---- in one line --------------------------------------------------------------------------


def summary(created: Content) -> str:
    """An object in one line, without the fields that all objects of its kind have."""
    meta = created["metadata"]
    name = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
    parts = {"labels": meta.get("labels"), **created.get("spec", {})}
    allocatable = created.get("status", {}).get("allocatable")
    if allocatable:
        parts["allocatable"] = allocatable
    fields = {key: value for key, value in parts.items() if value and key not in _USUAL}
    for container in parts.get("containers") or ():
        fields |= {"requests": container["resources"]["requests"]}
        fields |= {"ports": container["ports"]} if container.get("ports") else {}
    return f"{created['kind']} {name} {json.dumps(fields)}"


_USUAL = ("containers", "terminationGracePeriodSeconds", "dnsPolicy", "restartPolicy")


# ---- budgets ------------------------------------------------------------------------------


def budgets() -> list[Content]:
    """A minimum of available pods for each app: preemption prefers other victims. An eviction of a
    pod of "db" always violates a budget."""
    kind = "policy/v1 PodDisruptionBudget"
    return [
        content(
            kind,
            f"{app}-stays",
            namespace,
            spec={"selector": {"matchLabels": {"app": app}}, "minAvailable": minimum},
        )
        for namespace in NAMESPACES
        for app, minimum in (("web", 2), ("db", 100))
    ]


# ---- storage and devices ------------------------------------------------------------------


def storage() -> list[Content]:
    """Classes, a driver, local volumes in each zone, a class of devices."""
    kind = "storage.k8s.io/v1 StorageClass"
    waits = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    allowed = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    return [
        content(kind, LOCAL, provisioner="kubernetes.io/no-provisioner", **waits),
        content(kind, PROVISIONED, provisioner=DRIVER, allowedTopologies=allowed, **waits),
        content("storage.k8s.io/v1 CSIDriver", DRIVER, spec={"attachRequired": True}),
        content(DEVICE_CLASS, "gpu", spec={}),
        *(volume(f"local-{zone}{n}", zone) for zone in ZONES for n in range(2)),
    ]


def volume(name: str, zone: str) -> Content:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": LOCAL,
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return content("v1 PersistentVolume", name, spec=spec)


def volume_claim(random: Stream, name: str, namespace: str) -> Content:
    is_provisioned = random.random() < 0.7
    alone = ("ReadWriteOncePod",) * 2
    mode = random.choice(("ReadWriteOnce", *alone)) if is_provisioned else "ReadWriteOnce"
    spec = {
        "accessModes": [mode],
        "storageClassName": PROVISIONED if is_provisioned else LOCAL,
        "resources": {"requests": {"storage": "5Gi"}},
    }
    return content("v1 PersistentVolumeClaim", name, namespace, spec=spec)


def device_claim(random: Stream, name: str, namespace: str) -> Content:
    exactly = {"deviceClassName": "gpu", "count": random.choice((1, 1, 2))}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return content("resource.k8s.io/v1 ResourceClaim", name, namespace, spec=spec)


# ---- pods ---------------------------------------------------------------------------------


def random_pod(random: Stream, name: str, left_out: Collection["Constraint"] = ()) -> Content:
    """A pod with none, one or two constraints."""
    labels = {"app": random.choice(("web", "db"))}
    spec: Content = {
        "priority": random.choice((0, 0, 0, 10)),
        "terminationGracePeriodSeconds": random.choice((0, 30)),
        "containers": [_container(random)],
    }
    if random.random() < 0.3:
        effect = random.choice(({}, {"effect": "NoSchedule"}))
        toleration = random.choice(({"operator": "Exists"}, {**TAINT, "operator": "Equal"}))
        spec["tolerations"] = [{**toleration, **effect}]
    if random.random() < 0.15:
        init = {"requests": {"cpu": "2", "memory": "50Mi"}}
        spec["initContainers"] = [{"name": "i", "image": "app", "resources": init}]
    choices = [each for each in _CONSTRAINTS if each not in left_out]
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        chosen = random.choice(choices)(random, labels, name)
        if "affinity" in chosen:
            chosen["affinity"] |= spec.get("affinity", {})
        spec |= chosen
    namespace = random.choice((*NAMESPACES, NAMESPACES[0]))
    return content("v1 Pod", name, namespace, meta={"labels": labels}, spec=spec)


def _container(random: Stream) -> Content:
    requests = {"cpu": random.choice(("100m", "500m", "1", "2", "16")), "memory": "100Mi"}
    resources: Content = {"requests": requests}
    if random.random() < 0.15:
        requests[GPU] = "1"
        resources["limits"] = {GPU: "1"}
    container: Content = {"name": "c", "image": "app", "resources": resources}
    if random.random() < 0.3:
        container["ports"] = [_port(random)]
    return container


def _port(random: Stream) -> Content:
    port: Content = {"containerPort": 80, "hostPort": 80}
    if random.random() < 0.4:
        port["hostIP"] = random.choice(("10.0.0.1", "10.0.0.2"))
    if random.random() < 0.2:
        port["protocol"] = "UDP"
    return port


def is_resizable(pod: Content) -> bool:
    """A running pod with a single container and no init containers."""
    spec, status = pod["spec"], pod.get("status") or {}
    is_there = spec.get("nodeName") and status.get("phase") not in ("Succeeded", "Failed")
    return bool(is_there) and not spec.get("initContainers") and len(spec["containers"]) == 1


def resized(random: Stream, pod: Content) -> Content:
    """The pod with another request of cpu, and its kubelet's report."""
    (container,) = pod["spec"]["containers"]
    old: Content = container["resources"]["requests"]
    new = {**old, "cpu": random.choice(("100m", "500m", "1", "3"))}
    spec = {
        **pod["spec"],
        "containers": [{**container, "resources": {**container["resources"], "requests": new}}],
    }
    reason = random.choice(("", "", "Deferred", "Infeasible"))
    granted = old if reason else new
    reported = {"name": "c", "allocatedResources": granted, "resources": {"requests": granted}}
    kinds = ("PodResizePending",)
    before = (pod.get("status") or {}).get("conditions") or []
    conditions = [each for each in before if each["type"] not in kinds]
    if reason:
        conditions.append({"type": kinds[0], "status": "True", "reason": reason})
    status = {**pod["status"], "conditions": conditions, "containerStatuses": [reported]}
    return {**pod, "spec": spec, "status": status}


# ---- pods of one step -----------------------------------------------------------------------


def plain_pod(name: str, cpu: str, app: str = "web", **spec: Any) -> Content:
    """A pod without constraints. ``spec``: further fields of its spec."""
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    whole = {"priority": 0, "containers": [container], **spec}
    return content("v1 Pod", name, NAMESPACES[0], meta={"labels": {"app": app}}, spec=whole)


def sidecar_pod(random: Stream, name: str) -> Content:
    """A pod whose sidecar has a host port."""
    sidecar = {
        "name": "s",
        "image": "app",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": random.choice(("100m", "500m"))}},
        "ports": [_port(random)],
    }
    return plain_pod(name, "100m", initContainers=[sidecar])


def spread_fields(random: Stream) -> Content:
    """Fields of the spec of pods that spread by all fields of a constraint, and that terminate for
    a while."""
    constraint: Content = {
        "maxSkew": 1,
        "topologyKey": random.choice(("zone", HOSTNAME, HOSTNAME)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "roll"}},
    }
    fields: Content = {"terminationGracePeriodSeconds": 30}
    if random.random() < 0.4:
        constraint["nodeTaintsPolicy"] = "Honor"
    elif random.random() < 0.6:
        fields["tolerations"] = [{"operator": "Exists"}]
    if random.random() < 0.4:
        fields["nodeSelector"] = {"disk": "ssd"}
        constraint["nodeAffinityPolicy"] = random.choice(("Honor", "Ignore"))
    if random.random() < 0.4:
        constraint["minDomains"] = random.choice((4, 8))
    return {**fields, "topologySpreadConstraints": [constraint]}


def _gate(random: Stream, labels: dict[str, str], name: str) -> Content:
    return {"schedulingGates": [{"name": "wait"}]}


def _selector(random: Stream, labels: dict[str, str], name: str) -> Content:
    return {"nodeSelector": {"zone": random.choice(ZONES)}}


def _node_affinity(random: Stream, labels: dict[str, str], name: str) -> Content:
    operator, values = random.choice(
        (("In", ["ssd"]), ("NotIn", ["ssd"]), ("In", ["ssd", "hdd"]), ("DoesNotExist", []))
    )
    expression = {"key": "disk", "operator": operator, "values": values}
    if not values:
        expression = {"key": "zone", "operator": "NotIn", "values": ["b", "d"]}
    terms = [{"matchExpressions": [expression]}]
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}}


def _anti_affinity(random: Stream, labels: dict[str, str], name: str) -> Content:
    term = _term(random, {"app": random.choice(("web", "db"))})
    return {"affinity": {"podAntiAffinity": {_REQUIRED: [term]}}}


def _affinity(random: Stream, labels: dict[str, str], name: str) -> Content:
    target_labels = labels if random.random() < 0.7 else {"app": "db"}
    term = {**_term(random, target_labels), "topologyKey": "zone"}
    return {"affinity": {"podAffinity": {_REQUIRED: [term]}}}


def _term(random: Stream, labels: dict[str, str]) -> Content:
    term: Content = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": random.choice((HOSTNAME, HOSTNAME, "zone")),
    }
    if random.random() < 0.3:
        wide = ({"namespaces": ["blue"]}, {"namespaceSelector": {}})
        term |= random.choice(wide)
    return term


def _spreading(random: Stream, labels: dict[str, str], name: str) -> Content:
    constraint: Content = {
        "maxSkew": random.choice((1, 1, 2)),
        "topologyKey": random.choice(("zone", HOSTNAME)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    if random.random() < 0.3:
        constraint["nodeTaintsPolicy"] = "Honor"
    if random.random() < 0.2:
        constraint["minDomains"] = 2
    return {"topologySpreadConstraints": [constraint]}


def names_volumes(random: Stream, labels: dict[str, str], name: str) -> Content:
    """A claim of its own, or one that pods share."""
    claim = random.choice((f"claim-{name}", "shared-0", "shared-1", "shared-1"))
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def names_devices(random: Stream, labels: dict[str, str], name: str) -> Content:
    claim = random.choice((f"devices-{name}", f"devices-{name}", "shared-devices"))
    return {"resourceClaims": [{"name": "d", "resourceClaimName": claim}]}


#: Returns fields of a pod's spec. Arguments: random numbers, the pod's labels, the pod's name.
Constraint = Callable[[Stream, dict[str, str], str], Content]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CONSTRAINTS: tuple[Constraint, ...] = (
    _gate,
    _selector,
    _node_affinity,
    _anti_affinity,
    _anti_affinity,
    _affinity,
    _spreading,
    _spreading,
    *(names_volumes,) * 4,
    *(names_devices,) * 4,
)


def claims_of(random: Stream, created: Content) -> list[Content]:
    """The claims that a pod names; the world creates those that do not exist."""
    namespace, spec = created["metadata"]["namespace"], created["spec"]
    claims: list[Content] = []
    for each in spec.get("volumes") or ():
        name = each["persistentVolumeClaim"]["claimName"]
        claims.append(volume_claim(random, name, namespace))
    names = [each["resourceClaimName"] for each in spec.get("resourceClaims") or ()]
    return claims + [device_claim(random, name, namespace) for name in names]


# ---- groups -------------------------------------------------------------------------------


def gang(random: Stream, name: str) -> list[Content]:
    """Members with equal specs, so their order does not change how many fit. There may be fewer
    members than the minimum, or more. The group's object may be the last."""
    minimum = random.randint(2, 5)
    group = content(
        "scheduling.x-k8s.io/v1alpha1 PodGroup", name, "default", spec={"minMember": minimum}
    )
    requests = {"cpu": random.choice(("500m", "1", "2")), "memory": "100Mi"}
    spec = {"containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}]}
    meta = {"labels": {COSCHEDULING_LABEL: name}}
    count = minimum + random.choice((-1, 0, 0, 0, 1))
    members = [
        content("v1 Pod", f"{name}-{n}", "default", meta=meta, spec=spec) for n in range(count)
    ]
    objects = [group, *members]
    if random.random() < 0.3:
        objects.reverse()
    return objects
