"""Start and end of the program."""

import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from bayplan.internal_errors import REPORT
from tests.cli.command_line import answer, bayplan, process, profile, write_objects
from tests.kit.manifests import node, pod

INTERRUPTS = """
import signal

from bayplan import ScalarFilterPlugin


class Interrupts(ScalarFilterPlugin):
    name = "Interrupts"

    def filter_node(self, state, pod, node):
        if pod.name == "second":
            signal.raise_signal(signal.SIGINT)
"""

OVERBOOKS = """
from bayplan import BindPlugin


class Overbooks(BindPlugin):
    name = "Overbooks"

    async def bind(self, state, pod, node_name, port):
        await port.bind(pod, "small")
"""


def test_the_installed_command_runs(tmp_path: Path) -> None:
    objects = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"))
    script = Path(sysconfig.get_path("scripts")) / "bayplan"
    completed = subprocess.run(
        [sys.executable, script, "simulate", objects],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.startswith("1 of 1 pod placed on 1 node\n")


def test_the_version_is_that_of_the_package() -> None:
    assert answer("--version") == f"bayplan, version {version('bayplan')}\n"


@pytest.mark.parametrize("command", ["simulate", "why", "config", "plugins"])
def test_every_command_is_listed_and_has_help(command: str) -> None:
    assert f"  {command}" in answer("--help")
    assert answer(command, "-h").startswith(f"Usage: bayplan {command} ")


def test_an_unknown_command_is_refused_with_the_nearest_name() -> None:
    completed = process("simulat")
    assert completed.returncode == 2
    assert b'No such command "simulat"; did you mean "simulate"?' in completed.stderr
    assert b"Traceback" not in completed.stderr


def test_running_without_assertions_is_refused() -> None:
    completed = process("plugins", python=("-O",))
    assert completed.returncode == 1
    assert completed.stderr == (
        b"bayplan: python -O removes assertions that Bayplan needs; run it without -O\n"
    )


def test_an_interrupted_run_ends_without_a_traceback_and_keeps_its_journal(tmp_path: Path) -> None:
    objects = write_objects(tmp_path / "in.yaml", node("n1"), pod("first"), pod("second"))
    plugin = write_objects(tmp_path / "interrupts.py", INTERRUPTS)
    config = write_objects(tmp_path / "config.yaml", profile(filter=["Interrupts"]))
    run = tmp_path / "run"
    completed = process("simulate", objects, "--plugin", plugin, "--config", config, "--out", run)
    assert completed.returncode == 130
    assert completed.stderr.endswith(b"bayplan: interrupted\n")
    assert b"Traceback" not in completed.stderr
    assert completed.stdout == b""
    assert not (run / "summary.json").exists()
    assert "chose n1" in answer("why", "first", "--run", run)


def test_a_broken_invariant_ends_the_run_with_one_line(tmp_path: Path) -> None:
    small = node("small", status={"allocatable": {"cpu": "1500m", "pods": "9"}})
    objects = write_objects(tmp_path / "in.yaml", small, node("n1"), pod("a"), pod("b"))
    plugin = write_objects(tmp_path / "overbooks.py", OVERBOOKS)
    config = profile(bind=["Overbooks"])
    config["profiles"][0]["plugins"]["bind"]["disabled"] = [{"name": "*"}]
    file = write_objects(tmp_path / "config.yaml", config)
    completed = process("simulate", objects, "--plugin", plugin, "--config", file)
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1].startswith(
        b"bayplan: a broken invariant ended the run: "
        b"default/b was bound to small, which has 1500 cpu and now 2000 taken; "
    )


#: Commands that read files, and the first object that they read.
DEFECTS = [
    (("simulate", "FILE"), "Pod default/a"),
    (("fit", "-f", "FILE", "CLUSTER"), "Node n1"),
    (("whatif", "FILE", "--drain", "n1"), "Pod default/a"),
    (("headroom", "-f", "FILE", "CLUSTER"), "Node n1"),
    (("why", "a", "CLUSTER", "FILE"), "Node n1"),
    (("compare", "FILE", "--config", "CONFIG"), "Pod default/a"),
]
DEFECT = """
import bayplan.sim.input.object_checks as checks
from bayplan.cli import main

def fail(self, kind, content):
    raise {problem}

checks.ObjectChecks._problems = fail
main()
"""


@pytest.mark.parametrize(("arguments", "name"), DEFECTS)
def test_a_defect_is_one_line_that_names_the_object_and_asks_for_a_report(
    tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    names = {
        "CONFIG": write_objects(tmp_path / "config.yaml", profile()),
        "FILE": write_objects(tmp_path / "in.yaml", pod("a")),
        "CLUSTER": write_objects(tmp_path / "cluster.yaml", node("n1")),
    }
    problem = "KeyError('name')"
    script = DEFECT.format(problem=problem)
    completed = process(*(names.get(each, each) for each in arguments), script=script)
    assert completed.returncode == 1
    [line] = completed.stderr.decode().splitlines()
    assert line.startswith(f"bayplan: internal error at {name} (sim/input/object_checks.py, line ")
    assert f": KeyError: 'name'; {REPORT}; BAYPLAN_DEBUG=1 shows the traceback" in line
    assert completed.stdout == b""


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        ("AssertionError", "AssertionError; this is a bug"),
        ("AssertionError('two\\nlines')", "AssertionError: two lines; this is a bug"),
        ("RecursionError('too deep')", "RecursionError: too deep; this is a bug"),
        ("MemoryError", "bayplan: out of memory: "),
    ],
)
def test_every_exception_is_one_line(tmp_path: Path, problem: str, line: str) -> None:
    objects = write_objects(tmp_path / "in.yaml", pod("a"))
    completed = process("simulate", objects, script=DEFECT.format(problem=problem))
    assert completed.returncode == 1
    [only] = completed.stderr.decode().splitlines()
    assert line in only


def test_the_traceback_of_a_defect_is_shown_if_it_is_asked_for(tmp_path: Path) -> None:
    objects = write_objects(tmp_path / "in.yaml", pod("a"))
    script = DEFECT.format(problem="KeyError('name')")
    completed = process("simulate", objects, script=script, env={"BAYPLAN_DEBUG": "1"})
    assert completed.returncode == 1
    assert b"Traceback" in completed.stderr
    assert completed.stderr.splitlines()[-1].endswith(REPORT.encode())


@pytest.mark.parametrize("arguments", [(), ("config",)])
def test_a_command_group_without_a_command_shows_help(arguments: tuple[str, ...]) -> None:
    assert "Commands:" in bayplan(*arguments).output
