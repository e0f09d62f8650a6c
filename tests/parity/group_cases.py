"""Attempts at pod groups whose answers kube-scheduler has recorded, drawn from a seed.

    python -m tests.parity.group_cases SEED COUNT | RECORDER > tests/parity/groups/placements.jsonl

prints cases without answers: feature gates, nodes, placed pods, one PodGroup and its members.
RECORDER is the program in `group_recorder` (`go build .` there). It makes the group cycle of each
case several times with a scheduler from `scheduler.New` of kube-scheduler, and adds each distinct
outcome, because kube-scheduler tries placements in a random order and draws among placements of
equal score. Of the seeds 1 to 100, 48 is left out: there two nodes have equal totals, of which each
scheduler chooses in its own way.
"""

import argparse
import json
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        print(json.dumps(case(seed)))


if __name__ == "__main__":
    main()
