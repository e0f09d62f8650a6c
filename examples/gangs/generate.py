"""Gangs that arrive over time, for the nodes of the openb trace.

    python generate.py NODES.csv --gangs 100 --load 1.1 --seed 1 > gangs.yaml

Prints a scenario: per gang a PodGroup and its members, all of one size. Of the nodes only the
number of GPUs is read. What is drawn; one seed gives one scenario:

- members of a gang: 2, 4, 8 or 16; GPUs of a member: 1, 2, 4 or 8; each of them equally likely;
- duration: exponential, one hour in the mean; at least a minute;
- the time between two gangs: exponential, such that the gangs together ask for ``load`` times the
  GPUs there are: above 1 they queue up, and two of them meet.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan.rng import Stream, stream

MEMBERS = (2, 4, 8, 16)
GPUS_PER_MEMBER = (1, 2, 4, 8)
MEAN_SECONDS = 3600.0
LEAST_SECONDS = 60.0
CPUS_PER_GPU, GIB_PER_GPU = 4, 16

GROUP = "scheduling.x-k8s.io"


def gpu_count(nodes: Path) -> int:
    """How many GPUs the nodes of the trace have together."""
    with nodes.open(newline="", encoding="utf-8") as lines:
        return sum(int(float(row["gpu"])) for row in csv.DictReader(lines))


def gang(name: str, draw: Stream) -> list[dict[str, Any]]:
    """A PodGroup and its members."""
    members, gpus = draw.choice(MEMBERS), draw.choice(GPUS_PER_MEMBER)
    seconds = max(LEAST_SECONDS, round(draw.expovariate(1 / MEAN_SECONDS)))
    group = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members, "scheduleTimeoutSeconds": 60},
    }
    return [group, *(member(f"{name}-{n}", name, gpus, seconds) for n in range(members))]


def member(name: str, group: str, gpus: int, seconds: float) -> dict[str, Any]:
    asks = {"cpu": str(CPUS_PER_GPU * gpus), "memory": f"{GIB_PER_GPU * gpus}Gi"}
    limits = {"nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {f"{GROUP}/pod-group": group},
            "annotations": {"bayplan.dev/duration": f"{seconds:.0f}s"},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train",
                    "resources": {"requests": {**asks, **limits}, "limits": limits},
                }
            ]
        },
    }


def events(gpus: int, count: int, load: float, seed: int) -> Iterator[dict[str, Any]]:
    """What a scenario file has under spec.events."""
    draw = stream(seed, "gangs")
    mean_members = sum(MEMBERS) / len(MEMBERS)
    mean_gpus = mean_members * sum(GPUS_PER_MEMBER) / len(GPUS_PER_MEMBER)
    mean_gap_seconds = mean_gpus * MEAN_SECONDS / (load * gpus)
    at_seconds = 0.0
    for number in range(count):
        yield {"at": f"{at_seconds:.3f}s", "create": gang(f"gang-{number:04d}", draw)}
        at_seconds += draw.expovariate(1 / mean_gap_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Gangs for the nodes of the openb trace.")
    parser.add_argument("nodes", type=Path, help="openb_node_list_gpu_node.csv")
    parser.add_argument("--gangs", type=int, default=100, help="how many")
    parser.add_argument("--load", type=float, default=1.1, help="GPUs asked for, per GPU there is")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("# " + " ".join(f"--{name} {vars(given)[name]}" for name in ("gangs", "load", "seed")))
    print("apiVersion: bayplan.dev/v1alpha1\nkind: Scenario\nmetadata: {name: gangs}")
    print("spec:\n  events:")
    for event in events(gpu_count(given.nodes), given.gangs, given.load, given.seed):
        print(f"  - {json.dumps(event)}")


if __name__ == "__main__":
    main()
