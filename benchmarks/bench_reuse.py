"""How much reuse of results saves: the same loads with and without it, and equal decisions.

    python -m benchmarks reuse [--pods 2000] [--repeat 3] [--only job,replicas]
        [--trace FOLDER] [--out reuse.json] [--markdown benchmarks/RESULTS.md]

Decisions per second are attempts over the processor time of this process between the queue's pop
and the bind effect. The best of the rounds counts, because other programs only add time. Both
sides run in turn. The journals of one round of each are compared: a
difference ends with exit status 1. So does a ratio below its limit in ranges.yaml.

FOLDER holds the openb trace: openb_node_list_gpu_node.csv and openb_pod_list_default.csv. Its pods
arrive and end at their times. Pods that do not fit wait, and are tried again as in a cluster.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, final

import click
from rich.console import Console
from rich.table import Table

from bayplan.api.objects import NODE, POD, Pod, decode
from bayplan.clock import ManualClock
from bayplan.durations import DURATION_ANNOTATION
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import DigestSink, Journal
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, EventType, WatchEvent
from bayplan.sim.input.openb import TracePod, read_table
from benchmarks import shapes
from benchmarks.engine_run import config_of, discarded_log, production_journal, settled_memory
from benchmarks.machine import machine, markdown_table, put_between, today
from benchmarks.ranges import ranges
from benchmarks.shapes import SHAPES, Object, Shape

PROFILE = "default-scheduler"
NODES_FILE, PODS_FILE = "openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"


@final
class Stage:
    """A scheduler, and a cluster that performs its effects at once."""

    def __init__(self, *, reuse: bool, no_spread: bool, journal: Journal) -> None:
        shape = Shape("", 0, "", 0, no_spread=no_spread)
        self.clock = ManualClock()
        self.scheduler = Scheduler(
            config_of(shape, reuse=reuse),
            default_registry(),
            self.clock,
            journal=journal,
            raise_bugs=True,
        )
        #: By uid: the content of a pod, and its node.
        self.contents: dict[str, Object] = {}
        self.places: dict[str, str] = {}
        self.attempt_count = 0
        self.cpu_seconds = 0.0

    def add(self, kind: str, content: Object) -> None:
        if kind == POD:
            self.contents[content["metadata"]["uid"]] = content
        self.scheduler.handle(WatchEvent(EventType.ADDED, kind, decode(kind, content)))

    def delete(self, kind: str, content: Object) -> None:
        uid = content["metadata"].get("uid", "")
        content = _placed(content, self.places.pop(uid, "")) if kind == POD else content
        self.contents.pop(uid, None)
        self.scheduler.handle(WatchEvent(EventType.DELETED, kind, decode(kind, content)))

    def wait_until(self, seconds: float) -> None:
        self.clock.advance_to(max(seconds, self.clock.now()))
        self.scheduler.run_timers()

    def schedule(self) -> None:
        """Try all pods that are ready, and confirm the bindings afterwards."""
        bound: list[BindPod] = []
        start = process_time()
        while self.scheduler.schedule_one():
            self.attempt_count += 1
            bound += [e for e in self.scheduler.take_effects() if isinstance(e, BindPod)]
        self.cpu_seconds += process_time() - start
        for effect in bound:
            self._confirm(effect)

    def forget_time(self) -> None:
        """Discard the time of the preparation."""
        self.attempt_count, self.cpu_seconds = 0, 0.0

    def _confirm(self, effect: BindPod) -> None:
        uid = effect.pod.uid
        self.places[uid] = effect.node_name
        self.scheduler.binding_finished(BindingOutcome(uid, None))
        bound_pod = decode(POD, _placed(self.contents[uid], effect.node_name))
        assert isinstance(bound_pod, Pod)
        self.scheduler.handle(WatchEvent(EventType.MODIFIED, POD, bound_pod))


def _placed(content: Object, node_name: str) -> Object:
    return {**content, "spec": {**content["spec"], "nodeName": node_name}} if node_name else content


# ---- loads ---------------------------------------------------------------------------------

#: Runs a load with so many ``pods``.
Play = Callable[[Stage, int], None]


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    play: Play
    no_spread: bool = False


def of_shape(name: str) -> Play:
    """Pods of a shape of scheduler_perf on its nodes."""
    [shape] = [each for each in SHAPES if each.name == name]

    def play(stage: Stage, pods: int) -> None:
        for content in shapes.nodes(shape):
            stage.add(NODE, content)
        for index in range(min(pods, shape.pods)):
            stage.add(POD, shapes.make_pod(shape.template, f"pod-{index:06d}", "sched-1"))
        stage.schedule()

    return play


def replicas(stage: Stage, pods: int) -> None:
    """Fifty replicas of one workload after fifty of another one."""
    for content in shapes.nodes(Shape("", 1000, "default", 0)):
        stage.add(NODE, content)
    for index in range(pods):
        stage.add(POD, _of_kind(index, index // 50))
        stage.schedule()


def short_turns(kind_count: int) -> Play:
    """Two pods of each kind in turn, on 5,000 nodes."""

    def play(stage: Stage, pods: int) -> None:
        for node in shapes.nodes(Shape("", 5000, "default", 0)):
            stage.add(NODE, node)
        for index in range(pods):
            stage.add(POD, _of_kind(index, index // 2 % kind_count))
        stage.schedule()

    return play


def reschedule(stage: Stage, pods: int) -> None:
    """A tenth of the nodes fails, and half of the pods of these nodes are created again."""
    cluster_nodes = list(shapes.nodes(Shape("", max(pods // 2, 10), "default", 0)))
    for each in cluster_nodes:
        stage.add(NODE, each)
    for index in range(10 * len(cluster_nodes)):
        stage.add(POD, _of_kind(index, index % 20))
    stage.schedule()
    stage.forget_time()
    failed = cluster_nodes[: len(cluster_nodes) // 10]
    names = {each["metadata"]["name"] for each in failed}
    lost = [uid for uid, name in stage.places.items() if name in names]
    for each in failed:
        stage.delete(NODE, each)
    for number, uid in enumerate(lost):
        content = stage.contents[uid]
        stage.delete(POD, content)
        again = {**content["metadata"], "name": f"again-{number}", "uid": f"again/{number}"}
        stage.add(POD, {**content, "metadata": again})
    stage.schedule()


def _of_kind(index: int, kind: int) -> Object:
    """Pods of a kind are of one size and have one label."""
    pod = shapes.make_pod("default", f"pod-{index:06d}", "sched-1")
    requests = {"cpu": f"{100 + kind}m", "memory": "100Mi"}
    pod["metadata"]["labels"] = {"app": f"app-{kind}"}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    return pod


def trace(folder: Path) -> Play:
    """openb: pods arrive and end at their times. Raises OSError and ValueError."""
    nodes = _table(folder / NODES_FILE, with_times=False).nodes
    pods = _table(folder / PODS_FILE, with_times=True).pods

    def play(stage: Stage, _: int) -> None:
        for each in nodes:
            stage.add(NODE, each)
        for seconds, is_there, pod in _timeline(pods):
            stage.wait_until(seconds)
            (stage.add if is_there else stage.delete)(POD, pod)
            stage.schedule()

    return play


def _table(path: Path, *, with_times: bool) -> Any:
    table = read_table(path.read_text(encoding="utf-8"), with_times=with_times)
    if table.problems:
        raise ValueError(f"{path}: {table.problems[0]}")
    return table


def _timeline(pods: Sequence[TracePod]) -> list[tuple[float, bool, Object]]:
    """(time, whether the pod arrives, pod), with departures before arrivals at the same time."""
    events: list[tuple[float, bool, Object]] = []
    for pod, seconds in pods:
        meta = {**pod["metadata"], "uid": pod["metadata"]["name"]}
        spec = {**pod["spec"], "schedulerName": PROFILE}
        content = {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
        events.append((seconds, True, content))
        runs_for = meta["annotations"].get(DURATION_ANNOTATION)
        if runs_for is not None:
            events.append((seconds + float(runs_for.removesuffix("s")), False, content))
    return sorted(events, key=lambda event: event[:2])


LOADS = (
    Load("large job", of_shape("basic-5000")),
    Load("replicas in a row", replicas),
    Load("200 kinds in short turns", short_turns(200)),
    Load("1,000 kinds in short turns", short_turns(1000)),
    Load("reschedule after nodes fail", reschedule),
    Load("one host port a node", of_shape("nospread-batching=true-hostport-5000"), no_spread=True),
    Load(
        "one pod fills a node", of_shape("nospread-batching=true-saturation-5000"), no_spread=True
    ),
)


# ---- measuring -----------------------------------------------------------------------------


@dataclass(slots=True)
class Measured:
    """One load with reuse and without; rates are decisions per second of processor time."""

    load: str
    decisions: int
    #: With and without, in pairs of neighbours.
    rates: Sequence[tuple[float, float]]
    #: The share of attempts with a ranking, and the share of results of nodes from the cache.
    ranked: float
    kept: float
    is_identical: bool

    @property
    def rate_on(self) -> float:
        return median(rate for rate, _ in self.rates)

    @property
    def rate_off(self) -> float:
        return median(rate for _, rate in self.rates)

    @property
    def ratio(self) -> float:
        return median(rate_on / rate_off for rate_on, rate_off in self.rates)

    def problems(self, ratio_min: Mapping[str, float]) -> list[str]:
        problems = [] if self.is_identical else [f"{self.load}: decisions differ with reuse"]
        least = ratio_min.get(self.load)
        if least is not None and self.ratio < least:
            problems.append(
                f"{self.load}: {self.ratio:.2f} times as fast, wanted at least {least:g}"
            )
        return problems


def played(load: Load, pods: int, *, reuse: bool, journal: Journal | None = None) -> Stage:
    """Run a load. ``journal``: None means the journal of `bayplan run`."""
    journal = production_journal() if journal is None else journal
    stage = Stage(reuse=reuse, no_spread=load.no_spread, journal=journal)
    with discarded_log(), settled_memory():
        load.play(stage, pods)
    stage.scheduler.close()
    return stage


def measure(load: Load, pods: int, repeat: int) -> Measured:
    """Both sides in turn, because the speed of a machine varies; neither is always the second."""
    rates = [_pair(load, pods, is_swapped=bool(number % 2)) for number in range(repeat)]
    digests = DigestSink(), DigestSink()
    stage = played(load, pods, reuse=True, journal=Journal(digests[:1]))
    played(load, pods, reuse=False, journal=Journal(digests[1:]))
    reuse_of = stage.scheduler.reuse(PROFILE)
    counts = list(reuse_of.row_counts().values())
    kept = sum(each.cached for each in counts)
    return Measured(
        load=load.name,
        decisions=stage.attempt_count,
        rates=rates,
        ranked=reuse_of.attempt_counts["hint_used"] / max(reuse_of.attempt_counts.total(), 1),
        kept=kept / max(kept + sum(each.evaluated for each in counts), 1),
        is_identical=digests[0].digest == digests[1].digest,
    )


def _pair(load: Load, pods: int, *, is_swapped: bool) -> tuple[float, float]:
    """The rates with reuse and without."""
    rates: dict[bool, float] = {}
    for reuse in (False, True) if is_swapped else (True, False):
        stage = played(load, pods, reuse=reuse)
        assert stage.attempt_count, f"{load.name}: nothing was scheduled"
        rates[reuse] = stage.attempt_count / max(stage.cpu_seconds, 1e-9)
    return rates[True], rates[False]


HEADINGS = ("load", "decisions", "/s with", "/s without", "ratio", "ranked", "kept", "same")


def line(measured: Measured) -> tuple[str, ...]:
    return (
        measured.load,
        f"{measured.decisions:,}",
        f"{measured.rate_on:,.0f}",
        f"{measured.rate_off:,.0f}",
        f"{measured.ratio:.2f}",
        f"{measured.ranked:.0%}",
        f"{measured.kept:.1%}",
        "yes" if measured.is_identical else "NO",
    )


@click.command(help=__doc__)
@click.option("--pods", default=2000, help="of each load but the trace")
@click.option(
    "--repeat", default=3, help="rounds of each side; the ratio is the median of the rounds"
)
@click.option("--only", default="", help="loads whose name contains one of these")
@click.option("--trace", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path), help="write the rows as JSON, too")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(
    pods: int,
    repeat: int,
    only: str,
    folder: Path | None,
    out: Path | None,
    markdown: Path | None,
) -> None:
    loads = [*LOADS, *([Load("openb trace", trace(folder))] if folder is not None else [])]
    patterns = [part for part in only.split(",") if part]
    table = Table(*HEADINGS)
    rows: list[Measured] = []
    for load in loads:
        if not patterns or any(part in load.name for part in patterns):
            rows.append(measure(load, pods, repeat))
            table.add_row(*line(rows[-1]))
    Console(width=110).print(table)
    if markdown is not None:
        text = [f"Measured {today()}: {machine()}.", ""]
        text += [f"    python -m benchmarks reuse --repeat {repeat} --trace FOLDER", ""]
        text += markdown_table(HEADINGS, map(line, rows))
        put_between(markdown, "reuse", text)
    if out is not None:
        out.write_text(
            json.dumps({"rows": [{**asdict(row), "ratio": row.ratio} for row in rows]}, indent=2)
            + "\n"
        )
    problems = [text for row in rows for text in row.problems(ranges().reuse_at_least)]
    for problem in problems:
        click.echo(problem, err=True)
    sys.exit(bool(problems))
