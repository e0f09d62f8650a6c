"""What a creation is warned of, and what not. tests/live compares with kube-scheduler."""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import NODE, POD, ApiObject, decode
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.testing import node, pod
from bayplan.webhook.judgement import WARNING_LENGTH_MAX, Judge, Judgement
from tests.kit.group_claims import GATES, group, member_spec, one_device

Content = dict[str, Any]
UNJUDGED, FITS = Judgement("unjudged"), Judgement("fits")


def judge_of(*objects: Content | ApiObject, config: SchedulerConfig | None = None) -> Judge:
    """A judge of nodes n1 (2 cpu) and n2 (1 cpu), and of more objects."""
    by_kind: dict[str, list[ApiObject]] = {NODE: [node("n1", cpu="2"), node("n2", cpu="1")]}
    for each in objects:
        if isinstance(each, dict):
            kind = f"{each['apiVersion']} {each['kind']}"
            by_kind.setdefault(kind, []).append(decode(kind, each))
        else:
            by_kind.setdefault(POD, []).append(each)
    listed = {kind: tuple(each) for kind, each in by_kind.items()}
    config, registry = config or SchedulerConfig(), default_registry(())
    return Judge(ClusterModel(ClusterPicture(store_of(listed)), config, registry), config, registry)


def spec(cpu: str = "4", **more: Any) -> Content:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"schedulerName": "default-scheduler", "containers": [container], **more}


def of_pod(judge: Judge, content: Content) -> Judgement:
    return judge.judge(POD, "default", {"metadata": {"name": "new"}, "spec": content})


def of_workload(judge: Judge, kind: str, content: Content, **more: Any) -> Judgement:
    labels = {"app": "web"}
    own = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": content},
        **more,
    }
    return judge.judge(kind, "default", {"metadata": {"name": "web"}, "spec": own})


def test_the_nearest_node_lacks_the_fewest_resources_and_the_smallest_share() -> None:
    content = spec("4")
    content["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    assert of_pod(judge_of(), content).warning == (
        "no node can hold this pod: 0/2 nodes are available: 2 Insufficient cpu, nearest n1 lacks "
        "2 cpu"
    )


def test_a_full_node_has_room_for_no_more_pod() -> None:
    config, registry = SchedulerConfig(), default_registry(())
    objects = {NODE: (node("n1", cpu="2", pods="1"),), POD: (pod("a", node="n1").pod,)}
    judge = Judge(
        ClusterModel(ClusterPicture(store_of(objects)), config, registry), config, registry
    )
    assert of_pod(judge, spec("1")).warning.endswith(
        "1 Too many pods, nearest n1 has room for no more pod"
    )


@pytest.mark.parametrize(
    "content",
    [
        spec(schedulingGates=[{"name": "quota"}]),
        spec(schedulerName="another"),
        spec(nodeName="n1"),
        spec(tolerations=[{"key": f"k{number}"} for number in range(1001)]),
        spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "missing"}]),
    ],
    ids=["gated", "of another scheduler", "with a node", "too large", "waiting for its claim"],
)
def test_a_pod_that_kube_scheduler_does_not_try_is_not_judged(content: Content) -> None:
    assert of_pod(judge_of(), content) == UNJUDGED


def test_a_pod_that_preemption_makes_room_for_is_not_warned_of() -> None:
    low = [pod("a", node="n1", cpu="2").pod, pod("b", node="n2", cpu="1").pod]
    assert of_pod(judge_of(*low), spec("2", priority=10)) == FITS
    assert of_pod(judge_of(*low), spec("2")).result == "warned"
    never = spec("2", priority=10, preemptionPolicy="Never")
    assert of_pod(judge_of(*low), never).result == "warned"


def test_a_judgement_leaves_no_trace() -> None:
    judge = judge_of(pod("a", node="n2", cpu="1").pod)
    for _ in range(3):
        assert of_pod(judge, spec("2")) == FITS
        assert of_workload(judge, "apps/v1 Deployment", spec("2")) == FITS


STORAGE = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
LATE = {
    **STORAGE,
    "metadata": {"name": "late"},
    "provisioner": "disk.example",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "storageClassName": "late",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}


def test_claims_that_a_controller_makes_after_the_pod_are_there() -> None:
    judge = judge_of(LATE)
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
    assert of_pod(judge, spec("1", volumes=[volume])) == FITS
    templates = [{"metadata": {"name": "data"}, "spec": CLAIM}]
    kind = "apps/v1 StatefulSet"
    assert of_workload(judge, kind, spec("1"), volumeClaimTemplates=templates) == FITS
    missing = {"name": "data", "persistentVolumeClaim": {"claimName": "none"}}
    assert of_pod(judge, spec("1", volumes=[missing])).warning == (
        'no node can hold this pod: 0/2 nodes are available: persistentvolumeclaim "none" not found'
    )


DEVICES = "resource.k8s.io/v1"
GROUP_VERSION = "scheduling.k8s.io/v1beta1"


def test_devices_of_a_claim_template_are_counted() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    template = {
        "apiVersion": DEVICES,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    device_class = {
        "apiVersion": DEVICES,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {},
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = {
        "apiVersion": DEVICES,
        "kind": "ResourceSlice",
        "metadata": {"name": "n1"},
        "spec": {"driver": "d", "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]},
    }
    content = spec("1", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one-gpu"}])
    assert of_pod(judge_of(template, device_class, devices), content) == FITS
    assert "cannot allocate" in of_pod(judge_of(template, device_class), content).warning


def test_a_member_uses_the_claim_of_its_group() -> None:
    """The only device belongs to the group already, so a member needs no other one."""
    config = config_from({**DEFAULT_CONFIG, "featureGates": GATES})
    content = member_spec(schedulerName="default-scheduler")
    objects = [*one_device(), *group_with_its_claim()]
    assert of_pod(judge_of(*objects, config=config), content) == FITS
    alone = {**content, "schedulingGroup": None}
    judge = judge_of(*objects, config=config)
    assert "cannot allocate all claims" in of_pod(judge, alone).warning


def group_with_its_claim() -> list[Content]:
    """The group, a placed member, and the claim of the group, which has the device of n1."""
    made = {"name": "gpu", "resourceClaimName": "g-gpu-x"}
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    owner = {"apiVersion": GROUP_VERSION, "kind": "PodGroup", "name": "g", "uid": "u"}
    result = {"request": "r", "driver": "d", "pool": "n1", "device": "gpu-0"}
    claim = {
        "apiVersion": DEVICES,
        "kind": "ResourceClaim",
        "metadata": {
            "name": "g-gpu-x",
            "namespace": "default",
            "uid": "c",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [user],
        },
    }
    own = group()
    own["metadata"]["uid"] = "u"
    own["spec"]["schedulingPolicy"]["gang"]["minCount"] = 1
    own["status"] = {"resourceClaimStatuses": [made]}
    return [own, claim]


def test_the_pods_of_a_workload_are_admitted() -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]},
    }
    bare = {"containers": [{"name": "c", "image": "i"}]}
    kind = "apps/v1 Deployment"
    assert of_workload(judge_of(), kind, bare) == FITS
    assert of_workload(judge_of(limits), kind, bare).warning.endswith("nearest n1 lacks 1 cpu")


def test_the_pods_of_a_workload_take_room_from_one_another() -> None:
    kind = "apps/v1 ReplicaSet"
    assert of_workload(judge_of(), kind, spec("1"), replicas=3) == FITS
    assert of_workload(judge_of(), kind, spec("1"), replicas=4).warning.startswith(
        "only 3 pods of this ReplicaSet have a node: 0/2 nodes are available: 2 Insufficient cpu"
    )
    assert of_workload(judge_of(), kind, spec("1"), replicas=0) == UNJUDGED


def test_a_daemon_set_is_judged_on_the_nodes_that_should_run_it() -> None:
    kind = "apps/v1 DaemonSet"
    assert of_workload(judge_of(), kind, spec("1")) == FITS
    assert of_workload(judge_of(), kind, spec("2")).warning == (
        "1 of 2 nodes of this DaemonSet cannot hold its pod: 1 Insufficient cpu"
    )
    elsewhere = {"kubernetes.io/hostname": "n1"}
    assert of_workload(judge_of(), kind, spec("2", nodeSelector=elsewhere)) == FITS
    low = pod("a", node="n1", cpu="2").pod
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
    }
    important = spec("2", nodeSelector=elsewhere, priorityClassName="high")
    assert of_workload(judge_of(low, priority_class), kind, important) == FITS


def test_a_long_warning_is_cut_and_keeps_the_nearest_node() -> None:
    tainted = [
        node(f"t{number}", taints=[{"key": f"k{number}", "effect": "NoSchedule"}])
        for number in range(40)
    ]
    config, registry = SchedulerConfig(), default_registry(())
    objects = ClusterPicture(store_of({NODE: (node("n1", cpu="2"), *tainted)}))
    judge = Judge(ClusterModel(objects, config, registry), config, registry)
    many = {f"resource.example/{number}": "1" for number in range(40)}
    content = spec("4")
    content["containers"][0]["resources"] = {"requests": many, "limits": many}
    warning = of_pod(judge, content).warning
    assert len(warning) <= WARNING_LENGTH_MAX
    assert msgspec.json.decode(msgspec.json.encode(warning)) == warning
