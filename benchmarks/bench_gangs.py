"""Groups of pods: placed in one pass, and member by member, in the same run.

    python -m benchmarks gangs [--only 100x100,full] [--divide 1] [--repeat 1]
        [--markdown benchmarks/RESULTS.md]

Most loads are placed on nodes with room for all. With "racks" in its name, a load requires that a
group stays in one of 50 racks, and every rack is scored; its members are not placed one by one. In
the last load groups wait in a full cluster: a pod ends repeatedly, its room is too small for a
group, and another pod takes the room. Seconds are processor time of this process; the fastest of
``--repeat`` rounds counts. ``--divide 10``: a tenth of the nodes, groups, members and pods that
end. Exit status 1: the wrong pods were placed, or a load of full size misses a limit of
ranges.yaml.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bayplan.api.objects import POD, decode
from bayplan.api.pod_groups import REQUIRED_TOPOLOGY
from bayplan.ports import EventType, WatchEvent
from benchmarks import shapes
from benchmarks.engine_run import added, discarded_log, settled_memory
from benchmarks.group_run import GROUP_KIND, RACK, GroupRun, Object, group, member, pod
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.ranges import ranges

IN_ONE_PASS, ONE_BY_ONE = "in one pass", "one by one"
MODES = (IN_ONE_PASS, ONE_BY_ONE)
#: After a pod ended: longer than the longest delay of a group of ten.
PAUSE_SECONDS = 35.0
#: How many members fit into the room of a pod that ended.
GAP_MEMBERS = 4
RACK_COUNT = 50
COLUMNS = ("nodes", "pods", "attempts", "bound", "seconds", "pods/s", "ms/attempt", "ms/failed")


@dataclass(frozen=True, slots=True)
class Load:
    """Groups that arrive in a cluster."""

    name: str
    nodes: int
    groups: int
    members: int
    #: Pods that end in a full cluster, each on a node of its own; 0: the cluster is empty.
    endings: int = 0
    #: Racks of which each group requires one; 0: groups may be placed anywhere.
    racks: int = 0

    def divided(self, by: int) -> "Load":
        """The same load with a fraction of nodes, groups and members."""

        def part(count: int, at_least: int = 1) -> int:
            return max(at_least, count // by) if count else 0

        # In a full cluster one gap is never enough for a group.
        members = part(self.members, GAP_MEMBERS + 1)
        nodes, endings = part(self.nodes, 2), part(self.endings)
        return Load(self.name, nodes, part(self.groups), members, endings, part(self.racks, 2))

    @property
    def pods(self) -> int:
        return self.groups * self.members

    @property
    def modes(self) -> tuple[str, ...]:
        """With racks one pass only: one by one, the first member would choose the rack."""
        return (IN_ONE_PASS,) if self.racks else MODES


LOADS = (
    Load("100x100", nodes=5000, groups=100, members=100),
    Load("10x1000", nodes=5000, groups=10, members=1000),
    Load("2500x4", nodes=5000, groups=2500, members=4),
    Load("100x100 racks", nodes=5000, groups=100, members=100, racks=RACK_COUNT),
    Load("2500x4 racks", nodes=5000, groups=2500, members=4, racks=RACK_COUNT),
    Load("full", nodes=5000, groups=200, members=10, endings=20),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one load cost in one mode."""

    load: Load
    mode: str
    seconds: float
    attempts: int
    bound: int
    #: Attempts that bound nothing, and what they took.
    failed: int
    failed_seconds: float

    @property
    def problem(self) -> str:
        """ "" if as many pods were bound as expected. One by one, waiting members keep their nodes,
        so a group may collect the room of several pods that ended."""
        expected = 0 if self.load.endings else self.load.pods
        if self.bound == expected or (self.load.endings and self.mode == ONE_BY_ONE):
            return ""
        return f"{self.load.name} {self.mode}: {self.bound:,} bound, expected {expected:,}"

    @property
    def rate(self) -> float:
        """Pods bound per second."""
        return self.bound / self.seconds

    @property
    def failed_milliseconds(self) -> float:
        """Milliseconds of one failed attempt."""
        return self.failed_seconds / self.failed * 1e3 if self.failed else 0.0

    def missed(self) -> str:
        """The limit of ranges.yaml that this load misses in one pass; "" if there is none."""
        name, expected = self.load.name, ranges()
        if self.mode == ONE_BY_ONE:
            return ""
        rate = expected.group_pods_per_second_at_least.get(name, 0.0)
        if self.bound and self.rate < rate:
            return f"{name}: {self.rate:,.0f} pods/s, wanted at least {rate:,.0f}"
        at_most = expected.failed_group_milliseconds_at_most
        if self.load.endings and self.failed_milliseconds > at_most:
            took = f"{self.failed_milliseconds:.2f} ms per failed attempt"
            return f"{name}: {took}, wanted at most {at_most:g}"
        return ""


def profile_of(mode: str) -> Object:
    if mode == IN_ONE_PASS:
        return {}
    plugins = {
        "queueSort": {"disabled": [{"name": "PrioritySort"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    }
    args = [{"name": "Coscheduling", "args": {"placement": "pod"}}]
    return {"plugins": plugins, "pluginConfig": args}


# ---- the cluster ----------------------------------------------------------------------------


def node(load: Load, index: int) -> Object:
    content = shapes.node(index, ())
    if load.racks:
        content["metadata"]["labels"][RACK] = f"rack-{index % load.racks:03d}"
    return content


def filler(name: str, node_index: int) -> Object:
    """A pod that leaves no cpu on its node."""
    content = pod(name, "4")
    content["spec"]["nodeName"] = shapes.node(node_index, ())["metadata"]["name"]
    return content


def arrivals(load: Load) -> Iterator[WatchEvent]:
    """Groups with their members."""
    cpu = "1" if load.endings else "100m"
    annotations = {REQUIRED_TOPOLOGY: RACK} if load.racks else {}
    for number in range(load.groups):
        name = f"gang-{number:04d}"
        yield added(GROUP_KIND, group(name, load.members, annotations))
        for index in range(load.members):
            yield added(POD, member(f"{name}-{index:04d}", name, cpu))


def with_cluster(load: Load, mode: str) -> GroupRun:
    """A scheduler with the nodes of a load, and with the pods that fill them."""
    bench = GroupRun(
        [node(load, index) for index in range(load.nodes)], {"profiles": [profile_of(mode)]}
    )
    for index in range(load.nodes if load.endings else 0):
        bench.scheduler.handle(added(POD, filler(f"filler-{index:05d}", index)))
    return bench


def churn(bench: GroupRun, load: Load) -> None:
    """The measurement begins when every group has been tried and waits."""
    for event in arrivals(load):
        bench.scheduler.handle(event)
    bench.try_all()
    bench.wait(PAUSE_SECONDS)
    bench.attempts = bench.failed = 0
    bench.failed_seconds = 0.0
    for number in range(load.endings):
        name = f"filler-{number:05d}"
        gone = WatchEvent(EventType.DELETED, POD, decode(POD, filler(name, number)))
        bench.measure(lambda gone=gone: bench.scheduler.handle(gone))
        bench.measure(bench.try_all)
        bench.measure(lambda: bench.wait(PAUSE_SECONDS))
        bench.scheduler.handle(added(POD, filler(f"{name}-again", number)))


def run(load: Load, mode: str) -> Outcome:
    bench = with_cluster(load, mode)
    with discarded_log(), settled_memory():
        if load.endings:
            churn(bench, load)
        else:
            bench.place(list(arrivals(load)))
    bench.scheduler.close()
    return Outcome(
        load,
        mode,
        bench.seconds,
        bench.attempts,
        bench.bound,
        bench.failed,
        bench.failed_seconds,
    )


def fastest(load: Load, mode: str, rounds: int) -> Outcome:
    """The fastest of some rounds, or the first in which the wrong pods were placed."""
    outcomes = [run(load, mode) for _ in range(rounds)]
    wrong = next((each for each in outcomes if each.problem), None)
    return wrong or min(outcomes, key=lambda each: each.seconds)


def line(measured: Outcome) -> tuple[str, ...]:
    load = measured.load
    failed = f"{measured.failed_milliseconds:,.2f}" if load.endings else ""
    return (
        f"{load.name} {measured.mode}",
        f"{load.nodes:,}",
        f"{load.pods:,}",
        f"{measured.attempts:,}",
        f"{measured.bound:,}",
        f"{measured.seconds:,.2f}",
        f"{measured.rate:,.0f}" if measured.bound else "",
        f"{measured.seconds / measured.attempts * 1e3:,.2f}" if measured.attempts else "",
        failed,
    )


@click.command(help=__doc__)
@click.option("--only", default="", help="loads whose name contains one of these")
@click.option("--divide", default=1, help="measure that much smaller loads")
@click.option("--repeat", default=1, help="rounds of each load")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(only: str, divide: int, repeat: int, markdown: Path | None) -> None:
    patterns = [part for part in only.split(",") if part] or [""]
    table = Table("load", *COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    problems: list[str] = []
    lines: list[tuple[str, ...]] = []
    for load in LOADS:
        if not any(part in load.name for part in patterns):
            continue
        for mode in load.modes:
            outcome = fastest(load.divided(divide) if divide > 1 else load, mode, repeat)
            lines.append(line(outcome))
            table.add_row(*lines[-1])
            problems += filter(None, [outcome.problem, "" if divide > 1 else outcome.missed()])
    Console(width=120).print(table)
    if markdown is not None:
        text = [f"Measured {today()}: {machine()}.", ""]
        text += ["    python -m benchmarks gangs", ""]
        put_between(markdown, "groups", [*text, *markdown_table(("load", *COLUMNS), lines)])
    for problem in problems:
        click.echo(problem, err=True)
    sys.exit(bool(problems))
