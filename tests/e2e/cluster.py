"""A cluster for the specs: a control plane with all controllers, nodes that KWOK plays, and
`bayplan run` as its only scheduler.

KWOK leaves out what a kubelet does with extended resources: the cluster copies them from a node's
capacity to its allocatable amounts. Each node has one pod of kube-system whose name contains the
names of the system pods that e2e.test looks for; without them it waits a minute before some specs.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.e2e.stages import Object, stages
from tests.e2e.suites import Suite
from tests.live.control_plane import LOOPBACK, POLL_SECONDS, READY_SECONDS, ControlPlane
from tests.live.processes import SchedulerProcess, free_port

NODE_COUNT = 4
ZONE_COUNT = 3
_ALLOCATABLE = {
    "cpu": "8",
    "memory": "32Gi",
    "pods": "110",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
_PRESSURES = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}
_SYSTEM_PODS = "kube-proxy-fluentd-elasticsearch-node-problem-detector"
_PATCH = "application/strategic-merge-patch+json"


class E2ECluster:
    """A running cluster. `cluster` starts and stops one."""

    def __init__(self, plane: ControlPlane, scheduler: SchedulerProcess) -> None:
        self._plane = plane
        self._scheduler = scheduler

    @property
    def kubeconfig(self) -> str:
        return self._plane.kubeconfig("admin")

    def check(self) -> None:
        """Raise AssertionError if a program has ended by itself."""
        ended = self._plane.ended()
        assert not ended, f"ended by themselves, with their exit codes: {ended}"
        code = self._scheduler.exit_code_now
        assert code is None, f"the scheduler ended with {code}:\n{self._scheduler.output[-3000:]}"


@contextlib.contextmanager
def cluster(binaries: Path, suite: Suite, log: Path) -> Iterator[E2ECluster]:
    """A cluster for a suite. ``log``: the file for the scheduler's output."""
    gates = [f"--feature-gates={suite.feature_gates}"] if suite.feature_gates else []
    config = [f"--runtime-config={suite.runtime_config}"] if suite.runtime_config else []
    plane = ControlPlane(
        binaries, "--allow-privileged=true", *gates, *config, disabled_admission=""
    )
    end = threading.Event()
    with contextlib.ExitStack() as stack:
        stack.callback(plane.stop)
        plane.start()
        _start_controllers(plane, gates)
        _start_kwok(plane)
        api = _Api(plane)
        _create_nodes(api)
        follower = threading.Thread(target=_copy_extended_resources, args=(api, end))
        follower.start()
        stack.callback(follower.join)
        stack.callback(end.set)
        scheduler = SchedulerProcess("scheduler", _scheduler_arguments(plane, suite), log)
        stack.callback(scheduler.end)
        yield E2ECluster(plane, scheduler)


def _scheduler_arguments(plane: ControlPlane, suite: Suite) -> list[str]:
    arguments = ["run", "--kubeconfig", plane.kubeconfig("admin"), "--secure-port"]
    arguments.append(str(free_port()))
    if suite.scheduler_gates:
        arguments += ["--feature-gates", suite.scheduler_gates]
    return arguments


def _start_controllers(plane: ControlPlane, gates: list[str]) -> None:
    plane.spawn(
        "kube-controller-manager",
        f"--kubeconfig={plane.kubeconfig('admin')}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={free_port()}",
        f"--cert-dir={plane.folder / 'controller-certs'}",
        f"--service-account-private-key-file={plane.folder / 'sa.key'}",
        f"--root-ca-file={plane.authority}",
        "--controllers=*",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--concurrent-namespace-syncs=20",
        *gates,
    )


def _start_kwok(plane: ControlPlane) -> None:
    config = plane.folder / "kwok.yaml"
    config.write_text(stages())
    plane.spawn(
        "kwok",
        f"--kubeconfig={plane.kubeconfig('admin')}",
        f"--config={config}",
        "--manage-all-nodes",
        "--node-lease-duration-seconds=40",
        "--cidr=198.18.0.0/16",
        f"--server-address={LOOPBACK}:{free_port()}",
    )


# ---- nodes ----------------------------------------------------------------------------------


def _create_nodes(api: "_Api") -> None:
    """Create the nodes; returns when each node is Ready and its system pod runs."""
    names = [f"node-{number}" for number in range(NODE_COUNT)]
    for number, name in enumerate(names):
        api.request("POST", "/api/v1/nodes", _node(number, name))
    account = "/api/v1/namespaces/kube-system/serviceaccounts/default"
    _wait("the default account of kube-system", lambda: api.exists(account))
    pods = "/api/v1/namespaces/kube-system/pods"
    for name in names:
        pod = api.request("POST", pods, _system_pod(name))
        scheduled = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
        path = f"{pods}/{pod['metadata']['name']}/status"
        api.request("PATCH", path, {"status": scheduled})
    _wait("nodes without taints", lambda: not any(_taints(api)))
    _wait("system pods", lambda: _phases(api, pods) == {"Running"})


def _taints(api: "_Api") -> Iterator[object]:
    for node in api.request("GET", "/api/v1/nodes")["items"]:
        yield from node["spec"].get("taints") or ()


def _phases(api: "_Api", pods: str) -> set[str | None]:
    return {pod["status"].get("phase") for pod in api.request("GET", pods)["items"]}


def _node(number: int, name: str) -> Object:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def condition(kind: str, status: str, reason: str) -> Object:
        times = {"lastHeartbeatTime": at, "lastTransitionTime": at}
        return {"type": kind, "status": status, "reason": reason, "message": reason, **times}

    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{number % ZONE_COUNT}",
    }
    for prefix in ("kubernetes.io", "beta.kubernetes.io"):
        labels |= {f"{prefix}/os": "linux", f"{prefix}/arch": "amd64"}
    info = dict.fromkeys(("bootID", "machineID", "systemUUID", "kubeProxyVersion"), "")
    info |= {
        "architecture": "amd64",
        "containerRuntimeVersion": "fake://1",
        "kernelVersion": "fake",
        "kubeletVersion": "v1.37.0",
        "operatingSystem": "linux",
        "osImage": "fake",
    }
    pressures = [condition(kind, "False", reason) for kind, reason in _PRESSURES.items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": _ALLOCATABLE,
            "allocatable": _ALLOCATABLE,
            # TEST-NET-1 of RFC 5737.
            "addresses": [
                {"type": "InternalIP", "address": f"192.0.2.{number + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [*pressures, condition("Ready", "True", "KubeletReady")],
            "nodeInfo": info,
        },
    }


def _system_pod(node: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{_SYSTEM_PODS}-{node}", "namespace": "kube-system"},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "system", "image": "fake/system"}],
        },
    }


def _copy_extended_resources(api: "_Api", end: threading.Event) -> None:
    """Until ``end``: copy each node's extended resources from its capacity to its allocatable."""
    while not end.wait(0.5):
        # A node may change or be deleted during this round; the next round handles it.
        with contextlib.suppress(OSError):
            for node in api.request("GET", "/api/v1/nodes")["items"]:
                _copy_for(api, node)


def _copy_for(api: "_Api", node: Object) -> None:
    capacity, allocatable = (
        {name: amount for name, amount in (node["status"].get(field) or {}).items() if "/" in name}
        for field in ("capacity", "allocatable")
    )
    if capacity == allocatable:
        return
    removed: dict[str, Any] = dict.fromkeys(allocatable.keys() - capacity.keys())
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    api.request("PATCH", path, {"status": {"allocatable": {**capacity, **removed}}})


# ---- the API --------------------------------------------------------------------------------


class _Api:
    """Requests to the API server that succeed."""

    def __init__(self, plane: ControlPlane) -> None:
        self._request = plane.request

    def request(self, method: str, path: str, content: Object | None = None) -> Any:
        """The answer's content. Raises OSError."""
        media_type = _PATCH if method == "PATCH" else "application/json"
        code, answer = self._request(method, path, content, media_type)
        if code >= 300:
            raise OSError(f"{method} {path}: {code} {answer}")
        return answer

    def exists(self, path: str) -> bool:
        return self._request("GET", path)[0] == 200


def _wait(what: str, is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, f"no {what} after {READY_SECONDS:.0f} s"
        time.sleep(POLL_SECONDS)
