"""Cases whose answers depend on a feature gate, drawn from a seed.

    python -m tests.parity.gate_cases SUITE SEED | RECORDER > tests/parity/gated/SUITE.jsonl

prints the cases of a suite without answers. RECORDER is a program around the packages of
kube-scheduler (of the suite's release). It reads cases, sets the feature gates of the process to
their defaults and to the field `gates` of each case, and writes the cases with the answers of the
real plugins; for cases with an event, those of the real hints and of the real queue.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from bayplan.rng import Stream, stable_hash
from tests.parity import gate_devices

Json = dict[str, Any]

#: Among them numbers that are not in canonical form, and one of more than 64 bits.
_TAINT_VALUES = ("1", "5", "-3", "0", "07", "+5", "x", "", str(2**63 - 1), "99999999999999999999")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


class Draws(Stream):
    """Objects of one case, drawn."""

    def several(self, count: int, make: Callable[[int], Any]) -> list[Any]:
        return [make(index) for index in range(self.randint(1, count))]

    def node(self, name: str, **parts: Json) -> Json:
        allocatable = {"cpu": self.choice(("2", "4")), "memory": "8Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, "zone": self.choice(("a", "b"))}
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": parts.get("spec", {}),
            "status": {"allocatable": {**allocatable, **parts.get("allocatable", {})}},
        }

    def pod(self, name: str, spec: Json, labels: Mapping[str, str] | None = None) -> Json:
        request = {"cpu": self.choice(("100m", "500m", "1"))}
        container = {"name": "c", "resources": {"requests": request}}
        meta = {"name": name, "labels": dict(labels or {})}
        return {"metadata": meta, "spec": {"containers": [container], **spec}}


def _tolerations(draws: Draws) -> list[Json]:
    def toleration(_: int) -> Json:
        operator = draws.choice(("Gt", "Lt", "Gt", "Lt", "Equal", "Exists"))
        made = {"key": draws.choice(("sla", "cost")), "operator": operator}
        if operator != "Exists":
            made["value"] = draws.choice(_TAINT_VALUES)
        effect = draws.choice((*_EFFECTS, ""))
        return {**made, "effect": effect} if effect else made

    return draws.several(3, toleration)


def _taints(draws: Draws) -> list[Json]:
    def taint(_: int) -> Json:
        made = {"key": draws.choice(("sla", "cost")), "effect": draws.choice(_EFFECTS)}
        return {**made, "value": draws.choice(_TAINT_VALUES)}

    return draws.several(2, taint)


def compared_taints(draws: Draws) -> Json:
    """Numbers in taints and tolerations, which Filter, Score and spreading compare."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": draws.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": "a"}},
        "nodeTaintsPolicy": "Honor",
    }
    nodes = [draws.node(f"n{i}", spec={"taints": _taints(draws)}) for i in range(6)]
    pods = [
        draws.pod(
            f"p{i}",
            {"tolerations": _tolerations(draws), "topologySpreadConstraints": [spread]},
            {"app": "a"},
        )
        for i in range(3)
    ]
    return {"cluster": {"nodes": nodes}, "pending": pods}


def taint_events(draws: Draws) -> Json:
    """A pod that waits because of taints, and a node whose taints change."""
    numbers = ("1", "5", "-3", "0")
    before, after = draws.node("n0"), draws.node("n0")
    after["status"], after["metadata"] = before["status"], before["metadata"]
    for each in (before, after):
        taint = {"key": "sla", "value": draws.choice(numbers), "effect": "NoSchedule"}
        each["spec"] = {"taints": [taint]}
    operator, limit = draws.choice(("Gt", "Lt")), draws.choice(numbers)
    toleration = {"key": "sla", "operator": operator, "value": limit}
    waiting = draws.pod("p", {"tolerations": [toleration]})
    event = {"resource": "Node", "action": "Update", "old": before, "new": after}
    return {"cluster": {}, "pod": waiting, "event": event}


def label_keys(draws: Draws) -> Json:
    """Constraints with matchLabelKeys that the API server has not merged into the selector."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": draws.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["revision"],
    }
    nodes = [draws.node(f"n{i}") for i in range(4)]
    running = [
        draws.pod(
            f"r{i}",
            {"nodeName": f"n{draws.randrange(4)}"},
            {"app": "a", "revision": draws.choice(("1", "2"))},
        )
        for i in range(5)
    ]
    pods = [
        draws.pod(f"p{i}", {"topologySpreadConstraints": [spread]}, {"app": "a", "revision": "2"})
        for i in range(2)
    ]
    return {"cluster": {"nodes": nodes, "pods": running}, "pending": pods}


def pod_level(draws: Draws) -> Json:
    """Pods that request resources as a whole."""

    def spec() -> Json:
        amounts = {"cpu": draws.choice(("1", "1500m", "3")), "memory": draws.choice(("1Gi", "6Gi"))}
        requests = {name: amounts[name] for name in draws.choice((("cpu",), ("cpu", "memory")))}
        return {"resources": {"requests": requests}}

    nodes = [draws.node(f"n{i}") for i in range(3)]
    running = [draws.pod(f"r{i}", {**spec(), "nodeName": f"n{i}"}) for i in range(2)]
    pods = [draws.pod(f"p{i}", spec()) for i in range(3)]
    return {"cluster": {"nodes": nodes, "pods": running}, "pending": pods}


def storage_scores(draws: Draws) -> Json:
    """Claims that wait for their consumer, and storage capacity that differs by node."""
    nodes = [draws.node(f"n{i}") for i in range(4)]
    driver = "csi.example.com"
    storage_class = {
        "metadata": {"name": "slow"},
        "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    capacities = [
        {
            "metadata": {"name": f"c{i}", "namespace": "default"},
            "storageClassName": "slow",
            "capacity": f"{draws.randint(5, 40)}Gi",
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": f"n{i}"}},
        }
        for i in range(4)
    ]
    claims = [
        {
            "metadata": {"name": f"claim{i}", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "slow",
                "resources": {"requests": {"storage": f"{draws.randint(1, 12)}Gi"}},
            },
        }
        for i in range(2)
    ]
    return {
        "cluster": {
            "nodes": nodes,
            "storageClasses": [storage_class],
            "csiDrivers": [{"metadata": {"name": driver}, "spec": {"storageCapacity": True}}],
            "csiStorageCapacities": capacities,
            "persistentVolumeClaims": claims,
        },
        "pending": [_with_claim(draws, f"p{i}", f"claim{i}") for i in range(2)],
    }


def _with_claim(draws: Draws, name: str, claim: str) -> Json:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    return draws.pod(name, {"volumes": [volume]})


_DRIVER = "csi.example.com"


def volume_limits(draws: Draws) -> Json:
    """Bound claims of a driver that some nodes do not have."""
    nodes = [draws.node(f"n{i}") for i in range(4)]
    driver = {"name": _DRIVER, "nodeID": "x", "allocatable": {"count": 1}}
    csi_nodes = [
        {"metadata": {"name": f"n{i}"}, "spec": {"drivers": [driver]}}
        for i in range(4)
        if draws.random() < 0.5
    ]
    spec = {"preventPodSchedulingIfMissing": draws.choice((True, False))}
    return {
        "cluster": {
            "nodes": nodes,
            "csiNodes": csi_nodes,
            "csiDrivers": [{"metadata": {"name": _DRIVER}, "spec": spec}],
            "persistentVolumes": [_bound_volume(i) for i in range(3)],
            "persistentVolumeClaims": [_bound_claim(i) for i in range(3)],
        },
        "pending": [_with_claim(draws, f"p{i}", f"claim{i}") for i in range(3)],
    }


def _bound_volume(index: int) -> Json:
    return {
        "metadata": {"name": f"v{index}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": _DRIVER, "volumeHandle": f"h{index}"},
            "claimRef": {"name": f"claim{index}", "namespace": "default"},
        },
        "status": {"phase": "Bound"},
    }


def _bound_claim(index: int) -> Json:
    return {
        "metadata": {
            "name": f"claim{index}",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": f"v{index}",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound"},
    }


def mixed(draws: Draws) -> Json:
    """Volumes, taints and terms, for a gate that changes no answer."""
    drawn = storage_scores(draws)
    for index, each in enumerate(drawn["pending"]):
        each["metadata"]["labels"] = {"app": draws.choice(("a", "b"))}
        each["spec"]["priority"] = index * 10
    return drawn


def hostname_terms(draws: Draws) -> Json:
    """Affinity and anti-affinity whose domain is one node, beside terms with wider domains."""

    def terms() -> Json:
        kind = draws.choice(("podAntiAffinity", "podAffinity"))
        term = {
            "topologyKey": draws.choice((*("kubernetes.io/hostname",) * 2, "zone")),
            "labelSelector": {"matchLabels": {"app": draws.choice(("a", "b"))}},
        }
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    nodes = [draws.node(f"n{i}") for i in range(4)]
    running = [
        draws.pod(f"r{i}", {**terms(), "nodeName": f"n{i}"}, {"app": draws.choice(("a", "b"))})
        for i in range(3)
    ]
    pods = [draws.pod(f"p{i}", terms(), {"app": draws.choice(("a", "b"))}) for i in range(3)]
    return {"cluster": {"nodes": nodes, "pods": running}, "pending": pods}


def attribute_classes(draws: Draws) -> Json:
    """Claims and volumes with a class of attributes."""
    nodes = [draws.node(f"n{i}") for i in range(2)]
    storage_class = {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }

    def attributes() -> Json:
        name = draws.choice(("gold", "", None))
        return {} if name is None else {"volumeAttributesClassName": name}

    size = {"storage": "1Gi"}
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    volumes = [
        {
            "metadata": {"name": f"v{i}"},
            "spec": {
                **shared,
                **attributes(),
                "capacity": {"storage": f"{i + 1}Gi"},
                "csi": {"driver": "csi.example.com", "volumeHandle": f"h{i}"},
            },
            "status": {"phase": "Available"},
        }
        for i in range(2)
    ]
    claims = [
        {
            "metadata": {"name": f"claim{i}", "namespace": "default"},
            "spec": {**shared, **attributes(), "resources": {"requests": size}},
        }
        for i in range(3)
    ]
    return {
        "cluster": {
            "nodes": nodes,
            "storageClasses": [storage_class],
            "persistentVolumes": volumes,
            "persistentVolumeClaims": claims,
        },
        "pending": [_with_claim(draws, f"p{i}", f"claim{i}") for i in range(3)],
    }


def resizes(draws: Draws, *, of_pod: bool) -> Json:
    """Running pods with a kubelet's report about a resize. ``of_pod``: of the pod as a whole."""

    def running(name: str, where: str) -> Json:
        made = draws.pod(name, {"nodeName": where})
        [container] = made["spec"]["containers"]
        allocated, actual = ({"cpu": draws.choice(("200m", "1", "2"))} for _ in range(2))
        status: Json = {"name": "c", "allocatedResources": allocated}
        status["resources"] = {"requests": actual}
        if of_pod:
            made["spec"]["resources"] = {"requests": {"cpu": "1"}}
            made["status"] = {"allocatedResources": allocated, "resources": {"requests": actual}}
        else:
            made["status"] = {"containerStatuses": [status]}
        container["resources"]["requests"] = {"cpu": "500m"}
        return made

    nodes = [draws.node(f"n{i}") for i in range(3)]
    pods = [draws.pod(f"p{i}", {}) for i in range(3)]
    there = [running(f"r{i}", f"n{i % 3}") for i in range(4)]
    return {"cluster": {"nodes": nodes, "pods": there}, "pending": pods}


def declared_features(draws: Draws) -> Json:
    """Pods that need a feature, which some nodes declare."""
    nodes = [draws.node(f"n{i}") for i in range(3)]
    for node in nodes[: draws.randint(0, 2)]:
        node["status"]["declaredFeatures"] = ["UserNamespacesHostNetworkSupport"]
    spec = {"hostNetwork": True, "hostUsers": False}
    pods = [draws.pod(f"p{i}", spec if i else {}) for i in range(2)]
    return {"cluster": {"nodes": nodes}, "pending": pods}


class Suite(NamedTuple):
    """Cases about one gate, each with the gate on and off."""

    gate: str
    draw: Callable[[Draws], Json]
    #: The number of drawn inputs.
    input_count: int
    #: Gates without which the gate cannot be turned on, or off, with their states.
    needs: Mapping[bool, Mapping[str, bool]] = {}
    #: The release whose scheduler answers.
    release: str = "1.37.2"


#: The gates that need NodeDeclaredFeatures in 1.36.
_NEED_DECLARED_FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
#: The gates that need PodLevelResources.
_NEED_POD_LEVEL = (
    "InPlacePodLevelResourcesVerticalScaling",
    "PodLevelResourcesFixDefaulting",
    "PodLevelResourcesFixKubeletQOSClass",
)
_NEED_LABEL_KEYS = ("MatchLabelKeysInPodTopologySpreadSelectorMerge",)

SUITES: Mapping[str, Suite] = {
    "admin-access": Suite("DRAAdminAccess", gate_devices.admin_access, 3, release="1.35.4"),
    "alternatives": Suite("DRAPrioritizedList", gate_devices.alternatives, 3, release="1.36.3"),
    "attribute-classes": Suite("VolumeAttributesClass", attribute_classes, 3, release="1.35.4"),
    "binding-conditions": Suite("DRADeviceBindingConditions", gate_devices.binding_conditions, 3),
    "calls-in-the-background": Suite("SchedulerAsyncAPICalls", mixed, 2),
    "claim-events": Suite("SchedulerPreQueueingHints", gate_devices.claim_event, 8),
    "compatibility-groups": Suite(
        "DRADeviceCompatibilityGroups", gate_devices.compatibility_groups, 4
    ),
    "derived-attributes": Suite("DRADerivedAttributes", gate_devices.derived_attributes, 4),
    "fractions": Suite("DRAFractionalCapacityRange", gate_devices.fractions, 3),
    "list-attributes": Suite("DRAListTypeAttributes", gate_devices.list_attributes, 5),
    "node-allocatable": Suite("DRANodeAllocatableResources", gate_devices.node_allocatable, 12),
    "optional-operations": Suite("DRAOptionalNodeOperations", gate_devices.optional_operations, 3),
    "compared-taints": Suite("TaintTolerationComparisonOperators", compared_taints, 5),
    "declared-features": Suite(
        "NodeDeclaredFeatures",
        declared_features,
        3,
        {False: dict.fromkeys(_NEED_DECLARED_FEATURES, False)},
        release="1.36.3",
    ),
    "device-taints": Suite(
        "DRADeviceTaints", gate_devices.taints, 3, {False: {"DRADeviceTaintRules": False}}
    ),
    "extended-resources": Suite("DRAExtendedResource", gate_devices.extended, 3, release="1.36.3"),
    "hostname-terms": Suite("InterPodAffinityHostnameFastPath", hostname_terms, 4),
    "label-keys": Suite(
        "MatchLabelKeysInPodTopologySpread",
        label_keys,
        4,
        {False: dict.fromkeys(_NEED_LABEL_KEYS, False)},
    ),
    "partitions": Suite("DRAPartitionableDevices", gate_devices.partitions, 3),
    "pod-level": Suite(
        "PodLevelResources", pod_level, 4, {False: dict.fromkeys(_NEED_POD_LEVEL, False)}
    ),
    "pod-level-resizes": Suite(
        "InPlacePodLevelResourcesVerticalScaling", partial(resizes, of_pod=True), 3
    ),
    "resizes": Suite(
        "InPlacePodVerticalScaling", partial(resizes, of_pod=False), 3, release="1.34.4"
    ),
    "shared-capacity": Suite("DRAConsumableCapacity", gate_devices.shared_capacity, 4),
    "storage-scores": Suite("StorageCapacityScoring", storage_scores, 4),
    "taint-rules": Suite("DRADeviceTaintRules", gate_devices.taint_rules, 3),
    "taint-events": Suite("TaintTolerationComparisonOperators", taint_events, 8),
    "volume-limits": Suite("VolumeLimitScaling", volume_limits, 4),
}


def cases(suite: str, seed: int) -> Iterator[Json]:
    """The cases of a suite, each with the gate on and with the gate off."""
    gate, draw, input_count, needs, _ = SUITES[suite]
    for index in range(input_count):
        for is_on in (True, False):
            drawn = draw(Draws(stable_hash(f"{suite} {seed} {index}")))
            name = f"{suite}-{seed}-{index}-{'on' if is_on else 'off'}"
            gates = {gate: is_on, **needs.get(is_on, {})}
            yield {"id": name, "suite": suite, "gates": gates, **drawn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("seed", type=int)
    options = parser.parse_args()
    for case in cases(options.suite, options.seed):
        print(json.dumps(case))


if __name__ == "__main__":
    main()
