"""The benchmark of reuse, at a size that is too small to measure speed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.bench_reuse import (
    LOADS,
    NODES_FILE,
    PODS_FILE,
    Load,
    Measured,
    main,
    measure,
    played,
    trace,
)

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n-{number},8000,16384,0,\n" for number in range(4)
)
COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trace: ten pods of two sizes fill four nodes, two wait, and two go at 500 s."""
    pods = [
        f"p-{number},{3000 if number % 2 else 4000},1024,0,0,,LS,Running,{10 * number},"
        f"{500 if number < 2 else ''},{10 * number}\n"
        for number in range(10)
    ]
    (tmp_path / NODES_FILE).write_text(NODES)
    (tmp_path / PODS_FILE).write_text(COLUMNS + "".join(pods))
    return tmp_path


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_every_load_has_equal_decisions_with_and_without_reuse(load: Load) -> None:
    result = measure(load, pods=30, repeat=1)
    assert result.is_identical
    assert result.decisions >= 3
    # With many signatures in turn, each pod is evaluated in full, because that is faster.
    are_in_turn = load.name == "reschedule after nodes fail"
    assert (result.kept > 0.5) is not are_in_turn


def test_pods_of_a_trace_come_and_go_and_wait_for_free_nodes(folder: Path) -> None:
    stage = played(Load("trace", trace(folder)), 0, reuse=True)
    assert len(stage.contents) == 8
    assert sorted(stage.places) == [f"p-{number}" for number in range(2, 10)]
    assert stage.attempt_count > 10
    assert measure(Load("trace", trace(folder)), 0, 1).is_identical


def test_pods_of_failed_nodes_are_scheduled_again() -> None:
    [load] = [each for each in LOADS if each.name.startswith("reschedule")]
    stage = played(load, 60, reuse=True)
    assert sum(uid.startswith("again/") for uid in stage.places) == stage.attempt_count > 20
    assert len(stage.places) == 300


def test_measurements_are_a_table_and_a_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    arguments = ["--only", "openb", "--repeat", "1", "--trace", str(folder), "--out", str(out)]
    completed = CliRunner().invoke(main, arguments)
    # Speed cannot be measured with so few decisions.
    is_slow = "times as fast, wanted at least" in completed.output
    assert completed.exit_code == int(is_slow), completed.output
    assert "openb trace" in completed.output
    [row] = json.loads(out.read_text())["rows"]
    assert (row["load"], row["is_identical"]) == ("openb trace", True)


def test_differing_decisions_and_missed_ratios_are_reported() -> None:
    result = Measured("a", 10, [(30.0, 20.0)], 0.0, 0.0, is_identical=False)
    assert result.problems({"a": 1.5}) == ["a: decisions differ with reuse"]
    result.is_identical = True
    assert result.problems({"a": 2}) == ["a: 1.50 times as fast, wanted at least 2"]
    assert result.problems({}) == []
