"""Which metrics differ, how significantly, and in which direction."""

from bayplan.comparison.findings import conclusions, findings
from bayplan.comparison.table import Comparison
from tests.comparison.kit import run


def compared(seeds: int = 3, **values: tuple[float, float]) -> Comparison:
    """Per metric: the value of baseline a, and the difference of b, which grows with the seed."""
    runs = [run("a", s, **{k: v for k, (v, _) in values.items()}) for s in range(seeds)]
    runs += [
        run(
            "b", s, **{k: v + more + (0.01 * s if more else 0.0) for k, (v, more) in values.items()}
        )
        for s in range(seeds)
    ]
    return Comparison(runs, "a")


def verdicts(comparison: Comparison) -> dict[str, str]:
    return {metric: row[0].text for metric, row in findings(comparison, "").differing}


def test_more_is_better_or_worse_as_the_metric_declares() -> None:
    comparison = compared(
        placed=(5.0, 1.0), nodes_used=(5.0, 1.0), mine=(5.0, 1.0), same=(1.0, 0.0)
    )
    assert verdicts(comparison) == {"placed": "better", "nodes_used": "worse", "mine": "different"}
    assert findings(comparison, "").same == ("same",)


def test_the_largest_significant_differences_come_first() -> None:
    comparison = compared(nodes_used=(100.0, 1.0), placed=(100.0, 50.0), mine=(1.0, 9.0))
    assert list(verdicts(comparison)) == ["placed", "nodes_used", "mine"]


def test_one_pair_of_runs_is_not_significant() -> None:
    assert verdicts(compared(seeds=1, placed=(5.0, 1.0))) == {"placed": "better?"}


def test_a_conclusion_is_one_sentence_per_configuration() -> None:
    comparison = compared(
        placed=(5.0, 1.0), nodes_used=(5.0, -1.0), mine=(5.0, 1.0), same=(1.0, 0.0)
    )
    [sentence] = conclusions(comparison, "")
    assert sentence == (
        "b against a: better in placed (+1.01), nodes_used (-0.99); different: mine (+1.01). "
        "1 metric is the same."
    )


def test_equal_metrics_have_a_conclusion() -> None:
    assert list(conclusions(compared(placed=(5.0, 0.0)), "")) == [
        "b against a: no metric differs (1 compared)."
    ]


def test_rounding_errors_are_not_differences() -> None:
    runs = [run("a", 0, held=3.25), run("b", 0, held=3.25 + 5e-16)]
    assert findings(Comparison(runs, "a"), "").same == ("held",)
