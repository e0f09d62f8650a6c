"""The commands that the benchmark of the start runs."""

import pytest

from benchmarks.bench_start import CASES, Case, environment, measured, module_counts


@pytest.mark.parametrize("without_bytecode", [False, True])
def test_bytecode_is_in_a_folder_of_its_own(
    without_bytecode: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    env = environment("/cache", without_bytecode=without_bytecode)
    assert env["PYTHONPYCACHEPREFIX"] == "/cache"
    assert ("PYTHONDONTWRITEBYTECODE" in env) == without_bytecode


def test_a_script_runs_unchanged_and_a_command_runs_through_the_entry_point() -> None:
    by_name = {case.name: case for case in CASES}
    assert by_name["`import bayplan`"].python == ("-c", "import bayplan")
    version = by_name["`bayplan --version`"]
    assert version.python == ("-c", version.script, "--version")


def test_modules_are_counted_when_the_program_ends() -> None:
    own, count = module_counts(Case("none", ("-c", "pass"), 0.0))
    assert own == 0
    assert count > 10
    assert module_counts(Case("import", ("-c", "import bayplan"), 0.0))[0] == 2


def test_a_process_takes_processor_time() -> None:
    used, seconds = measured(("-c", "sum(range(10**5))"), environment("", without_bytecode=True))
    assert 0 < used < 60
    assert seconds > 0
