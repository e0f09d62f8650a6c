"""The same loads on kube-scheduler and here, in turn, in one run: the ratio of medians.

    python -m benchmarks.bench_peer --peer-dir DIR [--repeat 3] [--seconds 2] [--only basic]

Both sides do the same work: from the queue's pop to the point where the binding would be sent.
kube-scheduler runs on two cores and samples nodes as it does by default; here one core looks at all
nodes. Its better figure of one and two cores counts.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from benchmarks.engine_run import run
from benchmarks.shapes import SHAPES, Shape

PODS_MAX = 20_000


@dataclass(slots=True)
class Comparison:
    """Both sides' rates for one shape, pods per second."""

    shape: Shape
    peer: list[float]
    ours: list[float]

    @property
    def ratio(self) -> float:
        return median(self.ours) / median(self.peer)

    @property
    def verdict(self) -> str:
        wanted = self.shape.wanted_ratio
        if wanted is None:
            return ""
        return f"wanted {wanted:g}: {'met' if self.ratio >= wanted else 'MISSED'}"


def peer_binary(peer_dir: Path) -> Path:
    """The peer's program, built from its sources on first use. Needs Go."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bayplan-peer"
    binary = cache / "algobench"
    if not binary.exists():
        cache.mkdir(parents=True, exist_ok=True)
        sources = peer_dir.resolve().parent / "oracle"
        click.echo(f"building {binary.name} from {sources} (minutes, the first time)")
        build = ["go", "build", "-o", str(binary), "./cmd/algobench"]
        subprocess.run(build, cwd=sources, check=True)
    return binary


def peer_rate(binary: Path, shape: Shape, seconds: float) -> float:
    """kube-scheduler's better figure of one and two cores, with its default sampling."""
    command = [str(binary), "-only", shape.name, "-procs", "1,2", "-repeat", "1"]
    command += ["-limit", f"{seconds}s"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    rates = [x["rates"][0] for x in lines if x["shape"] == shape.name and x["pct"] == 0]
    if not rates:
        sys.exit(f"the peer printed nothing about {shape.name}")
    return max(rates)


def compared(binary: Path, shape: Shape, repeat: int, seconds: float) -> Comparison:
    """A B A B …"""
    found = Comparison(shape, [], [])
    for _ in range(repeat):
        found.peer.append(peer_rate(binary, shape, seconds))
        found.ours.append(run(shape, PODS_MAX, seconds).rate)
    return found


@click.command(help=__doc__)
@click.option("--peer-dir", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--repeat", default=3, help="runs of each side")
@click.option("--seconds", default=2.0, help="how long each run may take")
@click.option("--only", default="", help="shapes whose name contains one of these")
def main(peer_dir: Path, repeat: int, seconds: float, only: str) -> None:
    binary = peer_binary(peer_dir)
    wanted = [part for part in only.split(",") if part]
    table = Table("shape", "kube-scheduler pods/s", "Bayplan pods/s", "ratio", "")
    for column in table.columns[1:4]:
        column.justify = "right"
    for shape in SHAPES:
        if wanted and not any(part in shape.name for part in wanted):
            continue
        found = compared(binary, shape, repeat, seconds)
        table.add_row(
            shape.name,
            f"{median(found.peer):,.0f}",
            f"{median(found.ours):,.0f}",
            f"{found.ratio:.1f}",
            found.verdict,
        )
        click.echo(f"{shape.name}: {found.ratio:.1f}", err=True)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
