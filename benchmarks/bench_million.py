"""A million plain pods on a million nodes, every node scored, in one process on one core.

    python -m benchmarks million [--nodes 1000000] [--pods 1000000] [--records FILE] [--out F]

The engine gets the nodes as events of the API. Then the pods arrive in batches, as from a client
that creates pods at the rate at which they are scheduled: each batch is handed over, scheduled and
bound. Scheduling is the time from the queue's pop to the bind effect, in runs as long as those of
a live scheduler, with metrics, with the log line and with the record of the attempt, which is
streamed to a file. Handing over is the time that
the engine takes for the events of the pods, and for the ends of their bindings. There is no API
server, and the time to make and decode objects is not measured. All times are processor time of
this process.

Exit status 1: a pod got no node, or at full size a limit of `LIMITS` is exceeded.
"""

import json
import resource
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import BinaryIO, cast

import click

from bayplan.api.objects import NODE, POD
from bayplan.clock import ManualClock
from bayplan.engine.binding import BindingOutcome
from bayplan.engine.scheduler import Scheduler
from bayplan.garbage import rarely_collected
from bayplan.journal import FileSink, Journal
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, WatchEvent
from bayplan.runner import RUN_PODS_MAX, RUN_SECONDS_MAX
from bayplan.serving.log_lines import OutcomeLog
from benchmarks import shapes
from benchmarks.engine_run import added, config_of, discarded_log, settled_memory
from benchmarks.machine import machine
from benchmarks.shapes import Shape

FULL_SIZE = 1_000_000
PODS_PER_BATCH = 10_000
NODES_PER_BATCH = 10_000
#: Before garbage is searched, as in a command.
NEW_OBJECTS = 50_000
#: At full size: seconds of set-up, seconds of scheduling, GiB.
LIMITS = {"set_up_seconds": 180.0, "scheduling_seconds": 90.0, "peak_gib": 5.0}


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements, in seconds of processor time."""

    nodes: int
    pods: int
    bound: int
    #: The events of the nodes, and the first attempt, which ranks all nodes.
    set_up_seconds: float
    #: From the pop to the bind effect, for all pods except the first.
    scheduling_seconds: float
    #: The events of the pods and the ends of their bindings.
    handing_over_seconds: float
    #: Resident memory with the objects of all nodes and pods.
    peak_gib: float
    records_mib: float

    def exceeded(self) -> list[str]:
        """The limits that are exceeded; limits apply to the full size only."""
        problems = [] if self.bound == self.pods else [f"{self.bound:,} of {self.pods:,} bound"]
        if min(self.nodes, self.pods) >= FULL_SIZE:
            measured = asdict(self)
            problems += [
                f"{name}: {measured[name]:.1f}, at most {limit:g}"
                for name, limit in LIMITS.items()
                if measured[name] > limit
            ]
        return problems

    def lines(self) -> Iterator[str]:
        """The result as lines of text."""
        yield f"{self.bound:,} of {self.pods:,} pods bound on {self.nodes:,} nodes"
        for name, seconds, count, unit in (
            ("set-up", self.set_up_seconds, self.nodes, "node"),
            ("scheduling", self.scheduling_seconds, self.pods, "pod"),
            ("handing over", self.handing_over_seconds, self.pods, "pod"),
        ):
            yield f"{name:12s}  {seconds:8.1f} s   {seconds * 1e6 / count:6.1f} µs a {unit}"
        yield f"peak memory   {self.peak_gib:8.2f} GiB"
        yield f"records       {self.records_mib:8.1f} MiB"


class CountedStream:
    """Counts the bytes that are written to a file, which may be /dev/null."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes_written = 0

    def write(self, data: bytes) -> int:
        self.bytes_written += len(data)
        return self._file.write(data)


class Stopwatch:
    """Adds up processor time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += process_time() - self._start


def measure(node_count: int, pod_count: int, records: BinaryIO) -> Result:
    """Run the whole load. ``records``: where the records are streamed to."""
    shape = Shape("million", node_count, "default", pod_count)
    stream = CountedStream(records)
    journal = Journal([FileSink(cast(BinaryIO, stream)), OutcomeLog()])
    scheduler = Scheduler(
        config_of(shape), default_registry(), ManualClock(), journal=journal, raise_bugs=True
    )
    set_up, scheduling, handing_over = Stopwatch(), Stopwatch(), Stopwatch()
    with discarded_log(), rarely_collected(NEW_OBJECTS):
        for events in batches(NODE, shapes.nodes(shape), NODES_PER_BATCH):
            with set_up:
                for event in events:
                    scheduler.handle(event)
        pods = batches(POD, shapes.pods(shape), PODS_PER_BATCH)
        bound = 0
        with settled_memory():
            for number, events in enumerate(pods):
                with handing_over:
                    for event in events:
                        scheduler.handle(event)
                if not number:
                    with set_up:
                        scheduler.schedule_one()
                with scheduling:
                    while scheduler.schedule_run(RUN_PODS_MAX, RUN_SECONDS_MAX):
                        pass
                with handing_over:
                    bound += finish(scheduler)
    return Result(
        node_count,
        pod_count,
        bound,
        set_up.seconds,
        scheduling.seconds,
        handing_over.seconds,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        stream.bytes_written / 2**20,
    )


def batches(kind: str, contents: Iterator[shapes.Object], count: int) -> Iterator[list[WatchEvent]]:
    """Batches of events for new objects."""
    events: list[WatchEvent] = []
    for content in contents:
        events.append(added(kind, content))
        if len(events) == count:
            yield events
            events = []
    if events:
        yield events


def finish(scheduler: Scheduler) -> int:
    """Report the scheduler's bindings as done. Returns the number of bound pods."""
    bound = [effect for effect in scheduler.take_effects() if isinstance(effect, BindPod)]
    for effect in bound:
        scheduler.binding_finished(BindingOutcome(effect.pod.uid, None))
    return len(bound)


@click.command()
@click.option("--nodes", default=FULL_SIZE, show_default=True)
@click.option("--pods", default=FULL_SIZE, show_default=True)
@click.option("--records", "records_path", type=Path, default=Path("/dev/null"), show_default=True)
@click.option("--out", type=Path, help="Write the result as JSON")
def main(nodes: int, pods: int, records_path: Path, out: Path | None) -> None:
    """A million plain pods on a million nodes."""
    print(machine())
    with records_path.open("wb") as records:
        result = measure(nodes, pods, records)
    print("\n".join(result.lines()))
    if out is not None:
        out.write_text(json.dumps(asdict(result)), encoding="utf-8")
    problems = result.exceeded()
    for problem in problems:
        print(f"WRONG: {problem}")
    sys.exit(1 if problems else 0)
