"""Pods that wait, one of each kind of reason, for the cluster of `bench_why`.

Each is the pod of a controller, or of a group, whose other pods wait for the same reason.
"""

from collections.abc import Iterable, Iterator

from bayplan.api.pod_groups import COSCHEDULING_LABEL
from benchmarks.bench_why import POD, POD_CPU, Object, metadata_of, owned, pod_spec, replica_set

_ZONE = "topology.kubernetes.io/zone"
#: One node in so many has a taint, and one in so many has devices.
_TAINTED_EVERY, _WITH_DEVICES_EVERY = 50, 10
_POOL, _DEVICES, _CLASS = "pool", 4, "gpu.example"
_MEMBERS = 8
_PLACED_IN_ZONES = 3
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

#: Kind of reason → the pod in question.
WAITING_PODS = {
    "lacks cpu": POD,
    "taints": "default/taints-5d9c7b6f8d-x2x7q",
    "missing claim": "default/claim-5d9c7b6f8d-x2x7q",
    "spreading": "default/spread-5d9c7b6f8d-x2x7q",
    "affinity": "default/near-5d9c7b6f8d-x2x7q",
    "gang member": "default/gang-0",
    "device": "default/device-5d9c7b6f8d-x2x7q",
}


def with_waiting_pods(contents: Iterable[Object]) -> Iterator[Object]:
    """The objects of a cluster, with these pods and with what makes them wait."""
    count = 0
    for content in contents:
        if content["kind"] == "Node":
            yield from _with_special_parts(content, count)
            count += 1
        else:
            yield content
    for make in (_taints, _claim, _spread, _near, _gang, _device):
        yield from make()


def _with_special_parts(node: Object, number: int) -> Iterator[Object]:
    """A node, perhaps with a taint or devices."""
    name = node["metadata"]["name"]
    if number % _TAINTED_EVERY == 0:
        labels = {**node["metadata"]["labels"], _POOL: "batch"}
        taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        node = {
            **node,
            "metadata": {**node["metadata"], "labels": labels},
            "spec": {**node["spec"], "taints": taints},
        }
    yield node
    if number % _WITH_DEVICES_EVERY == 1:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{each}"} for each in range(_DEVICES)]
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": metadata_of(f"{name}-gpus"),
            "spec": {"nodeName": name, "driver": _CLASS, "pool": pool, "devices": devices},
        }


def _taints() -> Iterator[Object]:
    yield from _workload("taints", {"nodeSelector": {_POOL: "batch"}})


def _claim() -> Iterator[Object]:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    yield from _workload("claim", {"volumes": [*pod_spec(0)["volumes"], claim]})


def _spread() -> Iterator[Object]:
    """The first pods are in three zones, and the others wait for a fourth zone."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": _ZONE,
        "minDomains": _PLACED_IN_ZONES + 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    part = {"topologySpreadConstraints": [constraint]}
    yield from _workload("spread", part)
    for number in range(_PLACED_IN_ZONES):
        yield _pod("spread", f"placed{number}", {**part, "nodeName": f"node-{number:05d}"})


def _near() -> Iterator[Object]:
    term = {"labelSelector": {"matchLabels": {"app": "apps-7"}}, "topologyKey": _ZONE}
    yield from _workload("near", {"affinity": {"podAffinity": {_REQUIRED: [term]}}})


def _gang() -> Iterator[Object]:
    yield {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata_of("gang", namespace="default"),
        "spec": {"minMember": _MEMBERS},
    }
    for member in range(_MEMBERS):
        spec = pod_spec(0)
        spec["containers"][0]["resources"] = {"requests": {"cpu": str(POD_CPU)}}
        labels = {COSCHEDULING_LABEL: "gang"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata_of(f"gang-{member}", namespace="default", labels=labels),
            "spec": spec,
            "status": {"phase": "Pending"},
        }


def _device() -> Iterator[Object]:
    exactly = {"deviceClassName": _CLASS, "count": _DEVICES + 1}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata_of(_CLASS),
        "spec": {},
    }
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata_of("gpus", namespace="default"),
        "spec": {"spec": spec},
    }
    part = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]}
    yield from _workload("device", part)


def _workload(app: str, part: Object) -> Iterator[Object]:
    """A ReplicaSet and one of its pods that wait. ``part``: of the spec of each pod."""
    content = replica_set(0, f"{app}-5d9c7b6f8d")
    template = content["spec"]["template"]
    labels = {"app": app, "pod-template-hash": "5d9c7b6f8d"}
    template["metadata"]["labels"] = content["spec"]["selector"]["matchLabels"] = labels
    template["spec"] |= part
    yield content
    yield _pod(app, "x2x7q", part)


def _pod(app: str, suffix: str, part: Object) -> Object:
    owner = f"{app}-5d9c7b6f8d"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owned(f"{owner}-{suffix}", owner),
        "spec": {**pod_spec(0, f"kube-api-access-{suffix}"), **part},
        "status": {"phase": "Running" if "nodeName" in part else "Pending"},
    }
