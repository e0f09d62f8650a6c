"""Groups in three levels of a topology: pods per second when every domain of a level is scored.

    python -m benchmarks levels [--nodes 5000] [--markdown benchmarks/RESULTS.md]

Groups prefer one rack, else one block, else one zone. Some fit in a rack, some only in a block,
some only in a zone, so that all domains of one, two or three levels are tried. Groups whose members
have labels of their own, which nothing reads, fit in a rack; small groups of scheduling.k8s.io
require one, and upstream's plugins score all racks. Seconds are processor time. Then
NVL72: 33 racks of 18 hosts with 4 GPUs, groups of one host a member that require, or prefer, a
rack, and groups of 96 members in slices of 48 and 16. Exit status 1: a pod was not placed.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from bayplan.api.objects import POD
from bayplan.api.pod_groups import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOPOLOGY_SLICES
from bayplan.ports import WatchEvent
from benchmarks.engine_run import added, discarded_log, settled_memory
from benchmarks.group_run import GPU, GROUP_KIND, GroupRun, Object, group, member, node
from benchmarks.machine import machine, markdown_table, put_between, today

LEVELS = ("zone", "block", "rack")
LABELS = {level: f"example.com/{level}" for level in LEVELS}
#: The topology of the configuration, the outermost level first.
TOPOLOGY = [{"name": level, "nodeLabel": label} for level, label in LABELS.items()]
ALL_LEVELS = {PREFERRED_TOPOLOGY: "rack, block, zone"}
UPSTREAM_KIND = "scheduling.k8s.io/v1beta1 PodGroup"
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
COLUMNS = ("load", "nodes", "groups", "pods", "seconds", "pods/s")


@dataclass(frozen=True, slots=True)
class Load:
    """Groups of one size, and the cluster that they come to."""

    name: str
    groups: int
    members: int
    annotations: dict[str, str]
    nodes: int
    nodes_per_rack: int
    racks_per_block: int
    blocks_per_zone: int
    #: Of a node and of a member, besides cpu.
    gpus: int = 0
    #: Whether each member has a label of its own, as the pods of an indexed Job.
    has_indexes: bool = False
    #: Whether the groups are those of scheduling.k8s.io, which require a rack.
    are_upstream: bool = False

    @property
    def pods(self) -> int:
        return self.groups * self.members

    def node(self, index: int) -> Object:
        rack = index // self.nodes_per_rack
        block = rack // self.racks_per_block
        labels = {
            LABELS["rack"]: f"rack-{rack:04d}",
            LABELS["block"]: f"block-{block:03d}",
            LABELS["zone"]: f"zone-{block // self.blocks_per_zone:02d}",
        }
        amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        return node(index, labels, {**amounts, GPU: str(self.gpus)} if self.gpus else amounts)

    def arrivals(self) -> Iterator[WatchEvent]:
        for number in range(self.groups):
            name = f"gang-{number:04d}"
            if self.are_upstream:
                yield added(UPSTREAM_KIND, upstream_group(name, self.members))
            else:
                yield added(GROUP_KIND, group(name, self.members, self.annotations))
            for index in range(self.members):
                pod = member(f"{name}-{index:04d}", name, "2", self.gpus)
                if self.has_indexes:
                    pod["metadata"]["labels"]["example.com/index"] = str(index)
                if self.are_upstream:
                    pod["spec"]["schedulingGroup"] = {"podGroupName": name}
                yield added(POD, pod)


def upstream_group(name: str, member_count: int) -> Object:
    content = group(name, member_count)
    gang, topology = {"gang": {"minCount": member_count}}, [{"key": LABELS["rack"]}]
    constraints = {"topology": topology}
    return {**content, "spec": {"schedulingPolicy": gang, "schedulingConstraints": constraints}}


def loads(node_count: int) -> Sequence[Load]:
    """Racks of 100 nodes, blocks of 5 racks, zones of 5 blocks; a node takes two members."""
    sizes = (("fits in a rack", 40, 100), ("fits in a block", 8, 500), ("fits in a zone", 2, 2000))
    three = [
        Load(f"three levels, {name}", groups, members, ALL_LEVELS, node_count, 100, 5, 5)
        for name, groups, members in sizes
    ]
    indexed = "three levels, fits in a rack, an index in the labels"
    upstream = "scheduling.k8s.io, rack required, an index in the labels"
    hosts = 33 * 18
    slices = {TOPOLOGY_SLICES: "block=48, rack=16"}
    return (
        *three,
        Load(indexed, 40, 100, ALL_LEVELS, node_count, 100, 5, 5, has_indexes=True),
        Load(upstream, 750, 4, {}, node_count, 100, 5, 5, has_indexes=True, are_upstream=True),
        Load("NVL72, rack required", 33, 18, {REQUIRED_TOPOLOGY: "rack"}, hosts, 18, 11, 3, 4),
        Load("NVL72, rack preferred", 29, 20, ALL_LEVELS, hosts, 18, 11, 3, 4),
        Load("NVL72, slices of 48 and 16", 4, 96, slices, hosts, 18, 11, 3, 4),
    )


def measured(load: Load) -> tuple[int, float]:
    """(pods that were placed, seconds)"""
    fields: Object = {"podGroups": {"topology": TOPOLOGY}}
    if load.are_upstream:
        fields["featureGates"] = GATES
    run = GroupRun(map(load.node, range(load.nodes)), fields)
    run.place(list(load.arrivals()))
    run.scheduler.close()
    return run.bound, run.seconds


@click.command(help=__doc__)
@click.option("--nodes", "node_count", default=5000, help="nodes of the loads with three levels")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(node_count: int, markdown: Path | None) -> None:
    """Measure each load once."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for load in loads(node_count):
        with discarded_log(), settled_memory():
            bound_count, seconds = measured(load)
        amounts = (load.nodes, load.groups, bound_count)
        rate = f"{bound_count / seconds:,.0f}"
        rows.append((load.name, *(f"{each:,}" for each in amounts), f"{seconds:.2f}", rate))
        print(*rows[-1], sep="  ", flush=True)
        if bound_count != load.pods:
            missed.append(f"{load.name}: {bound_count:,} of {load.pods:,} placed")
    if markdown is not None:
        text = [f"Measured {today()}: {machine()}.", "", "    python -m benchmarks levels", ""]
        put_between(markdown, "levels", [*text, *markdown_table(COLUMNS, rows)])
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
