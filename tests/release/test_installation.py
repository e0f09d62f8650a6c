"""The wheel in a fresh environment: the first result, and optional libraries stay optional."""

import subprocess
from pathlib import Path

import pytest

from bayplan.clock import wall_seconds
from tests.release import environments

#: The machine may be busy while environments and packages are built.
pytestmark = pytest.mark.timeout(600)

#: From the start of the command to the end of its output.
DEMO_SECONDS_MAX = 10
#: Libraries that only extras and tools require.
OPTIONAL = ("dask", "distributed", "matplotlib", "pandas", "polars", "pyarrow", "scipy", "uvloop")

IMPORT_ALL = """
import importlib, pkgutil
import bayplan

count = 0
for module in pkgutil.walk_packages(bayplan.__path__, "bayplan."):
    # `python -m bayplan` would run here; examples are no package.
    if module.name == "bayplan.__main__" or module.name.startswith("bayplan.examples"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as problem:
        print(module.name, problem.name)
    count += 1
print(count)
"""


def test_the_demo_works_in_an_empty_folder(python: Path, tmp_path: Path) -> None:
    begin = wall_seconds()
    completed = environments.run(python, "demo", folder=tmp_path)
    assert wall_seconds() - begin < DEMO_SECONDS_MAX
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.startswith("27 of 32 pods placed on 12 nodes\n")
    assert not [*tmp_path.iterdir()]


def test_the_demo_writes_the_files_of_the_wheel(python: Path, tmp_path: Path) -> None:
    completed = environments.run(python, "demo", "--write", "files", folder=tmp_path)
    assert completed.returncode == 0, completed.stderr
    again = environments.run(python, "simulate", "files/gangs", folder=tmp_path)
    assert "12 pods gone: 12 ended" in again.stdout


def test_the_environment_runs_the_wheel_not_the_checkout(python: Path, tmp_path: Path) -> None:
    (file,) = printed(python, "import bayplan; print(bayplan.__file__)", tmp_path)
    assert Path(file).is_relative_to(python.parents[1])


def test_the_environment_has_no_optional_library(python: Path, tmp_path: Path) -> None:
    code = f"from importlib.util import find_spec; print(*filter(find_spec, {OPTIONAL!r}))"
    assert printed(python, code, tmp_path) == [""]


def test_only_two_modules_need_an_optional_library(python: Path, tmp_path: Path) -> None:
    """The page of a comparison has plots only if matplotlib is installed; agents need mcp."""
    *failures, count = printed(python, IMPORT_ALL, tmp_path)
    assert int(count) > 300
    assert failures == [
        "bayplan.cli.agents.server mcp_types",
        "bayplan.comparison.plots matplotlib",
    ]


def test_a_comparison_works_without_optional_libraries(python: Path, tmp_path: Path) -> None:
    environments.run(python, "demo", "--write", "files", folder=tmp_path)
    configs = [f"--config=files/gangs/{name}.yaml" for name in ("one_pass", "pod_by_pod")]
    completed = environments.run(
        python, "compare", "files/gangs", *configs, "--out", "runs", folder=tmp_path
    )
    assert completed.returncode == 0, completed.stderr
    assert "one_pass" in completed.stdout


def printed(python: Path, code: str, folder: Path) -> list[str]:
    command = [str(python), "-c", code]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return completed.stdout.rstrip("\n").split("\n")
