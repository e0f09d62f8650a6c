"""The same loads on kube-scheduler and here, in turn, in one run: the ratio of medians.

    python -m benchmarks peer --peer-dir DIR [--repeat 3] [--seconds 2] [--only basic]

Both sides do the same work on the same pods: from the queue's pop to the point where the binding
would be sent; nothing that depends on nodes is computed before the pop. A column beside that rate
counts the delivery of the pods' events, too. kube-scheduler samples nodes, as it does by default;
Bayplan evaluates all nodes on one core. Of kube-scheduler's rates on one and two cores, the better
one counts. Exit status 1: a ratio is below its limit in ranges.yaml, or pods that fit got no node.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import Run, problem_of, run
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.ranges import ranges
from benchmarks.shapes import SHAPES, Shape

CORES = (1, 2)
#: percentageOfNodesToScore as the peer prints it: 0 is its default, by cluster size.
SAMPLING = 0
#: What the peer is built from.
PEER_VERSION = "v1.37.0"
_MARKDOWN_HELP = "write the table into this document, too, between its marks (RESULTS.md)"


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One run of kube-scheduler."""

    shape: Shape
    cores: int
    rate: float
    attempts: int
    bound: int
    nodes_used: int
    victims: int

    @property
    def problem(self) -> str:
        problem = problem_of(self.shape, self.attempts, self.bound, self.victims)
        return problem and f"kube-scheduler on {self.cores} cores: {problem}"


@dataclass(slots=True)
class Comparison:
    """Both sides' runs of one shape."""

    shape: Shape
    ratio_min: float | None
    peer: list[PeerRun] = field(default_factory=list[PeerRun])
    ours: list[Run] = field(default_factory=list[Run])

    def peer_rate(self, cores: int) -> float:
        return median(r.rate for r in self.peer if r.cores == cores)

    @property
    def peer_best(self) -> float:
        return max(self.peer_rate(cores) for cores in CORES)

    @property
    def our_rate(self) -> float:
        return median(r.rate for r in self.ours)

    @property
    def our_rate_from_event(self) -> float:
        return median(r.rate_from_event for r in self.ours)

    @property
    def ratio(self) -> float:
        return self.our_rate / self.peer_best

    @property
    def problems(self) -> list[str]:
        """Reasons why the measurement is invalid."""
        return sorted({r.problem for r in (*self.peer, *self.ours)} - {""})

    @property
    def is_good(self) -> bool:
        return not self.problems and (self.ratio_min is None or self.ratio >= self.ratio_min)

    @property
    def verdict(self) -> str:
        if self.problems:
            return f"NOT MEASURED: {'; '.join(self.problems)}"
        if self.ratio_min is None:
            return ""
        return f"{self.ratio_min:g} {'met' if self.is_good else 'MISSED'}"

    def row(self) -> dict[str, Any]:
        """The row of the JSON file."""
        return {
            "shape": self.shape.name,
            "bayplan_pods_per_s": round(self.our_rate, 1),
            "bayplan_pods_per_s_from_event": round(self.our_rate_from_event, 1),
            "kube_scheduler_pods_per_s": round(self.peer_best, 1),
            "ratio": round(self.ratio, 2),
            "wanted": self.ratio_min,
            "problems": self.problems,
        }

    def cells(self) -> tuple[str, ...]:
        theirs, ours = self.peer[-1], self.ours[-1]
        pods = min(theirs.bound, ours.bound)
        used = f"{theirs.nodes_used:,}" if pods == theirs.bound else "?"
        return (
            self.shape.name,
            " / ".join(f"{self.peer_rate(cores):,.0f}" for cores in CORES),
            f"{self.our_rate:,.0f} / {self.our_rate_from_event:,.0f}",
            f"{self.ratio:.1f}",
            self.verdict,
            f"{pods:,}",
            f"{used} / {ours.nodes_used(pods):,}",
        )


def peer_binary(peer_dir: Path) -> Path:
    """The peer's program: in the folder, or built from the sources beside it. That needs Go."""
    if (peer_dir / "algobench").exists():
        return peer_dir / "algobench"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bayplan-peer"
    binary = cache / "algobench"
    if not binary.exists():
        cache.mkdir(parents=True, exist_ok=True)
        sources = peer_dir.resolve().parent / "oracle"
        click.echo(f"building {binary.name} from {sources} (minutes, the first time)", err=True)
        build = ["go", "build", "-o", str(binary), "./cmd/algobench"]
        subprocess.run(build, cwd=sources, check=True)
    return binary


def peer_runs(binary: Path, shape: Shape, seconds: float) -> list[PeerRun]:
    """One run on each number of cores.

    The program runs every shape whose name contains `shape.name`, and then each of them again with
    all nodes scored. It is stopped as soon as it has printed the runs that are compared.
    """
    command = [str(binary), "-only", shape.name, "-procs", ",".join(map(str, CORES))]
    command += ["-repeat", "1", "-limit", f"{seconds}s"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        runs: list[PeerRun] = []
        try:
            for peer_run in _parsed(process.stderr, shape):
                runs.append(peer_run)
                if len(runs) == len(CORES):
                    break
        finally:
            process.kill()
    if [each.cores for each in runs] != list(CORES):
        sys.exit(f"the peer printed only {len(runs)} runs of {shape.name}: {' '.join(command)}")
    return runs


def _parsed(lines: Iterable[str], shape: Shape) -> Iterator[PeerRun]:
    for line in lines:
        if not line.startswith("{"):
            continue
        row: dict[str, Any] = json.loads(line)
        if row["shape"] == shape.name and row["pct"] == SAMPLING:
            last = row["last"]
            yield PeerRun(
                shape=shape,
                cores=row["procs"],
                rate=row["rates"][0],
                attempts=last["Pods"],
                bound=last["Bound"],
                nodes_used=last["NodesUsed"],
                victims=last["Victims"],
            )


def compared(binary: Path, shape: Shape, repeat: int, seconds: float) -> Comparison:
    """A B A B …"""
    comparison = Comparison(shape, ranges().peer_at_least.get(shape.name))
    for _ in range(repeat):
        comparison.peer += peer_runs(binary, shape, seconds)
        comparison.ours.append(run(shape, seconds))
    return comparison


def empty_table() -> Table:
    table = Table(caption="kube-scheduler / Bayplan: nodes that the same number of first pods used")
    table.add_column("shape")
    for title in (
        "kube-scheduler pods/s, 1 / 2 cores",
        "Bayplan, from the pop / from the event",
        "ratio",
    ):
        table.add_column(title, justify="right")
    table.add_column("wanted")
    for title in ("pods", "nodes used"):
        table.add_column(title, justify="right")
    return table


MARKDOWN_HEADINGS = (
    "shape",
    "kube-scheduler pods/s, 1 core",
    "2 cores",
    "Bayplan pods/s, from the pop",
    "from the event",
    "ratio",
    "wanted",
    "pods",
    "nodes used: kube-scheduler / Bayplan",
)


def markdown_cells(comparison: Comparison) -> tuple[str, ...]:
    name, peer, ours, ratio, verdict, pods, used = comparison.cells()
    return (name, *peer.split(" / "), *ours.split(" / "), ratio, verdict, pods, used)


def write_markdown(path: Path, rows: Sequence[Comparison], command: str) -> None:
    """The table between the marks `peer` of a document, with what it was measured on."""
    text = [f"Measured {today()}: {machine()}; kube-scheduler {PEER_VERSION}.", ""]
    text += [f"    {command}", ""]
    put_between(
        path, "peer", [*text, *markdown_table(MARKDOWN_HEADINGS, map(markdown_cells, rows))]
    )


@click.command(help=__doc__)
@click.option("--peer-dir", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--repeat", default=3, help="runs of each side")
@click.option("--seconds", default=2.0, help="how long each run may take")
@click.option("--only", default="", help="shapes whose name contains one of these")
@click.option("--out", type=click.Path(path_type=Path), help="write the rows as JSON, too")
@click.option("--markdown", type=click.Path(path_type=Path, exists=True), help=_MARKDOWN_HELP)
def main(
    peer_dir: Path,
    repeat: int,
    seconds: float,
    only: str,
    out: Path | None,
    markdown: Path | None,
) -> None:
    binary = peer_binary(peer_dir)
    patterns = [part for part in only.split(",") if part]
    table, rows = empty_table(), list[Comparison]()
    for shape in SHAPES:
        if not shape.has_peer:
            continue
        if patterns and not any(part in shape.name for part in patterns):
            continue
        comparison = compared(binary, shape, repeat, seconds)
        click.echo(f"{shape.name}: {comparison.ratio:.1f} {comparison.verdict}", err=True)
        table.add_row(*comparison.cells())
        rows.append(comparison)
        if out is not None:
            # An interruption does not lose what is measured so far.
            out.write_text(json.dumps({"rows": [each.row() for each in rows]}, indent=2) + "\n")
    Console(width=140).print(table)
    if markdown is not None:
        command = f"python -m benchmarks peer --peer-dir DIR --repeat {repeat}"
        write_markdown(markdown, rows, f"{command} --seconds {seconds:g}")
    sys.exit(not all(each.is_good for each in rows))
