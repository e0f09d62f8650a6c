"""Problems that end a command before it starts."""

import sys
from pathlib import Path

import pytest

from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.problems import refusals
from bayplan.cli.streams import remark
from bayplan.config import ConfigError, Problem
from bayplan.internal_errors import REPORT
from bayplan.ports import RunAborted
from bayplan.problems import BadInputError
from bayplan.sim.input.inputs import InputError
from bayplan.sim.output.run_folder import RunFolderError
from tests.cli.command_line import write_objects

PROBLEMS = [
    ConfigError([Problem("profiles[0]", "no"), Problem("extenders[1]", "neither")], "c.yaml"),
    InputError(["a.yaml: no", "b.yaml: neither"]),
    RunFolderError("run: no\nrun: neither"),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problem_is_one_line_and_ends_the_command(
    problem: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, refusals():
        raise problem
    assert end.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"bayplan: {line}" for line in str(problem).splitlines()]


def test_a_defect_is_not_reported_as_a_refusal() -> None:
    with pytest.raises(ZeroDivisionError), refusals():
        raise ZeroDivisionError


def test_output_during_the_command_is_not_part_of_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with refusals():
        sys.stdout.write("a plugin says\n")
    message = capsys.readouterr()
    assert (message.out, message.err) == ("", "a plugin says\n")


def test_without_a_configuration_the_default_applies() -> None:
    [profile] = read_config(None, "").spec.profiles
    assert profile.scheduler_name == "default-scheduler"


def test_feature_gates_are_read_with_and_without_a_configuration() -> None:
    assert (
        read_config(None, "SchedulerPopFromBackoffQ=false").gate("SchedulerPopFromBackoffQ")
        is False
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("ghost", "No such file or directory", id="missing"),
        pytest.param("", "Is a directory", id="folder"),
        pytest.param("nul\0l", "embedded null byte", id="invalid path"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, reason: str) -> None:
    path = str(tmp_path / name)
    for read in (lambda: read_config(path, ""), lambda: read_plugins([path])):
        with pytest.raises(BadInputError) as refused:
            read()
        assert str(refused.value) == f"{path}: cannot be read: {reason}"


def test_plugins_of_files_are_added_to_the_registry(tmp_path: Path) -> None:
    file = write_objects(
        tmp_path / "mine.py",
        "from bayplan import ScalarFilterPlugin\n"
        "class Mine(ScalarFilterPlugin):\n"
        "    name = 'Mine'\n"
        "    def filter_node(self, state, pod, node): ...\n",
    )
    registry = read_plugins([str(file)])
    assert registry.find("Mine") is not None
    assert registry.find("NodeName") is not None
    assert registry.origin("Mine") == str(file)


def test_each_line_of_a_remark_names_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    remark("one\ntwo\x1b[1m")
    assert capsys.readouterr().err == "bayplan: one\nbayplan: two\\x1b[1m\n"


def test_a_broken_invariant_is_one_line_and_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, refusals():
        raise RunAborted("two pods on one port")
    assert end.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("bayplan: a broken invariant ended the run: two pods on one port; ")
    assert line.endswith(f"if no plugin of yours did it, {REPORT}")
