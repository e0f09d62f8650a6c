"""The real kube-scheduler, and a user who writes to the cluster, for comparisons with Bayplan."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import msgspec
import pytest

from bayplan.adapters.live.client import MERGE_PATCH, ApiClient, ClientOptions, open_client
from bayplan.adapters.live.discovery import Discovery
from bayplan.api.storage_objects import BIND_COMPLETED, SELECTED_NODE
from bayplan.explain.explanation import Change
from bayplan.ports import ApiError, NotFoundError
from tests.live.control_plane import ControlPlane
from tests.live.mirror import Object

JSON_PATCH = "application/json-patch+json"
POLL_SECONDS = 0.1
#: The resources that tests create; workloads before their pods, claims before volumes.
_TEST_RESOURCES = (
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/api/v1/replicationcontrollers",
    "/apis/batch/v1/jobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/api/v1/pods",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/devicetaintrules",
    "/api/v1/nodes",
)
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 1,
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"qps": 1000, "burst": 1000},
}


@contextmanager
def kube_scheduler(
    plane: ControlPlane, folder: Path, assets: Path | None = None, **gates: bool
) -> Iterator[None]:
    """Run the real kube-scheduler from ``assets``; None: from $KUBEBUILDER_ASSETS."""
    folder_of_program = assets or Path(os.environ.get("KUBEBUILDER_ASSETS") or "")
    program = folder_of_program / "kube-scheduler"
    if not os.access(program, os.X_OK):
        pytest.skip("needs a kube-scheduler in KUBEBUILDER_ASSETS")
    connection = {**CONFIG["clientConnection"], "kubeconfig": plane.kubeconfig("admin")}
    config = folder / "config.json"
    content = {**CONFIG, "clientConnection": connection}
    config.write_bytes(msgspec.json.encode(content))
    with (folder / "kube-scheduler.log").open("wb") as log:
        flag = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
        command = [program, f"--config={config}", "--secure-port=0", f"--feature-gates={flag}"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@final
class Cluster:
    """Writes objects as a user does, and can undo all writes."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._discovery = Discovery(client)

    async def path(self, content: Object, subresource: str = "") -> str:
        kind, meta = f"{content['apiVersion']} {content['kind']}", content["metadata"]
        return await self.path_of(kind, meta.get("namespace", ""), meta["name"], subresource)

    async def path_of(self, kind: str, namespace: str, name: str, subresource: str = "") -> str:
        await self._discovery.discover((kind,))
        resource = self._discovery.resource(kind)
        assert resource is not None, kind
        return resource.path(namespace, name, subresource)

    async def create(self, content: Object) -> None:
        path = await self.path(content)
        await self.client.request("POST", path.rpartition("/")[0], content)
        if "status" in content:
            patch = {"status": content["status"]}
            status = await self.path(content, "status")
            await self.client.request("PATCH", status, patch, media_type=MERGE_PATCH)

    async def delete(self, path: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        try:
            await self.client.request("DELETE", path, options)
            patch = {"metadata": {"finalizers": None}}
            await self.client.request("PATCH", path, patch, media_type=MERGE_PATCH)
        except NotFoundError:
            return
        while True:
            try:
                await self.client.get(path)
            except NotFoundError:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def apply(self, change: Change) -> list[Object]:
        """Apply a change. Returns the records for `undo`: path, object before, kind."""
        path = await self.path_of(change.kind, change.namespace, change.name)
        before: Object | None = None
        with suppress(NotFoundError):
            before = await self.client.get(path)
        if change.verb == "patch":
            body = msgspec.json.encode(change.patch)
            await self.client.request("PATCH", path, body, media_type=JSON_PATCH)
        elif change.verb in ("delete", "replace"):
            await self.delete(path)
        if change.verb in ("create", "replace"):
            assert change.content is not None
            await self.create(change.content)
        return [{"path": path, "before": before, "kind": change.kind}]

    async def undo(self, applied: list[Object]) -> None:
        for each in reversed(applied):
            path, before = each["path"], each["before"]
            if before is None:
                await self.delete(path)
            elif each["kind"] == "v1 Node":
                present = await self.client.get(path)
                present["spec"] = before["spec"]
                present["metadata"]["labels"] = before["metadata"]["labels"]
                await self.client.request("PUT", path, present)
            elif each["kind"] == "v1 Pod" and before["spec"].get("nodeName"):
                for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                    before["metadata"].pop(name, None)
                before.pop("status")
                before |= {"apiVersion": "v1", "kind": "Pod"}
                await self.create(before)

    async def empty(self) -> None:
        """Delete everything that a test creates, in all namespaces."""
        while any([await self._delete_all(resource) for resource in _TEST_RESOURCES]):
            await asyncio.sleep(POLL_SECONDS)

    async def delete_priority_classes(self) -> None:
        """Delete the classes of other tests: a pod that may preempt has other fixes."""
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        for item in (await self.client.get(classes))["items"]:
            name = item["metadata"]["name"]
            if not name.startswith("system-"):
                await self.delete(f"{classes}/{name}")

    async def _delete_all(self, resource: str) -> bool:
        """Delete all objects of the resource. Returns whether there were any."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        items = (await self.client.get(resource))["items"]
        for item in items:
            meta = item["metadata"]
            path, _, plural = resource.rpartition("/")
            namespace = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            one = f"{path}{namespace}/{plural}/{meta['name']}"
            with suppress(NotFoundError):
                await self.client.request("DELETE", one, options)
                if meta.get("finalizers"):
                    patch = {"metadata": {"finalizers": None}}
                    await self.client.request("PATCH", one, patch, media_type=MERGE_PATCH)
        return bool(items)

    async def provision(self, namespace: str) -> None:
        """Act as a provisioner and the volume controller: bind claims that have a selected node,
        and claims that a volume references."""
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        unbound = [
            claim
            for claim in (await self.client.get(claims))["items"]
            if not claim["spec"].get("volumeName")
        ]
        if not unbound:
            return
        volumes = (await self.client.get("/api/v1/persistentvolumes"))["items"]
        reserved = {
            volume["spec"]["claimRef"].get("uid"): volume["metadata"]["name"]
            for volume in volumes
            if volume["spec"].get("claimRef")
        }
        for claim in unbound:
            meta = claim["metadata"]
            volume = reserved.get(meta["uid"])
            if volume is None:
                if SELECTED_NODE not in (meta.get("annotations") or {}):
                    continue
                volume = await self._provision_one(claim)
            annotations = {BIND_COMPLETED: "yes"}
            patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}
            path = f"{claims}/{meta['name']}"
            await self.client.request("PATCH", path, patch, media_type=MERGE_PATCH)

    async def _provision_one(self, claim: Object) -> str:
        """Create a volume for a claim. Returns its name."""
        meta = claim["metadata"]
        volume = f"made-{meta['uid']}"
        reference = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        await self.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": claim["spec"].get("storageClassName", ""),
                    "csi": {"driver": "disk.example", "volumeHandle": volume},
                    "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | reference,
                },
            }
        )
        return volume

    async def until(self, path: str, seconds: float, is_so: Any) -> Object:
        """The newest state of a pod when the condition holds or when the time is over."""
        pod: Object = {}
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            try:
                pod = await self.client.get(path)
            except ApiError:
                pod = {}
            if pod and is_so(pod):
                break
            await self.provision("default")
            await asyncio.sleep(POLL_SECONDS)
        return pod


async def empty(plane: ControlPlane) -> None:
    """Delete everything that a test creates."""
    async with open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client:
        await Cluster(client).empty()


def condition_of(pod: Object) -> Object:
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def node_of(pod: Object) -> str:
    return pod.get("spec", {}).get("nodeName", "")
