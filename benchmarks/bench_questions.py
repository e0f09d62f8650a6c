"""What the questions about a cluster cost: processor seconds and memory of each command.

    python -m benchmarks questions [--nodes 100 --nodes 1000] [--seed 3]

The cluster is drawn as a dump of kubectl (`tests.cases.dumps`): some pods per node, with
controllers, claims, budgets, and pods that wait. Each command is a process of its own and reads the
dump; its processor seconds contain that. Memory is the largest resident size.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import msgspec

from benchmarks.machine import machine, markdown_table, today
from tests.cases.dump_objects import Content
from tests.cases.dumps import Dump, draw_dump

_HEADINGS = ("nodes", "pods", "command", "CPU s", "memory MiB")
_SCRIPT = "from bayplan.cli import main; main()"


def _commands(path: str, node: str, waiting: str) -> dict[str, list[str]]:
    return {
        "why POD": ["why", waiting, path],
        "why --all-pending": ["why", "--all-pending", path],
        "fit": ["fit", "--cpu", "2", "--memory", "4Gi", "--replicas", "10", path],
        "whatif --drain": ["whatif", path, "--drain", node],
        "whatif --drain-each": ["whatif", path, "--drain-each"],
        "simulate": ["simulate", path],
    }


def _without_twins(dump: Dump) -> Dump:
    """Of thousands of drawn names, some are equal: the first object stays."""
    named: dict[tuple[str, str, str], Content] = {}
    for each in dump.objects:
        meta = each["metadata"]
        named.setdefault((each["kind"], meta.get("namespace", ""), meta["name"]), each)
    dump.objects = list(named.values())
    return dump


def _cost(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and MiB of one command. Exits if it fails or prints no answer.

    The exit code alone does not say that: Python ends with 1 after a traceback, and a command ends
    with 1 after an answer such as "no". A signal is a code below 0.
    """
    command = [sys.executable, "-c", _SCRIPT, *arguments]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1) or not answer:
            errors.seek(0)
            text = errors.read().decode()
            sys.exit(f"bayplan {' '.join(arguments)}: exit code {process.returncode}: {text}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


@click.command(help=__doc__)
@click.option("--nodes", "sizes", multiple=True, type=int, default=(100, 1000), show_default=True)
@click.option("--seed", default=3, show_default=True)
def main(sizes: tuple[int, ...], seed: int) -> None:
    print(f"{today()}, {machine()}")
    rows: list[tuple[str, ...]] = []
    for size in sizes:
        dump = _without_twins(draw_dump(seed, size))
        pods = dump.of_kind("Pod")
        waiting = next(
            f"{p['metadata']['namespace']}/{p['metadata']['name']}"
            for p in pods
            if p["metadata"]["name"] == "huge"
        )
        node = dump.of_kind("Node")[0]["metadata"]["name"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cluster.json"
            listed = {"apiVersion": "v1", "kind": "List", "items": dump.objects}
            path.write_bytes(msgspec.json.encode(listed))
            for name, arguments in _commands(str(path), node, waiting).items():
                seconds, mebibytes = _cost(arguments)
                cells = (f"{size:,}", f"{len(pods):,}", f"`{name}`")
                rows.append((*cells, f"{seconds:.1f}", f"{mebibytes:,.0f}"))
                print(*rows[-1], flush=True)
    print("\n".join(markdown_table(_HEADINGS, rows)))


if __name__ == "__main__":
    main()
