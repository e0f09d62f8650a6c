"""Nodes as providers make them: their names, labels, taints and amounts.

A node is Ready, cordoned, or does not answer.
"""

from dataclasses import dataclass
from typing import Any

from tests.cases.dump_objects import Content, Maker

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Machine:
    """A type of machine. cpu in thousandths, memory in MiB: what pods may use."""

    name: str
    cpu_milli: int
    memory_mib: int
    pods: int
    gpus: int = 0


#: Provider → its types of machines, the frequent ones first.
MACHINES = {
    "eks": (
        Machine("m6i.xlarge", 3920, 14900, 58),
        Machine("c6i.2xlarge", 7910, 14700, 58),
        Machine("r6g.4xlarge", 15890, 124000, 234),
        Machine("g5.2xlarge", 7910, 30500, 58, gpus=1),
    ),
    "gke": (
        Machine("e2-standard-4", 3920, 12900, 110),
        Machine("n2-highmem-8", 7910, 58000, 110),
        Machine("a2-highgpu-2g", 23850, 160000, 110, gpus=2),
    ),
    "on-prem": (
        Machine("r640", 47500, 380000, 250),
        Machine("r6525", 63500, 500000, 250),
        Machine("dgx", 127000, 1000000, 250, gpus=8),
    ),
}
_REGIONS = {"eks": "eu-west-1", "gke": "europe-west1", "on-prem": "dc1"}


@dataclass(frozen=True)
class DrawnNode:
    content: Content
    machine: Machine
    #: Whether the pods of applications may be placed there.
    is_open: bool

    @property
    def name(self) -> str:
        return self.content["metadata"]["name"]

    @property
    def labels(self) -> dict[str, str]:
        return self.content["metadata"]["labels"]


def draw_nodes(maker: Maker, provider: str, count: int) -> list[DrawnNode]:
    names: set[str] = set()
    nodes: list[DrawnNode] = []
    for index in range(count):
        is_control_plane = provider == "on-prem" and index < 3
        machine = _machine(maker, provider, index)
        name = _name(maker, provider, index, machine, is_control_plane)
        while name in names:
            name = _name(maker, provider, index, machine, is_control_plane)
        names.add(name)
        nodes.append(_node(maker, provider, name, machine, is_control_plane))
    return nodes


def _machine(maker: Maker, provider: str, index: int) -> Machine:
    machines = MACHINES[provider]
    if index == 3:
        return machines[-1]
    weights = [2 ** (len(machines) - rank) for rank in range(len(machines))]
    return maker.stream.choices(machines, weights)[0]


def _name(maker: Maker, provider: str, index: int, machine: Machine, is_control_plane: bool) -> str:
    draw = maker.stream.randrange
    if provider == "eks":
        return f"ip-10-{draw(4)}-{draw(256)}-{draw(1, 255)}.eu-west-1.compute.internal"
    if provider == "gke":
        pool = "gpu-pool" if machine.gpus else "default-pool"
        return f"gke-prod-{pool}-{draw(16**8):08x}-{maker.suffix(4)}"
    return f"cp-{index + 1}" if is_control_plane else f"worker-{index:04}"


def _labels(maker: Maker, provider: str, name: str, machine: Machine) -> dict[str, str]:
    region = _REGIONS[provider]
    zone = f"{region}{'-' * (provider == 'gke')}{maker.stream.choice('abc')}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64" if "g." in machine.name and not machine.gpus else "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    if provider == "on-prem":
        rack = f"rack-{maker.stream.randrange(1, 13):02}"
        return {**labels, "example.com/rack": rack, "example.com/model": machine.name}
    labels |= {
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": zone,
    }
    if provider == "eks":
        labels |= {
            "eks.amazonaws.com/capacityType": "ON_DEMAND",
            "eks.amazonaws.com/nodegroup": machine.name.replace(".", "-"),
            "topology.ebs.csi.aws.com/zone": zone,
        }
    else:
        labels |= {
            "cloud.google.com/gke-nodepool": "gpu-pool" if machine.gpus else "default-pool",
            "cloud.google.com/machine-family": machine.name.partition("-")[0],
            "topology.gke.io/zone": zone,
        }
    if maker.chance(0.2):
        spot = "cloud.google.com/gke-spot" if provider == "gke" else "karpenter.sh/capacity-type"
        labels[spot] = "true" if provider == "gke" else "spot"
    return labels


def _node(
    maker: Maker, provider: str, name: str, machine: Machine, is_control_plane: bool
) -> DrawnNode:
    labels = _labels(maker, provider, name, machine)
    taints: list[Content] = []
    spec: Content = {"providerID": f"{provider}:///{name}"}
    if is_control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
        taints.append({"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"})
    if machine.gpus:
        labels["nvidia.com/gpu.present"] = "true"
        taints.append({"effect": "NoSchedule", "key": GPU, "value": "present"})
    is_ready = is_control_plane or not maker.chance(0.03)
    is_cordoned = not is_control_plane and maker.chance(0.04)
    if is_cordoned:
        spec["unschedulable"] = True
        taints.append(_own_taint(maker, "unschedulable", "NoSchedule"))
    if not is_ready:
        effects = ("NoSchedule", "NoExecute")
        taints += [_own_taint(maker, "unreachable", effect) for effect in effects]
    if taints:
        spec["taints"] = taints
    content = maker.make(
        "v1 Node",
        name,
        labels=labels,
        annotations={
            "csi.volume.kubernetes.io/nodeid": f'{{"csi.example.com":"{name}"}}',
            "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        },
        spec=spec,
        status=_status(maker, name, machine, is_ready),
    )
    is_open = is_ready and not taints
    return DrawnNode(content, machine, is_open)


def _own_taint(maker: Maker, name: str, effect: str) -> Content:
    return {"effect": effect, "key": f"node.kubernetes.io/{name}", "timeAdded": maker.time()}


def _status(maker: Maker, name: str, machine: Machine, is_ready: bool) -> Content:
    more: dict[str, Any] = {GPU: str(machine.gpus)} if machine.gpus else {}
    allocatable = {
        "cpu": f"{machine.cpu_milli}m",
        "ephemeral-storage": "95551679124",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{machine.memory_mib * 1024}Ki",
        "pods": str(machine.pods),
        **more,
    }
    capacity = {**allocatable, "cpu": str(machine.cpu_milli // 1000 + 1)}
    status = "True" if is_ready else "Unknown"
    conditions = [
        {
            "lastHeartbeatTime": maker.time(),
            "lastTransitionTime": maker.time(),
            "message": f"kubelet has no {kind}",
            "reason": f"KubeletHasNo{kind}",
            "status": "False" if is_ready else "Unknown",
            "type": kind,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    ready = {**conditions[0], "reason": "KubeletReady", "status": status, "type": "Ready"}
    return {
        "addresses": [
            {"address": "10.0.0.1", "type": "InternalIP"},
            {"address": name, "type": "Hostname"},
        ],
        "allocatable": allocatable,
        "capacity": capacity,
        "conditions": [*conditions, ready],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [
            {"names": [f"registry.example.com/web@sha256:{maker.uid()}"], "sizeBytes": 81_000_000}
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "containerRuntimeVersion": "containerd://1.7.27",
            "kernelVersion": "6.1.0",
            "kubeletVersion": "v1.33.1",
            "operatingSystem": "linux",
        },
    }
