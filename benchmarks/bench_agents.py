"""How long `bayplan mcp` takes to answer `why` when the cluster is in memory.

    python -m benchmarks.bench_agents [--nodes 5000] [--pods 50000] [--questions 60]

The cluster is that of `bench_why` with the pods of `waiting_pods`, as a file. The SDK's client and
the server are in one process. The first question reads the file. The further ones are about
different pods that have a node, and about one pod of each kind that waits, whose workload has up to
a hundred waiting pods: without fixes, and with fixes. Wall time counts what else runs on the
machine; processor time does not.
"""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import click
import msgspec
from mcp import Client

from bayplan.cli.agents.commands import Commands
from bayplan.cli.agents.server import AgentServer
from bayplan.cli.agents.tools import Workplace
from bayplan.cli.warm_models import WarmModels
from bayplan.clock import RealClock
from benchmarks.bench_why import stored_objects
from benchmarks.machine import machine, markdown_table, today
from benchmarks.waiting_pods import WAITING_PODS, with_waiting_pods

_HEADINGS = (
    "nodes", "pods", "pod", "questions", "first: s", "p50: ms", "p95: ms", "CPU p50: ms",
    "CPU p95: ms",
)  # fmt: skip
#: Questions about each pod that waits.
_WAITING_COUNT = 8

Times = dict[str, list[tuple[float, float]]]


async def _measure(path: Path, bound: list[str]) -> tuple[float, Times]:
    """Seconds of the first question; of each kind of question, seconds and CPU seconds."""
    workplace = Workplace(paths=(str(path),), cluster_flags=(), policy_flags=(), folder=path.parent)
    server = AgentServer(workplace, Commands(WarmModels(RealClock(), 60.0)))
    questions = [("bound", {"name": name}) for name in bound]
    for kind, pod in WAITING_PODS.items():
        for suffix, fixes in (("", False), (", with fixes", True)):
            arguments = {"name": pod, "fixes": fixes}
            questions += [(f"{kind}{suffix}", arguments)] * _WAITING_COUNT
    times: Times = {}
    try:
        async with Client(server.protocol) as client:
            start = perf_counter()
            await client.call_tool("why", {"name": bound[0]})
            first = perf_counter() - start
            for kind, arguments in questions:
                begin, cpu = perf_counter(), process_time()
                result = await client.call_tool("why", arguments)
                assert not result.is_error, result.content
                pair = (perf_counter() - begin, process_time() - cpu)
                times.setdefault(kind, []).append(pair)
    finally:
        server.close()
    return first, times


def _at(values: list[float], share: float) -> str:
    return f"{sorted(values)[int(share * (len(values) - 1))] * 1000:.0f}"


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods", default=50_000, show_default=True)
@click.option("--questions", default=60, show_default=True)
def main(nodes: int, pods: int, questions: int) -> None:
    """Measure answers about pods of a cluster in memory."""
    contents = list(with_waiting_pods(content for _, content in stored_objects(nodes, pods)))
    bound = [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in contents
        if each["kind"] == "Pod" and each["spec"].get("nodeName")
    ][:: max(pods // questions, 1)][:questions]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        listed = {"apiVersion": "v1", "kind": "List", "items": contents}
        path.write_bytes(msgspec.json.encode(listed))
        first, times = asyncio.run(_measure(path, bound))
    rows: list[tuple[str, ...]] = []
    for kind, pairs in times.items():
        wall, cpu = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        cells = (_at(wall, 0.5), _at(wall, 0.95), _at(cpu, 0.5), _at(cpu, 0.95))
        rows.append((str(nodes), str(pods), kind, str(len(pairs)), f"{first:.0f}", *cells))
    print(f"{today()}, {machine()}")
    print("\n".join(markdown_table(_HEADINGS, rows)))


if __name__ == "__main__":
    main()
