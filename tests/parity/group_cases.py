"""Attempts at pod groups whose answers kube-scheduler has recorded, drawn from a seed.

    python -m tests.parity.group_cases SUITE SEED COUNT | RECORDER > tests/parity/groups/SUITE.jsonl

prints cases without answers: feature gates, nodes, placed pods, one PodGroup and its members.
RECORDER is the program in `group_recorder` (`go build .` there). It makes the group cycle of each
case several times with a scheduler from `scheduler.New` of kube-scheduler, and adds each distinct
outcome, because kube-scheduler tries placements in a random order and draws among placements of
equal score. Of the seeds of placements, 1 to 100, 48 is left out: there two nodes have equal
totals, of which each scheduler chooses in its own way.

Of the seeds of claims, 1 to 60, 36 are kept. Left out are those in which kube-scheduler deallocates
a claim once for each member and stops at the conflict, or reserves a claim for a group more than
once (docs/fidelity.md), one with nodes of equal totals, and those in which Bayplan has tried a
member again when the recorder stops, so that it has the message of a later attempt. Of the seeds of
amounts, 1 to 60, those are kept of which this is not so and whose outcome depends on the gate.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

from bayplan.rng import Stream, stable_hash

Json = dict[str, Any]

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
KEYS = ("rack", "rack", "rack", "rack", "zone", "absent", "")
#: The condition of a group whose quorum has nodes.
_SCHEDULED = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
DRIVER = "gpu.example.com"
_TAINT = {"key": "maintenance", "effect": "NoSchedule"}


class GroupDraws(Stream):
    """The objects of one case, drawn."""

    def node(self, number: int, rack_count: int) -> Json:
        rack = self.randrange(rack_count)
        labels = {"kubernetes.io/hostname": f"n{number}", "zone": f"z{rack % 2}"}
        if self.random() < 0.9:
            labels["rack"] = f"r{rack}"
        # Amounts that are all different let few scores be equal.
        allocatable = {"cpu": f"{self.randint(8, 48)}00m", "memory": f"{8000 + 97 * number}Mi"}
        spec = {"taints": [_TAINT]} if self.random() < 0.1 else {}
        return {
            "metadata": {"name": f"n{number}", "labels": labels},
            "spec": spec,
            "status": {"allocatable": {**allocatable, "pods": "110"}},
        }

    def pod(self, name: str, cpu: str, priority: int, group: str = "", **spec: Any) -> Json:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        policy = spec.get("preemptionPolicy", "p")
        named = {"priorityClassName": f"{policy.lower()}{priority}", "priority": priority}
        return {
            "metadata": {"name": name, "labels": {"app": group or "other"}},
            "spec": {"containers": [container], **named, **spec},
        }

    def placed(self, nodes: list[Json], priority: int) -> list[Json]:
        """Pods of other users, and in some cases members that have a node."""
        names = [node["metadata"]["name"] for node in nodes]
        others = [
            self.pod(f"o{number}", self.choice(("500m", "1")), 0, nodeName=self.choice(names))
            for number in range(self.randint(0, 2 * len(nodes)))
        ]
        member_count = self.choice((0, 0, 0, 1, 1, 2))
        first = self.choice(names)
        members = [
            self.pod(
                f"m{number}",
                "500m",
                priority,
                "g",
                nodeName=first if self.random() < 0.7 else self.choice(names),
            )
            for number in range(member_count)
        ]
        return others + members

    def members(self, priority: int) -> list[Json]:
        sizes = self.choice((("1",), ("1500m",), ("2",), ("3",), ("1", "2")))
        spec: Json = {}
        if self.random() < 0.2:
            spec["affinity"] = self.apart()
        if self.random() < 0.15:
            spec["preemptionPolicy"] = "Never"
        count = self.randint(2, 5)
        return [
            self.pod(f"a{n}", sizes[n % len(sizes)], priority, "g", **spec) for n in range(count)
        ]

    def slice(self, pool: str, **where: Any) -> Json:
        """Devices of a node, or of all nodes."""
        devices = [{"name": f"d{number}"} for number in range(self.randint(1, 2))]
        where = where or {"nodeName": pool}
        counts = {"generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": {"name": pool, **counts}, "devices": devices, **where}
        return {"metadata": {"name": pool}, "spec": spec}

    def claim(self, name: str, node_name: str) -> Json:
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        requests = [{"name": "r", "exactly": exactly}]
        claim: Json = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        if self.random() < 0.2:
            result = {"request": "r", "driver": DRIVER, "pool": node_name, "device": "d0"}
            field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
            terms = [{"matchFields": [field]}]
            allocation = {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": terms},
            }
            claim["status"] = {"allocation": allocation}
        return claim

    def apart(self) -> Json:
        term = {
            "labelSelector": {"matchLabels": {"app": "g"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def group(self, member_count: int, placed_count: int, priority: int) -> Json:
        policy: Json = {"gang": {"minCount": self.randint(1, member_count)}}
        if self.random() < 0.1:
            policy = {"basic": {}}
        minimum = policy.get("gang", {"minCount": 1})["minCount"]
        spec: Json = {"schedulingPolicy": policy, "priority": priority}
        spec["priorityClassName"] = f"p{priority}"
        key = self.choice(KEYS)
        if key:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        group: Json = {"metadata": {"name": "g"}, "spec": spec}
        if placed_count >= minimum:
            group["status"] = {"conditions": [_SCHEDULED]}
        return group


def case(seed: int) -> Json:
    draws = GroupDraws(stable_hash(f"group {seed}"))
    rack_count = draws.randint(1, 3)
    nodes = [draws.node(number, rack_count) for number in range(draws.randint(1, 6))]
    priority = draws.choice((0, 100))
    members, placed = draws.members(priority), draws.placed(nodes, priority)
    placed_count = sum(pod["metadata"]["labels"]["app"] == "g" for pod in placed)
    return {
        "id": f"placements-{seed}",
        "gates": GATES,
        "nodes": nodes,
        "pods": placed,
        "group": draws.group(len(members), placed_count, priority),
        "members": members,
    }


# ---- claims of groups -----------------------------------------------------------------------


def claims_case(seed: int) -> Json:
    """A group whose members share a claim, which may be the group's and may be allocated."""
    draws = GroupDraws(stable_hash(f"claims {seed}"))
    nodes = [draws.node(number, 1) for number in range(draws.randint(2, 4))]
    names = [node["metadata"]["name"] for node in nodes]
    slices = [draws.slice(name) for name in draws.sample(names, draws.randint(1, len(names)))]
    if draws.random() < 0.3:
        slices.append(draws.slice("network", allNodes=True))
    named = {"name": "shared", "resourceClaimName": "c0"}
    other = {"name": "other", "resourceClaimName": "c1"}
    entries = draws.choice(([named], [named], [named, other]))
    spec: Json = {"resourceClaims": entries}
    count = draws.randint(1, 4)
    members = [
        draws.pod(f"a{n}", draws.choice(("500m", "1")), 0, "g", **spec) for n in range(count)
    ]
    if draws.random() < 0.2:
        members.append(draws.pod("plain", "500m", 0, "g"))
    group = draws.group(len(members), 0, 0)
    group["spec"].pop("schedulingConstraints", None)
    of_group = draws.choice(([named], [named], [other], [{**named, "name": "x"}], entries, []))
    if of_group:
        group["spec"]["resourceClaims"] = of_group
    return {
        "id": f"claims-{seed}",
        "gates": {
            "GenericWorkload": True,
            "DRAWorkloadResourceClaims": draws.random() < 0.7,
            # The recorder ends before a backoff does.
            "SchedulerPopFromBackoffQ": False,
        },
        "nodes": nodes,
        "pods": [],
        "group": group,
        "members": members,
        "slices": slices,
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "claims": [draws.claim(each["resourceClaimName"], draws.choice(names)) for each in entries],
    }


#: What a device takes of its node's cpu.
_TAKES = (
    {"mapping": {"deviceMultiplier": "500m"}},
    {"overhead": {"perPod": "500m"}},
    {"overhead": {"perContainer": "1"}},
    None,
)


def amounts_case(seed: int) -> Json:
    """The same with devices that take cpu of their nodes."""
    draws, drawn = GroupDraws(stable_hash(f"amounts {seed}")), claims_case(seed)
    drawn["id"] = f"amounts-{seed}"
    drawn["gates"]["DRANodeAllocatableResources"] = True
    for each in drawn["slices"]:
        for device in each["spec"]["devices"]:
            part = draws.choice(_TAKES)
            if part is not None:
                device["nodeAllocatableResources"] = {"cpu": part}
    for member in drawn["members"]:
        names = [entry["name"] for entry in member["spec"].get("resourceClaims", ())]
        for container in member["spec"]["containers"]:
            container.setdefault("resources", {})["claims"] = [{"name": name} for name in names]
    return drawn


#: The files of recorded answers, and the case of a seed.
SUITES: Mapping[str, Callable[[int], Json]] = {
    "placements": case,
    "claims": claims_case,
    "amounts": amounts_case,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        print(json.dumps(SUITES[options.suite](seed)))


if __name__ == "__main__":
    main()
