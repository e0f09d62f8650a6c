"""`bayplan.compare`, as scripts and notebooks call it."""

from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.comparison import comparing
from bayplan.comparison.comparing import performed
from bayplan.comparison.planning import plan
from bayplan.sim.input.errors import InputError
from tests.comparison.kit import cluster_file, configuration, spec

CONFIGURATIONS = {
    "packed": configuration("MostAllocated"),
    "spread": configuration("LeastAllocated"),
}


def test_a_comparison_is_the_document_of_the_command_and_a_table(tmp_path: Path) -> None:
    comparison = bayplan.compare([cluster_file(tmp_path)], CONFIGURATIONS, "0..1")
    assert comparison.kind == "Comparison"
    assert "nodes_used" in str(comparison)
    frame: Any = comparison.table.set_index(["configuration", "seed"])
    assert frame.loc["packed", "nodes_used"].to_list() == [1.0, 1.0]
    assert frame.loc["spread", "nodes_used"].to_list() == [3.0, 3.0]


def test_with_a_folder_all_results_are_stored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    one, again = (
        bayplan.compare([cluster_file(tmp_path)], CONFIGURATIONS, [3], out=out) for _ in range(2)
    )
    assert one.inputs == again.inputs
    assert len(list((out / "runs").iterdir())) == 2
    assert (out / "results.csv").is_file()


def test_pods_arrive_until_the_demand_is_reached(tmp_path: Path) -> None:
    file = cluster_file(tmp_path)
    result = bayplan.compare([file], {"default": None}, [1], until_demand={"cpu": 100})
    assert result.inputs[""].runs[0].metrics["placed"] == 12


def test_invalid_arguments_raise_an_exception_with_all_problems(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"spec.seeds"):
        bayplan.compare([cluster_file(tmp_path)], {"a": None}, "x")


def test_if_all_runs_are_stored_no_process_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan(spec(tmp_path, seeds="0..1"), "test")
    performed(planned, tmp_path / "out", None, lambda _run, _was_there: None, processes=1)
    counts: list[int] = []
    here = comparing.executor_for(None, 1)

    def counted(_where: str | None, count: int) -> Any:
        counts.append(count)
        return here

    monkeypatch.setattr(comparing, "executor_for", counted)
    performed(planned, tmp_path / "out", None, lambda _run, _was_there: None, processes=8)
    assert counts == [0]
