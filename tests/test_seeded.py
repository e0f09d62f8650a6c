"""The seeds that `make sim` tries, and the report of a failure."""

import os
import re
import subprocess

import pytest

from tests.seeded import MANY_SEEDS, ONE_SEED, machine_seeds, parse_seeds, replayable, seeds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", [0, 1, 2]), ("1000..1002", [1000, 1001, 1002]), (" 7..7 ", [7])],
)
def test_seeds_are_a_count_or_a_range(text: str, expected: list[int]) -> None:
    assert parse_seeds(text) == expected


@pytest.mark.parametrize("text", ["", "many", "1-5", "1..", "9..3", "0", "-4"])
def test_invalid_seeds_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"SEEDS={text}: ")):
        parse_seeds(text)


def test_the_environment_overrides_the_number_of_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ONE_SEED, raising=False)
    monkeypatch.delenv(MANY_SEEDS, raising=False)
    assert seeds(2) == [0, 1]
    monkeypatch.setenv(MANY_SEEDS, "40..41")
    assert seeds(2) == [40, 41]
    monkeypatch.setenv(ONE_SEED, "7")
    assert seeds(2) == [7]


def test_a_machine_tries_its_own_number_of_seeds_or_one_of_200(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ONE_SEED, raising=False)
    monkeypatch.setenv(MANY_SEEDS, "1000..1099")
    assert machine_seeds(4) == [1000, 1001, 1002, 1003]
    monkeypatch.setenv(MANY_SEEDS, "10000")
    assert machine_seeds(4) == list(range(50))
    monkeypatch.setenv(ONE_SEED, "7")
    assert machine_seeds(4) == [7]


def test_a_failure_names_the_command_that_replays_it() -> None:
    with pytest.raises(RuntimeError) as caught, replayable(7, "seed=7 conflicts=0.1"):
        raise RuntimeError("lost")
    assert caught.value.__notes__ == ["seed=7 conflicts=0.1", "replay it with: make sim SEED=7"]


@pytest.mark.parametrize(
    ("argument", "variable"),
    [("SEEDS=1000..1003", "BAYPLAN_SIM_SEEDS=1000..1003"), ("SEED=7", "BAYPLAN_SIM_SEED=7")],
)
def test_make_sim_passes_its_seeds_to_the_tests(argument: str, variable: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    command = ["make", "--dry-run", "sim", argument]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert f"{variable} " in ran.stdout
