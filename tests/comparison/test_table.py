"""Rows of a comparison, and summaries and differences of the rows."""

from typing import Any

import pandas
import polars

from bayplan.comparison.table import SPEED, Comparison
from tests.comparison.kit import run

REASON = "unschedulable: Insufficient cpu"
RUNS = [
    run("a", 0, placed=4.0),
    run("a", 1, placed=2.0, **{REASON: 2.0}),
    run("b", 0, placed=5.0),
    run("b", 1, placed=5.0, waiting=1.5),
]


def test_each_run_is_a_row_and_all_rows_have_the_same_columns() -> None:
    result = Comparison(RUNS, "a")
    assert len(result) == 4
    assert result.columns == ["input", "configuration", "seed", "placed", "waiting", REASON]
    assert all(list(row) == result.columns for row in result)
    assert result[1][REASON] == 2.0
    assert result[1]["waiting"] is None
    assert result[1:3] == [result[1], result[2]]


def test_pandas_reads_a_comparison() -> None:
    frame: Any = pandas.DataFrame(Comparison(RUNS, "a"))
    placed = frame.groupby("configuration")["placed"].mean()
    assert placed.index.to_list() == ["a", "b"]
    assert placed.to_list() == [3.0, 5.0]


def test_polars_reads_a_comparison() -> None:
    frame = polars.DataFrame(Comparison(RUNS, "a"))
    assert frame.columns == ["input", "configuration", "seed", "placed", "waiting", REASON]
    placed = frame.group_by("configuration", maintain_order=True).agg(polars.col("placed").mean())
    assert placed.rows() == [("a", 3.0), ("b", 5.0)]


def test_a_configuration_is_summarized_over_its_seeds() -> None:
    summary = Comparison(RUNS, "a").summary("", "a", "placed")
    assert summary is not None
    assert (summary.mean, summary.values) == (3.0, (4.0, 2.0))


def test_a_metric_of_only_some_runs_is_summarized_over_those() -> None:
    result = Comparison(RUNS, "a")
    assert result.by_seed("", "b", "waiting") == {1: 1.5}
    assert result.summary("", "a", "waiting") is None


def test_a_reason_that_did_not_occur_has_the_count_0() -> None:
    assert Comparison(RUNS, "a").by_seed("", "a", REASON) == {0: 0.0, 1: 2.0}


def test_differences_are_from_the_baseline() -> None:
    result = Comparison(RUNS, "b").paired("", "a", "placed")
    assert result is not None
    assert result.mean == -2.0


def test_speed_is_reported_beside_the_rows() -> None:
    result = Comparison(RUNS, "a")
    assert SPEED not in result.columns
    assert result.policies("")["a"][SPEED].values == (5.0, 5.0)
