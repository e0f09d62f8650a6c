"""Pods with devices that leave their nodes: their devices are free, and they get others."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import Content, api_object, container, node
from tests.whatif.clusters import owned_pod

DRIVER = "gpu.example.com"
USE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}


def devices(*nodes: str) -> list[Content]:
    expression = f'device.driver == "{DRIVER}"'
    selectors = [{"cel": {"expression": expression}}]
    extended = {"selectors": selectors, "extendedResourceName": "example.com/gpu"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    template = api_object("resource.k8s.io/v1 ResourceClaimTemplate", "one-gpu", "default")
    return [
        api_object("resource.k8s.io/v1 DeviceClass", "gpu", spec=extended),
        {**template, "spec": spec},
        *(
            api_object(
                "resource.k8s.io/v1 ResourceSlice",
                f"slice-{name}",
                spec={
                    "driver": DRIVER,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            )
            for name in nodes
        ),
    ]


def workload(replicas: int, **spec: Any) -> Content:
    labels = {"app": "web"}
    pods = {"containers": [container("1")], **spec}
    template = {"metadata": {"labels": labels}, "spec": pods}
    own = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return api_object("apps/v1 Deployment", "web", "default", spec=own)


def asked(path: Path, objects: list[Content], *options: str) -> dict[str, Any]:
    file = write_objects(path / "in.yaml", *objects)
    return json.loads(answer("whatif", file, *options, "-o", "json"))


def test_a_pod_with_a_claim_of_its_own_moves_to_a_free_device(tmp_path: Path) -> None:
    nodes = [node(name) for name in ("n1", "n2")]
    objects = [*nodes, *devices("n1", "n2"), workload(1, **USE)]
    both = [asked(tmp_path, objects, "--drain", name) for name in ("n1", "n2")]
    [(source, target)] = [(m["source"], m["target"]) for one in both for m in one["moves"]]
    assert {source, target} == {"n1", "n2"}
    assert not any(one["leftOver"] for one in both)
    each = asked(tmp_path, objects, "--drain-each")
    assert [one["canGo"] for one in each["departures"]] == [True, True]


def test_a_pod_with_devices_behind_an_extended_resource_moves(tmp_path: Path) -> None:
    containers = [container("1", resources={"limits": {"example.com/gpu": 1}})]
    nodes = [node(name) for name in ("n1", "n2")]
    objects = [*nodes, *devices("n1", "n2"), workload(1, containers=containers)]
    both = [asked(tmp_path, objects, "--drain", name) for name in ("n1", "n2")]
    assert sum(len(one["moves"]) for one in both) == 1
    assert not any(one["leftOver"] for one in both)


def test_without_a_free_device_the_pod_lacks_one(tmp_path: Path) -> None:
    objects = [node("n1"), node("n2"), *devices("n1"), workload(1, **USE)]
    [left] = asked(tmp_path, objects, "--drain", "n1")["leftOver"]
    assert "cannot allocate all claims" in left["message"]


def test_further_pods_of_a_workload_have_claims_too(tmp_path: Path) -> None:
    nodes = [node(name) for name in ("n1", "n2", "n3")]
    objects = [*nodes, *devices("n1", "n2", "n3"), workload(2, **USE)]
    changed = asked(tmp_path, objects, "--scale", "Deployment/web=1", "-n", "default")
    assert [list(changed[state]["headroom"].values()) for state in ("before", "after")] == [
        [1],
        [2],
    ]


# ---- volumes of their own -------------------------------------------------------------------


def with_scratch(on: str) -> list[Content]:
    """A pod on a node with an ephemeral volume there, as a dump has it."""
    claim_spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volume = {"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec}}}
    running = owned_pod("web-0", on, volumes=[volume], uid="uid-of-pod")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "uid-of-pod"}
    claim = api_object("v1 PersistentVolumeClaim", "web-0-s", "default")
    claim["spec"] = {**claim_spec, "volumeName": "v"}
    claim["metadata"] |= {
        "uid": "uid-of-claim",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    terms = [{"matchExpressions": [host]}]
    spec = {
        "capacity": {"storage": "1Gi"},
        "storageClassName": "local",
        "claimRef": {"namespace": "default", "name": "web-0-s", "uid": "uid-of-claim"},
        "csi": {"driver": "local.example.com", "volumeHandle": "v"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    storage_class = api_object("storage.k8s.io/v1 StorageClass", "local")
    storage_class |= {
        "provisioner": "local.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = api_object("v1 PersistentVolume", "v", spec=spec, status={"phase": "Bound"})
    return [storage_class, volumes, claim, running]


def test_a_pod_with_an_ephemeral_volume_gets_another_one_on_its_new_node(tmp_path: Path) -> None:
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    changed = asked(tmp_path, [*nodes, *with_scratch("n1")], "--drain", "n1")
    assert [(move["source"], move["target"]) for move in changed["moves"]] == [("n1", "n2")]
    assert list(changed["before"]["headroom"].values()) == [7]
    each = asked(tmp_path, [*nodes, *with_scratch("n1")], "--drain-each")
    assert [one["canGo"] for one in each["departures"]] == [True, True]
