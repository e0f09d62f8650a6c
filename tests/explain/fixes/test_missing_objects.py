"""Objects that a pod refers to and the cluster lacks, and claims that request too much."""

from typing import Any

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, ApiObject, decode
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Fix
from bayplan.testing import node, pod
from tests.model.clusters import model_of

VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
LOCAL = {
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "a"}, {"name": "b"}],
    },
}
NODE_1 = node("n1", labels={"kubernetes.io/hostname": "n1"})
CLASS = {"metadata": {"name": "gpu"}, "spec": {}}


def fixes(waiting: Any, objects: dict[str, list[dict[str, Any]]]) -> dict[str, Fix]:
    decoded: dict[str, list[ApiObject]] = {
        kind: [decode(kind, each) for each in contents] for kind, contents in objects.items()
    }
    explanation = explain_pod(model_of([NODE_1], [waiting], decoded), "default/p")
    return {"; ".join(fix.steps): fix for fix in explanation.fixes}


def claim(**spec: Any) -> dict[str, Any]:
    requests = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "data", "namespace": "default"}, "spec": {**requests, **spec}}


def test_a_local_volume_is_created_if_no_provisioner_exists() -> None:
    objects = {
        STORAGE_CLASS: [LOCAL],
        PERSISTENT_VOLUME_CLAIM: [claim(storageClassName="local")],
    }
    solutions = fixes(pod("p", spec={"volumes": VOLUMES}), objects)
    fix = solutions["create the missing PersistentVolume data-n1"]
    assert fix.node == "n1"
    assert "path: /mnt/disks/data-n1" in fix.manifest


def test_the_volume_that_a_claim_is_bound_to_is_created() -> None:
    bound = claim(volumeName="disk", storageClassName="")
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    solutions = fixes(pod("p", spec={"volumes": VOLUMES}), {PERSISTENT_VOLUME_CLAIM: [bound]})
    assert "create the missing PersistentVolume disk" in solutions


def device_claim(count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "metadata": {"name": "gpus", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def waiting_for_devices() -> Any:
    return pod("p", spec={"resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}]})


def test_the_count_of_a_claim_is_lowered_to_the_existing_devices() -> None:
    objects = {
        DEVICE_CLASS: [CLASS],
        RESOURCE_SLICE: [SLICE],
        RESOURCE_CLAIM: [device_claim(4)],
    }
    solutions = fixes(waiting_for_devices(), objects)
    step = "lower the request gpu of ResourceClaim default/gpus from 4 to 2 devices"
    (command,) = solutions[step].commands
    assert command.startswith("kubectl get resourceclaim.resource.k8s.io/gpus -n default -o json")
    assert "count: 2" in solutions[step].manifest


def test_a_device_class_is_created_for_an_existing_driver() -> None:
    objects = {RESOURCE_SLICE: [SLICE], RESOURCE_CLAIM: [device_claim(1)]}
    solutions = fixes(waiting_for_devices(), objects)
    fix = solutions["create the missing DeviceClass gpu"]
    assert "device.driver == 'gpu.example.com'" in fix.manifest


def test_a_class_that_binds_at_once_is_made_to_bind_late() -> None:
    at_once = {"metadata": {"name": "slow"}, "provisioner": "disk.example.com"}
    objects = {STORAGE_CLASS: [at_once], PERSISTENT_VOLUME_CLAIM: [claim(storageClassName="slow")]}
    solutions = fixes(pod("p", spec={"volumes": VOLUMES}), objects)
    step = (
        "let StorageClass slow bind late: volumeBindingMode WaitForFirstConsumer in place of "
        "Immediate"
    )
    fix = solutions[step]
    assert fix.node == "n1"
    (command,) = fix.commands
    assert command.startswith("kubectl get storageclass.storage.k8s.io/slow -o json | ")
    assert fix.notes == ("the class is created again; claims of it that are bound stay bound",)
