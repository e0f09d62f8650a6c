"""How long an API server waits for `bayplan webhook` while pods are created at a fixed rate.

    python -m benchmarks.bench_webhook [--nodes 5000] [--pods 50000] [--rate 50] [--seconds 20]

etcd and kube-apiserver are real: see `tests.live.binaries`. The cluster is that of `bench_why`; the
created pods request cpu that all nodes or no node has. The API server's own metric has the time of
each call of the webhook, with TLS and the way there and back; as in the webhook's own metric, a
percentile is the upper bound of its bucket. A creation is a whole request, which waits for the
webhook. Exit status 1: a creation was refused, a warning is false, or the 99th percentile of the
creations is above 50 ms.
"""

import asyncio
import re
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import click
import msgspec

from bayplan.adapters.live.client import ClientOptions, open_client
from benchmarks.bench_why import stored_objects
from benchmarks.machine import machine, markdown_table, today
from tests.live.binaries import PROGRAMS
from tests.live.control_plane import LOOPBACK, ControlPlane, token
from tests.live.mirror import Object
from tests.live.processes import replicas
from tests.live.webhook_world import Creator, Webhook, creator, grant, metrics, registered

_CALLS = "apiserver_admission_webhook_admission_duration_seconds_bucket"
_OWN = "bayplan_webhook_review_duration_seconds_bucket"
#: cpu that all nodes, or no node, has free.
_CPUS = ("500m", "40")
#: The 99th percentile that the webhook is held to.
_P99_SECONDS = 0.05


def _pod(number: int) -> tuple[Object, bool]:
    """A pod, and whether it has a warning."""
    cpu = _CPUS[number % len(_CPUS)]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": f"created-{number}", "namespace": "default", "labels": {"app": "created"}}
    spec = {"containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    return pod, cpu == _CPUS[-1]


async def _create(creating: Creator, rate: float, count: int) -> tuple[Counter[str], list[float]]:
    """Create pods at a rate. Returns how many warnings were right and missing, and the seconds."""
    counts: Counter[str] = Counter()
    seconds: list[float] = []

    async def one(number: int) -> None:
        pod, is_warned = _pod(number)
        start = perf_counter()
        warnings = await creating.create(pod)
        seconds.append(perf_counter() - start)
        is_right = bool(warnings) == is_warned
        counts["right" if is_right else "missed" if is_warned else "false"] += 1

    loop = asyncio.get_running_loop()
    begin = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            await asyncio.sleep(max(begin + number / rate - loop.time(), 0.0))
            tasks.create_task(one(number))
    return counts, sorted(seconds)


def percentile(buckets: Mapping[float, float], share: float) -> float:
    """The upper bound of the bucket of a percentile. ``buckets``: bound → cumulative count."""
    total = max(buckets.values(), default=0.0)
    return min((bound for bound, count in buckets.items() if count >= share * total), default=0.0)


def buckets_of(samples: Mapping[str, float], name: str) -> dict[float, float]:
    found: dict[float, float] = {}
    for sample, count in samples.items():
        bound = re.search(r'le="([^"]+)"', sample)
        if sample.startswith(name) and bound is not None:
            key = float(bound[1])
            found[key] = found.get(key, 0.0) + count
    return found


def _api_server_metrics(plane: ControlPlane) -> dict[str, float]:
    request = urllib.request.Request(
        f"https://{LOOPBACK}:{plane.port}/metrics",
        headers={"Authorization": f"Bearer {token('admin')}"},
    )
    with urllib.request.urlopen(request, context=plane.client_ssl_context()) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if line.startswith(_CALLS))
    return {name: float(value) for name, _, value in pairs}


def less(after: Mapping[float, float], before: Mapping[float, float]) -> dict[float, float]:
    return {bound: count - before.get(bound, 0.0) for bound, count in after.items()}


async def _measure(plane: ControlPlane, rate: float, seconds: float) -> tuple[list[str], bool]:
    """The cells of a row, and whether the webhook holds what it is held to."""
    count = int(rate * seconds)
    with tempfile.TemporaryDirectory() as folder:
        webhook = Webhook(plane, Path(folder))
        async with (
            open_client(plane.kubeconfig("admin"), ClientOptions(qps=-1)) as client,
            creator(plane, client) as creating,
        ):
            await grant(client)
            start = perf_counter()
            process = webhook.start()
            with replicas(process):
                process.wait_until_printed("The cluster was read")
                ready_seconds = perf_counter() - start
                async with registered(webhook, client, creating):
                    before = buckets_of(_api_server_metrics(plane), _CALLS)
                    own_before = buckets_of(await metrics(webhook), _OWN)
                    counts, creations = await _create(creating, rate, count)
                    calls = less(buckets_of(_api_server_metrics(plane), _CALLS), before)
                    samples = await metrics(webhook)
    own = less(buckets_of(samples, _OWN), own_before)
    late = samples.get('bayplan_webhook_reviews_total{result="late"}', 0.0)
    p99 = creations[int(len(creations) * 0.99)]
    cells = [
        f"{rate:g}",
        str(count),
        f"{ready_seconds:.0f}",
        f"{percentile(calls, 0.5) * 1000:g}",
        f"{percentile(calls, 0.99) * 1000:g}",
        f"{percentile(own, 0.99) * 1000:g}",
        f"{p99 * 1000:.0f}",
        f"{late:g}",
        str(counts["missed"]),
        str(counts["false"]),
    ]
    return cells, not counts["false"] and p99 <= _P99_SECONDS


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods", default=50_000, show_default=True)
@click.option("--rate", default=50.0, show_default=True, help="Creations a second")
@click.option("--seconds", default=20.0, show_default=True)
def main(nodes: int, pods: int, rate: float, seconds: float) -> None:
    """Measure the webhook at a fixed rate of creations."""
    plane = ControlPlane(PROGRAMS.get())
    try:
        plane.start()
        plane.store(
            (key, msgspec.json.encode(content)) for key, content in stored_objects(nodes, pods)
        )
        cells, is_held = asyncio.run(_measure(plane, rate, seconds))
    finally:
        plane.stop()
    headings = (
        "nodes", "pods", "creations/s", "creations", "ready: s", "call p50: ms", "call p99: ms",
        "webhook p99: ms", "creation p99: ms", "late", "missed", "false",
    )  # fmt: skip
    print(f"{today()}, {machine()}")
    print("\n".join(markdown_table(headings, [(str(nodes), str(pods), *cells)])))
    sys.exit(0 if is_held else 1)


if __name__ == "__main__":
    main()
