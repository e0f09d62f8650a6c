"""The start time of commands, compared with the imports of three libraries, in the same run.

    python -m benchmarks start [--repeat 9] [--without-bytecode] [--markdown RESULTS.md]

The unit is the processor time of `python -c "import numpy, msgspec, click"`. Each round runs every
command once, and the ratio of a command is the median of its ratios in the rounds. The time that
Python itself takes to start is taken off both sides, except for `--version`. Bytecode is cached, as
pip and the image do when they install a package. ``--without-bytecode``: neither Bayplan nor any
library has any, so that all of it is compiled at each start.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

import click

from benchmarks.machine import machine, markdown_table, put_between, today

ROOT = Path(__file__).parents[1]
_MAIN = "from bayplan.cli import main; main()"
BARE = ("-c", "pass")
LIBRARIES = ("-c", "import numpy, msgspec, click")
HEADINGS = ("command", "CPU ms", "wall ms", "÷ imports", "wanted", "modules: Bayplan's", "all")
#: Counts modules when the program ends; a command ends its process itself.
_COUNTED = """
import atexit, sys
def count():
    own = sum(name.partition(".")[0] == "bayplan" for name in sys.modules)
    sys.stderr.write(f"\\n{own} {len(sys.modules)}")
atexit.register(count)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A command and its highest ratio."""

    name: str
    arguments: tuple[str, ...]
    ratio_max: float
    #: Whether Python's own start counts on both sides.
    is_plain: bool = False

    @property
    def script(self) -> str:
        return self.arguments[1] if self.arguments[0] == "-c" else _MAIN

    @property
    def python(self) -> tuple[str, ...]:
        """Arguments of the interpreter."""
        return self.arguments if self.arguments[0] == "-c" else ("-c", _MAIN, *self.arguments)


CASES = (
    Case("`bayplan --version`", ("--version",), 0.5, is_plain=True),
    Case("`bayplan --help`", ("--help",), 0.6),
    Case("`import bayplan`", ("-c", "import bayplan"), 0.3),
    Case("`from bayplan import ScorePlugin`", ("-c", "from bayplan import ScorePlugin"), 0.0),
    Case("`bayplan plugins`", ("plugins",), 3.0),
    Case("`bayplan simulate examples/quickstart`", ("simulate", "examples/quickstart"), 3.0),
)


def environment(folder: str, *, without_bytecode: bool) -> dict[str, str]:
    """With bytecode in a folder of its own, which is empty."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = folder
    return env | ({"PYTHONDONTWRITEBYTECODE": "1"} if without_bytecode else {})


def measured(arguments: tuple[str, ...], env: Mapping[str, str]) -> tuple[float, float]:
    """(processor seconds, seconds) of one process. Raises CalledProcessError."""
    before, start = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        env=env,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seconds, after = perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, seconds


def module_counts(case: Case) -> tuple[int, int]:
    """Modules that a command has loaded when it ends: Bayplan's, all."""
    _, *arguments = case.python
    command = [sys.executable, "-c", _COUNTED + case.script, *arguments[1:]]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    own, count = done.stderr.splitlines()[-1].split()
    return int(own), int(count)


def rows(repeat: int, *, without_bytecode: bool) -> list[list[str]]:
    """Cells of the table, a line for each case."""
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, without_bytecode=without_bytecode)
        sides = {"bare": BARE, "libraries": LIBRARIES, **{c.name: c.python for c in CASES}}
        for arguments in sides.values():
            measured(arguments, env)  # this round writes the bytecode
        rounds = [{n: measured(a, env) for n, a in sides.items()} for _ in range(repeat)]
    table: list[list[str]] = []
    for case in CASES:
        ratios: list[float] = []
        for each in rounds:
            bare = 0.0 if case.is_plain else each["bare"][0]
            ratios.append((each[case.name][0] - bare) / (each["libraries"][0] - bare))
        cpu, wall = (median(each[case.name][i] for each in rounds) * 1e3 for i in (0, 1))
        ratio = median(ratios)
        verdict = f"{case.ratio_max} {'met' if ratio <= case.ratio_max else 'MISSED'}"
        figures = [f"{cpu:.0f}", f"{wall:.0f}", f"{ratio:.2f}", verdict if case.ratio_max else ""]
        table.append([case.name, *figures, *map(str, module_counts(case))])
    for name in ("bare", "libraries"):
        cpu, wall = (median(each[name][i] for each in rounds) * 1e3 for i in (0, 1))
        label = "python" if name == "bare" else "`import numpy, msgspec, click`"
        table.append([label, f"{cpu:.0f}", f"{wall:.0f}", "", "", "", ""])
    return table


@click.command(help=__doc__)
@click.option("--repeat", default=9, show_default=True)
@click.option("--without-bytecode", is_flag=True)
@click.option("--markdown", "document", type=click.Path(path_type=Path))
def main(repeat: int, without_bytecode: bool, document: Path | None) -> None:
    table = markdown_table(HEADINGS, rows(repeat, without_bytecode=without_bytecode))
    flags = f" --repeat {repeat}" + (" --without-bytecode" if without_bytecode else "")
    head = [f"Measured {today()}: {machine()}.", "", f"    python -m benchmarks start{flags}"]
    lines = [*head, "", *table]
    print("\n".join(lines))
    if document is not None:
        put_between(document, "start", lines)
