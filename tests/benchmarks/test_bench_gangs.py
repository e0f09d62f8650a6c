"""Each load runs at a small size."""

import pytest
from click.testing import CliRunner

from benchmarks.bench_gangs import IN_ONE_PASS, LOADS, Load, Outcome, main, run

TINY = 500


CASES = [(load, mode) for load in LOADS for mode in load.modes]


@pytest.mark.parametrize(("load", "mode"), CASES, ids=lambda part: getattr(part, "name", part))
def test_each_load_runs_in_each_mode(load: Load, mode: str) -> None:
    result = run(load.divided(TINY), mode)
    assert not result.problem
    assert result.seconds > 0
    if load.endings:
        assert result.failed
    else:
        assert result.bound == result.load.pods
        assert result.attempts == (result.load.groups if mode == IN_ONE_PASS else result.load.pods)


def test_an_unbound_pod_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.bench_gangs.LOADS", [Load("tight", 1, 1, 200)])
    measured = CliRunner().invoke(main, [])
    assert measured.exit_code == 1
    assert "tight in one pass: 0 bound, expected 200" in measured.output


def test_the_table_names_load_and_mode() -> None:
    measured = CliRunner().invoke(main, ["--divide", str(TINY), "--only", "10x"])
    assert measured.exit_code == 0
    assert "10x1000 in one pass" in measured.output
    assert "full" not in measured.output


def test_a_figure_below_its_limit_is_reported() -> None:
    [load] = [each for each in LOADS if each.name == "100x100 racks"]
    slow = Outcome(load, IN_ONE_PASS, 100.0, 100, load.pods, 0, 0.0)
    assert slow.missed() == "100x100 racks: 100 pods/s, wanted at least 6,000"
    assert Outcome(load, IN_ONE_PASS, 1.0, 100, load.pods, 0, 0.0).missed() == ""


def test_a_slow_failed_attempt_is_reported() -> None:
    [load] = [each for each in LOADS if each.endings]
    slow = Outcome(load, IN_ONE_PASS, 10.0, 1000, 0, 1000, 2.0)
    assert slow.missed() == "full: 2.00 ms per failed attempt, wanted at most 0.5"
