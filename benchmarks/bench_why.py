"""How long `bayplan why` takes on a live cluster, over the time in which its lists can be fetched.

    python -m benchmarks why [--nodes 5000] [--pods 50000] [--rounds 5]
        [--markdown benchmarks/RESULTS.md]

etcd and kube-apiserver are real: see `tests.live.binaries`. Nodes and pods are written into etcd as
JSON, in the size that they have in a cluster with kubelets. `bayplan why` is a process of its own
and explains a pod of a Deployment that fits nowhere, with its fixes. The other side fetches the
same lists in the same pages, over as many connections and compressed as kubectl accepts them, and
reads only the token of the next page. The audit log of the API server names the lists. Both sides
are measured in turn, in wall time; the best round of each counts, because other programs only add
time. Exit status 1: the ratio is above the bound in ranges.yaml, or the answer is not the expected
one.
"""

import http.client
import os
import re
import resource
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import click
import msgspec

from bayplan.adapters.live.transport import GZIP
from bayplan.model.live_reading import CONNECTIONS_MAX
from benchmarks.bench_start import environment
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.ranges import ranges
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import LOOPBACK, ControlPlane, token

HEADINGS = (
    "nodes",
    "pods",
    "MB",
    "requests",
    "lists: s",
    "why: s",
    "why: CPU s",
    "ratio",
    "wanted",
)
#: The pod in question.
POD = "default/trainer-5b7d8c9f4-x2x7q"
_OWNER = POD.partition("/")[2].rpartition("-")[0]
_WORKLOADS, _ZONES, _NODE_CPU = 500, 3, 32
#: More cpu than any node has free.
POD_CPU = 30
_AUDIT_RULES = ({"level": "Metadata", "verbs": ["list"], "users": ["admin"]},)
#: The token comes before the items.
_NEXT = re.compile(rb'"continue":"([^"]+)"')
_HEAD_BYTES = 2000
_CREATED = "2026-11-01T08:00:00Z"

Object = dict[str, Any]


# ---- the cluster --------------------------------------------------------------------------------


def stored_objects(node_count: int, pod_count: int) -> Iterator[tuple[str, Object]]:
    """Key in etcd → object."""
    for number in range(node_count):
        name = f"node-{number:05d}"
        yield f"/registry/minions/{name}", _node(name, number)
        yield f"/registry/csinodes/{name}", _csi_node(name)
    for number in range(_WORKLOADS):
        yield f"/registry/replicasets/default/{_set_name(number)}", replica_set(number)
        yield f"/registry/services/specs/default/app-{number}", _service(number)
    for number in range(pod_count):
        # The pods of a node belong to different workloads.
        workload = (number + 37 * (number // node_count)) % _WORKLOADS
        pod = _placed_pod(number, workload, f"node-{number % node_count:05d}")
        yield f"/registry/pods/default/{pod['metadata']['name']}", pod
    yield f"/registry/replicasets/default/{_OWNER}", replica_set(0, _OWNER)
    name = POD.partition("/")[2]
    yield f"/registry/pods/default/{name}", _waiting_pod(name)


def metadata_of(name: str, **members: Any) -> Object:
    stamp = {"creationTimestamp": _CREATED, "uid": f"00000000-0000-4000-8000-{hash_of(name):012x}"}
    return {"name": name, **stamp, **members}


def hash_of(name: str) -> int:
    """48 bits that differ between names."""
    value = 0
    for byte in name.encode():
        value = (value * 257 + byte + 1) % (2**48 - 59)
    return value


def _managed_fields(manager: str, fields: Object, subresource: str = "") -> Object:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry


def _field_set(content: Any) -> Object:
    """The fields of an object as a manager owns them."""
    if not isinstance(content, dict):
        return {}
    return {f"f:{name}": _field_set(each) for name, each in content.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _node(name: str, number: int) -> Object:
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "c32",
        "topology.kubernetes.io/region": "r1",
        "topology.kubernetes.io/zone": f"r1-{number % _ZONES}",
    }
    amounts = {"cpu": str(_NODE_CPU), "memory": "128Gi", "pods": "110", "ephemeral-storage": "90Gi"}
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": _CREATED,
            "lastTransitionTime": _CREATED,
            "reason": f"Kubelet{kind}",
            "message": f"kubelet reports {kind}",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example/app-{each}:v1"], "sizeBytes": 100_000_000 + each}
        for each in range(number % 7, number % 7 + 10)
    ]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": f"10.1.{number // 250}.{number % 250}"}],
        "nodeInfo": {
            "kubeletVersion": "v1.37.0",
            "osImage": "Linux",
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kernelVersion": "6.12",
            "containerRuntimeVersion": "containerd://2.2",
        },
        "images": images,
    }
    fields = [_managed_fields("kubelet", _field_set({"status": status}), "status")]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata_of(name, labels=labels, managedFields=fields),
        "spec": {"podCIDR": f"10.{number // 250}.{number % 250}.0/24"},
        "status": status,
    }


def _csi_node(name: str) -> Object:
    driver = {
        "name": "csi.example",
        "nodeID": name,
        "topologyKeys": [],
        "allocatable": {"count": 24},
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata_of(name),
        "spec": {"drivers": [driver]},
    }


def _set_name(workload: int) -> str:
    return f"app-{workload}-5d9c7b6f8d"


def replica_set(workload: int, name: str = "") -> Object:
    labels = {"app": f"app-{workload}", "pod-template-hash": "5d9c7b6f8d"}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(workload)}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata_of(name or _set_name(workload), namespace="default", labels=labels),
        "spec": {"replicas": 100, "selector": selector, "template": template},
    }


def _service(workload: int) -> Object:
    spec = {"selector": {"app": f"app-{workload}"}, "ports": [{"port": 80}], "clusterIP": "None"}
    metadata = metadata_of(f"app-{workload}", namespace="default")
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def pod_spec(workload: int, token_volume: str = "kube-api-access") -> Object:
    """The spec of a pod with the defaults of the API server.

    ``token_volume``: the admission of ServiceAccounts gives this volume a name of its own in each
    pod.
    """
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    container = {
        "name": "app",
        "image": f"registry.example/app-{workload % 20}:v1",
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(8)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "1500m", "memory": "3Gi"}, "limits": {"memory": "4Gi"}},
        "readinessProbe": {**probe, "timeoutSeconds": 1, "failureThreshold": 3},
        "livenessProbe": {**probe, "timeoutSeconds": 1, "failureThreshold": 3},
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {
                "name": token_volume,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
        ],
    }
    token_source = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    volumes = [
        {"name": "config", "configMap": {"name": f"app-{workload}", "defaultMode": 420}},
        {"name": token_volume, "projected": {"sources": [token_source], "defaultMode": 420}},
    ]
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    return {
        "containers": [container],
        "volumes": volumes,
        "tolerations": tolerations,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": f"app-{workload}",
        "serviceAccount": f"app-{workload}",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def owned(name: str, owner: str) -> Object:
    """Metadata of a pod of a ReplicaSet."""
    labels = {"app": owner.rpartition("-")[0], "pod-template-hash": owner.rpartition("-")[2]}
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": metadata_of(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return metadata_of(
        name,
        namespace="default",
        generateName=f"{owner}-",
        labels=labels,
        ownerReferences=[reference],
    )


def _placed_pod(number: int, workload: int, node: str) -> Object:
    owner = _set_name(workload)
    metadata = owned(f"{owner}-{number:05x}", owner)
    spec = {**pod_spec(workload, f"kube-api-access-{number:05x}"), "nodeName": node}
    status = {
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": _CREATED,
                "observedGeneration": 1,
            }
            for kind in (
                "PodReadyToStartContainers",
                "Initialized",
                "Ready",
                "ContainersReady",
                "PodScheduled",
            )
        ],
        "hostIP": "10.1.0.1",
        "podIP": f"10.2.{number // 250 % 250}.{number % 250}",
        "startTime": _CREATED,
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": "app",
                "state": {"running": {"startedAt": _CREATED}},
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": f"registry.example/app-{workload % 20}:v1",
                "imageID": f"registry.example/app@sha256:{hash_of(owner):064x}",
                "containerID": f"containerd://{hash_of(metadata['name']):064x}",
                "resources": spec["containers"][0]["resources"],
                "allocatedResources": spec["containers"][0]["resources"]["requests"],
            }
        ],
    }
    metadata["managedFields"] = [
        _managed_fields("kube-controller-manager", _field_set({"spec": pod_spec(workload)})),
        _managed_fields("kubelet", _field_set({"status": status}), "status"),
    ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _waiting_pod(name: str) -> Object:
    spec = pod_spec(0, "kube-api-access-x2x7q")
    spec["containers"][0]["resources"] = {"requests": {"cpu": str(POD_CPU), "memory": "8Gi"}}
    spec["nodeSelector"] = {"topology.kubernetes.io/zone": "r1-1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owned(name, _OWNER),
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


# ---- the two sides ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of both sides in one round."""

    list_seconds: float
    why_seconds: float
    #: Processor time of the command.
    why_cpu_seconds: float


def why(kubeconfig: str, env: Mapping[str, str]) -> tuple[float, float, Object]:
    """Seconds, CPU seconds, and the answer of the command. Exits if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = perf_counter()
    script = "from bayplan.cli import main; main()"
    arguments = ("why", POD, "--kubeconfig", kubeconfig, "-o", "json")
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], check=False, capture_output=True, env=env
    )
    seconds = perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != 1:  # the pod does not fit
        sys.exit(f"bayplan why ended with status {done.returncode}: {done.stderr.decode()}")
    return seconds, cpu_seconds, msgspec.json.decode(done.stdout)


class Lists:
    """Fetches lists as `bayplan why` does, and discards them."""

    def __init__(self, control_plane: ControlPlane, paths: Sequence[str]) -> None:
        """``paths``: the paths of the first pages."""
        self._port = control_plane.port
        self._context = control_plane.client_ssl_context()
        #: The longest list first.
        self._paths = sorted(paths, key=lambda path: not path.startswith("/api/v1/pods"))
        self.byte_count = 0
        self.request_count = 0

    def fetch(self) -> float:
        """Fetch all lists. Returns the seconds."""
        self.byte_count = self.request_count = 0
        start = perf_counter()
        with ThreadPoolExecutor(CONNECTIONS_MAX) as pool:
            for bytes_read, requests in pool.map(self._one, self._paths):
                self.byte_count += bytes_read
                self.request_count += requests
        return perf_counter() - start

    def _one(self, path: str) -> tuple[int, int]:
        """Fetch one list. Returns its bytes and requests."""
        connection = http.client.HTTPSConnection(LOOPBACK, self._port, context=self._context)
        headers = {
            "Authorization": f"Bearer {token('admin')}",
            "Accept": "application/json",
            "Accept-Encoding": GZIP,
        }
        byte_count, request_count, page = 0, 0, path
        while page:
            connection.request("GET", page, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.client.OK:
                sys.exit(f"GET {page}: {answer.status} {body[:200]!r}")
            byte_count, request_count = byte_count + len(body), request_count + 1
            is_compressed = answer.headers.get("Content-Encoding") == GZIP
            after = _NEXT.search(beginning(body) if is_compressed else body, 0, _HEAD_BYTES)
            page = "" if after is None else f"{path}&{urlencode({'continue': after[1].decode()})}"
        connection.close()
        return byte_count, request_count


def beginning(body: bytes) -> bytes:
    """The first bytes of a compressed page."""
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, _HEAD_BYTES)


def listed_paths(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first pages of the lists in an audit log."""
    paths: dict[str, None] = {}
    for entry in entries:
        parts = urlsplit(entry["requestURI"])
        query = dict(parse_qsl(parts.query))
        if "continue" not in query:
            paths[f"{parts.path}?{urlencode(query)}"] = None
    return list(paths)


# ---- the command --------------------------------------------------------------------------------


def measure(
    control_plane: ControlPlane, node_count: int, pod_count: int, round_count: int
) -> tuple[Lists, list[Round]]:
    """Both sides in turn, in a cluster of this size."""
    control_plane.store(
        (key, msgspec.json.encode(content))
        for key, content in stored_objects(node_count, pod_count)
    )
    kubeconfig = control_plane.kubeconfig("admin")
    # The first run writes the bytecode, as pip does it.
    env = environment(str(control_plane.folder / "bytecode"), without_bytecode=False)
    _, _, answer = why(kubeconfig, env)
    _check(answer, node_count)
    paths = listed_paths([e for e in control_plane.audited() if "limit=" in e["requestURI"]])
    lists = Lists(control_plane, paths)
    lists.fetch()
    rounds: list[Round] = []
    for _ in range(round_count):
        list_seconds = lists.fetch()
        seconds, cpu_seconds, answer = why(kubeconfig, env)
        _check(answer, node_count)
        rounds.append(Round(list_seconds, seconds, cpu_seconds))
        print(f"lists {list_seconds:.2f} s, why {seconds:.2f} s ({cpu_seconds:.2f} s CPU)")
    return lists, rounds


def _check(answer: Object, node_count: int) -> None:
    if answer["nodeCount"] != node_count or not answer["fixes"]:
        sys.exit(f"why answers for {answer['nodeCount']} of {node_count} nodes: {answer}")


@click.command(help=__doc__)
@click.option("--nodes", "node_count", default=5000, show_default=True)
@click.option("--pods", "pod_count", default=50_000, show_default=True)
@click.option("--rounds", "round_count", default=5, show_default=True)
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(node_count: int, pod_count: int, round_count: int, markdown: Path | None) -> None:
    control_plane = ControlPlane(PROGRAMS.get(), audit_rules=_AUDIT_RULES)
    try:
        control_plane.start()
        lists, rounds = measure(control_plane, node_count, pod_count, round_count)
    finally:
        control_plane.stop()
    list_seconds = min(each.list_seconds for each in rounds)
    why_seconds = min(each.why_seconds for each in rounds)
    ratio, at_most = why_seconds / list_seconds, ranges().why_at_most
    cells = (
        f"{node_count:,}",
        f"{pod_count:,}",
        f"{lists.byte_count / 1e6:,.0f}",
        f"{lists.request_count:,}",
        f"{list_seconds:.2f}",
        f"{why_seconds:.2f}",
        f"{min(each.why_cpu_seconds for each in rounds):.2f}",
        f"{ratio:.2f}",
        f"{at_most:g} {'met' if ratio <= at_most else 'MISSED'}",
    )
    table = markdown_table(HEADINGS, [cells])
    print("\n".join(table))
    if markdown is not None:
        measured = f"Measured {today()}: {machine()}. Load average {os.getloadavg()[0]:.0f}."
        lines = [measured, "", "    python -m benchmarks why", "", *table]
        put_between(markdown, "why", lines)
    sys.exit(ratio > at_most)
