"""The report on the terminal."""

import io

import pytest
from rich.console import Console

from bayplan.comparison import report
from bayplan.comparison.decisions import DecisionKey, DecisionOutcome, Difference
from bayplan.comparison.report import comparison_answer, run_differences
from bayplan.comparison.table import Comparison
from tests.comparison.kit import run

RUNS = [
    *(run("a", seed, placed=10.0, left=1.0) for seed in range(3)),
    *(run("b", seed, placed=12.0 + seed, left=1.0) for seed in range(3)),
]


def lines(parts: object) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=160)
    for part in parts:  # type: ignore[attr-defined]
        console.print(part)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def test_the_conclusion_comes_first_then_differences_then_the_other_metrics() -> None:
    text = lines(comparison_answer(Comparison(RUNS, "a"), "t").parts())
    assert text[0] == "b against a: better in placed (+3). 1 metric is the same."
    first = text.index("placed 10 ± 0 13 ± 1 +3 [+0.52, +5.48] better")
    assert first < text.index("left 1 ± 0")
    assert "6 runs, 60 simulated decisions, 5 per second in each process" in text


def test_a_single_configuration_is_not_compared() -> None:
    assert not any(
        "difference" in line
        for line in lines(comparison_answer(Comparison(RUNS[:3], "a"), "t").parts())
    )


def test_without_scipy_the_report_says_how_to_get_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "has_intervals", lambda: False)
    text = lines(comparison_answer(Comparison(RUNS, "a"), "t").parts())
    assert text[-1] == "confidence intervals need SciPy: pip install 'bayplan[compare]'"


@pytest.mark.parametrize("count", [0, 1, 12])
def test_differing_decisions_are_counted_and_some_are_listed(count: int) -> None:
    differences = [
        Difference(DecisionKey(f"d/p{i}", 1), DecisionOutcome("scheduled", "a"), None)
        for i in range(count)
    ]
    text = lines(run_differences(differences, ("one", "other")).parts())
    assert text[0] == f"{count} differing decision{'s' * (count != 1)}"
    assert ("d/p0 1 scheduled a not tried" in text) is (count > 0)
    assert ("and 2 more" in text) is (count == 12)
