"""`make soak`: an hour of churn against a real API server, and nothing in the scheduler grows.

    python -m tests.live.soak --minutes 10

Pods are created and deleted, and some fit nowhere; nodes change. Each line of the table shows
the memory, the descriptors, the threads and the tasks of `bayplan run`. At the end each of them is
compared between the second and the last quarter. Exit code 1: something grew, or a pod was lost.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tests.live.binaries import PROGRAMS
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import ready_node
from tests.live.processes import SchedulerProcess, config_file, replicas
from tests.live.run_world import LEADS, Cluster, cluster, wait_until_logged
from tests.live.world import small_pod

NAME = "soak"
PODS_PER_BATCH = 20
BATCH_SECONDS = 1.0
#: The maximum of pods at a time.
PODS_MAX = 600
#: One in this many batches changes a node, or has a pod that fits nowhere.
NODE_EVERY, LARGE_EVERY = 5, 3
#: The allowed growth from the second quarter to the last: a share, and a number.
GROWTH_SHARE, GROWTH_COUNT = 0.05, 5

#: `bayplan run` that writes the number of its tasks into a file on SIGUSR1. Its history of
#: decisions is short and soon full, so that further growth is a leak.
_SCRIPT = """
import asyncio, pathlib, signal, sys
from bayplan.serving import scheduler_server
scheduler_server.ENTRIES_MAX, scheduler_server.RECORDS_MAX = 1000, 200
path = pathlib.Path(sys.argv.pop(1))
signal.signal(signal.SIGUSR1, lambda *_: path.write_text(str(len(asyncio.all_tasks()))))
from bayplan.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of the scheduler at one moment."""

    seconds: float
    pods_created: int
    memory_mib: float
    descriptors: int
    threads: int
    tasks: int

    def line(self) -> str:
        return (
            f"{self.seconds:8.0f}  {self.pods_created:12d}  {self.memory_mib:10.1f}  "
            f"{self.descriptors:11d}  {self.threads:7d}  {self.tasks:5d}"
        )


HEADER = " seconds  pods created  memory MiB  descriptors  threads  tasks"
FLAT = ("memory_mib", "descriptors", "threads", "tasks")


def growth(samples: Sequence[Sample]) -> list[str]:
    """The fields whose minimum in the last quarter exceeds the median of the second quarter by more
    than the allowed growth. The allowance covers the variation of connections with the load."""
    quarter = len(samples) // 4
    sentences: list[str] = []
    for field in fields(Sample):
        if field.name not in FLAT:
            continue
        values = [getattr(sample, field.name) for sample in samples]
        before = statistics.median(values[quarter : 2 * quarter])
        after = min(values[-quarter:])
        if after > before * (1 + GROWTH_SHARE) + GROWTH_COUNT:
            sentences.append(f"{field.name} grew from {before:g} to {after:g}")
    return sentences


class Churn:
    """Creates and deletes pods and nodes."""

    def __init__(self, world: Cluster) -> None:
        self._world = world
        self.created_count = 0
        self._batches: list[list[str]] = []

    async def step(self, number: int) -> None:
        """Run one batch."""
        names = [f"p{number}-{each}" for each in range(PODS_PER_BATCH)]
        await self._world.add_pods(NAME, *names)
        self.created_count += len(names)
        if number % LARGE_EVERY == 0:
            large = small_pod(f"large-{number}", NAME)
            large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"
            await self._world.client.request("POST", self._pods(), large)
            names.append(f"large-{number}")
        self._batches.append(names)
        if number % NODE_EVERY == 0:
            await self._change_nodes(number)
        while len(self._batches) * PODS_PER_BATCH > PODS_MAX:
            await asyncio.gather(*map(self._delete, self._batches.pop(0)))

    async def end(self) -> None:
        """Wait until each pod that fits is bound, and delete all."""
        names = [name for batch in self._batches for name in batch if name.startswith("p")]
        await self._world.until_bound(*names)
        self._world.each_was_placed_once(names)

    async def _change_nodes(self, number: int) -> None:
        name = f"{NAME}-extra-{number}"
        await self._world.client.request("POST", "/api/v1/nodes", ready_node(name, cpu=1))
        await self._world.client.request("DELETE", f"/api/v1/nodes/{name}")

    async def _delete(self, name: str) -> None:
        options = {"gracePeriodSeconds": 0}
        await self._world.client.request("DELETE", f"{self._pods()}/{name}", options)

    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._world.namespace}/pods"


class Watched:
    """Measures the scheduler's process from outside."""

    def __init__(self, process: SchedulerProcess, pid: int, tasks_file: Path) -> None:
        self._process = process
        self._folder = Path(f"/proc/{pid}")
        self._tasks_file = tasks_file

    async def sample(self, seconds: float, created_count: int) -> Sample:
        self._tasks_file.unlink(missing_ok=True)
        self._process.send(signal.SIGUSR1)
        while not (self._tasks_file.exists() and self._tasks_file.read_text()):
            await asyncio.sleep(0.05)
        status = (self._folder / "status").read_text()
        (resident,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return Sample(
            seconds=seconds,
            pods_created=created_count,
            memory_mib=int(resident.split()[1]) / 1024,
            descriptors=len(os.listdir(self._folder / "fd")),
            threads=len(os.listdir(self._folder / "task")),
            tasks=int(self._tasks_file.read_text()),
        )


async def soak(
    plane: ControlPlane, folder: Path, minutes: float, print_line: Callable[[str], None]
) -> list[Sample]:
    """Run for some minutes. Raises AssertionError if a pod is lost or the scheduler ends."""
    samples: list[Sample] = []
    process = _scheduler(plane, folder)
    with replicas(process):
        async with cluster(plane, NAME) as world:
            await wait_until_logged(process, LEADS)
            watched, churn = Watched(process, process.pid, folder / "tasks"), Churn(world)
            started = time.monotonic()
            sampled, number = 0, 0
            interval_seconds = max(60 * minutes / 60, 2.0)
            print_line(HEADER)
            while (now := time.monotonic() - started) < 60 * minutes:
                await churn.step(number)
                number += 1
                if now >= sampled * interval_seconds:
                    sampled += 1
                    samples.append(await watched.sample(now, churn.created_count))
                    print_line(samples[-1].line())
                pause_seconds = started + number * BATCH_SECONDS - time.monotonic()
                await asyncio.sleep(max(pause_seconds, 0))
            await churn.end()
            process.send(signal.SIGUSR2)
            await wait_until_logged(process, '"Compared caches" differences=0')
        assert process.end() == 0
    assert "Traceback" not in process.output, process.output[-3000:]
    return samples


def _scheduler(plane: ControlPlane, folder: Path) -> SchedulerProcess:
    content = {
        "profiles": [{"schedulerName": NAME}],
        "leaderElection": {"resourceName": NAME},
        "clientConnection": {"qps": 5000, "burst": 5000},
    }
    arguments = [
        str(folder / "tasks"),
        "run",
        f"--kubeconfig={plane.kubeconfig('admin')}",
        f"--config={config_file(folder / 'config.yaml', content)}",
        "--secure-port=0",
        "--v=2",
    ]
    return SchedulerProcess(NAME, arguments, folder / "log", script=_SCRIPT)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="churn against a real API server")
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args(arguments).minutes
    plane = ControlPlane(PROGRAMS.get())
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        stack.callback(plane.stop)
        plane.start()
        samples = asyncio.run(soak(plane, Path(name), minutes, _print_now))
    sentences = growth(samples)
    print(f"{minutes:g} minutes: " + ("; ".join(sentences) or "nothing grew, no pod was lost"))
    return 1 if sentences else 0


def _print_now(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
