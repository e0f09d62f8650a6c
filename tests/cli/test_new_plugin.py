"""`bayplan plugins new`: the generated files work unchanged."""

import json
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.plugins.registry import ENTRY_POINT_GROUP, Registry
from tests.cli.command_line import answer, refusal

NAME, MODULE = "PreferQuietNodes", "prefer_quiet_nodes"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new package in the working directory."""
    monkeypatch.chdir(tmp_path)
    assert f"pip install ./{MODULE}" in answer("plugins", "new", NAME)
    yield tmp_path / MODULE
    sys.modules.pop(MODULE, None)


def test_the_generated_plugin_runs_in_a_simulation(folder: Path) -> None:
    options = ("--plugin", folder / f"{MODULE}.py", "--config", folder / "config.yaml")
    result = json.loads(answer("simulate", folder / "scenario.yaml", *options, "-o", "json"))
    assert result["placements"] == {f"default/{name}": "quiet" for name in "cde"}


def test_the_generated_configuration_has_one_line_for_the_plugin_and_its_args(folder: Path) -> None:
    options = ("--plugin", folder / f"{MODULE}.py")
    whole = answer("config", "check", folder / "config.yaml", *options)
    assert "pointsPerPod: 10" in whole
    enabled = [line for line in (folder / "config.yaml").read_text().splitlines() if NAME in line]
    assert len(enabled) == 2


def test_the_generated_tests_pass(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    tests = runpy.run_path(str(folder / f"test_{MODULE}.py"))
    names = [name for name in tests if name.startswith("test_")]
    assert len(names) == 3
    for name in names:
        tests[name]()


def test_the_commands_of_the_generated_readme_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    lines = (folder / "README.md").read_text().splitlines()
    commands = [line.split()[1:] for line in lines if line.startswith("    bayplan ")]
    local = [command for command in commands if command[0] != "capture" and "run" in command]
    assert [command[0] for command in local] == ["simulate", "why"]
    assert "passed  PreferQuietNodes" in answer(*commands[0])
    answers = [answer(*command) for command in local]
    assert "PreferQuietNodes" in answers[1]


def test_the_generated_entry_point_names_the_plugin(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "prefer-quiet-nodes"
    assert project["project"]["entry-points"][ENTRY_POINT_GROUP] == {NAME: f"{MODULE}:{NAME}"}
    assert Registry([]).load_file(folder / f"{MODULE}.py") == [NAME]


@pytest.mark.parametrize(
    ("name", "module"), [("A", "a"), ("GPUShare", "gpu_share"), ("PreferZone2", "prefer_zone2")]
)
def test_the_module_is_named_after_the_plugin(tmp_path: Path, name: str, module: str) -> None:
    answer("plugins", "new", name, "--out", tmp_path / "x")
    assert (tmp_path / "x" / f"{module}.py").is_file()


def test_existing_files_are_not_overwritten(folder: Path) -> None:
    before = {file: file.read_bytes() for file in folder.iterdir()}
    assert refusal("plugins", "new", NAME) == [
        f"{MODULE}: exists already; name another folder with --out"
    ]
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quiet", 'found "quiet", wanted a class name such as PreferQuietNodes'),
        ("Quiet Nodes", 'found "Quiet Nodes", wanted a class name'),
        ("../X", 'found "../X", wanted a class name'),
        ("", "found nothing, wanted a class name"),
        ("Scale", "a plugin Scale exists already; `bayplan plugins` lists all plugins"),
        ("Json", 'found "Json", wanted another name: json is a keyword or a module of Python'),
        ("Class", 'found "Class", wanted another name: class is a keyword or a module of Python'),
    ],
)
def test_an_invalid_name_is_refused(tmp_path: Path, name: str, message: str) -> None:
    [line] = refusal("plugins", "new", name, "--out", tmp_path / "x")
    assert line.startswith(f"NAME: {message}")
    assert not (tmp_path / "x").exists()


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [line] = refusal("plugins", "new", NAME, "--out", tmp_path / "file" / "x")
    assert line.startswith(f"{tmp_path / 'file' / 'x'}: cannot be written: ")
