"""One plugin's column of the score table.

The scores of one cycle.
"""

from typing import Any

import numpy as np
import pytest

from bayplan.framework import scoring
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.types import Normalizer
from bayplan.framework.validation import RefusedAnswer
from bayplan.plugins.image_locality import ImageLocality
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.testing import node, plugin, pod
from tests.framework.answering import answering, cluster_of, made, scores

# ---- scoring --------------------------------------------------------------------------------


def column(plugin_class: type[Any], weight: int = 1) -> scoring.PluginScores:
    plugin = made(plugin_class)
    call = scoring.ScoreCall("A", weight, scoring.score_of(plugin), scoring.normalize_of(plugin))
    nodes = cluster_of(*(node(f"n{number}") for number in range(3))).lend().nodes
    return call.column(CycleState(), pod(), nodes)


@pytest.mark.parametrize(
    ("normalizer", "raw", "final"),
    [
        pytest.param(Normalizer.NONE, (3, 6, 12), [3, 6, 12], id="none"),
        pytest.param(Normalizer.MAX, (3, 6, 12), [25, 50, 100], id="scaled to the highest"),
        pytest.param(Normalizer.MAX_REVERSED, (3, 6, 12), [75, 50, 0], id="reversed"),
        pytest.param(Normalizer.MAX_REVERSED, (0, 0, 0), [100, 100, 100], id="reversed zeros"),
        pytest.param(
            Normalizer.MIN_MAX, (3, 6, 12), [0, 33, 100], id="scaled between the extremes"
        ),
    ],
)
def test_scores_are_normalised_by_name(
    normalizer: Normalizer, raw: tuple[int, ...], final: list[int]
) -> None:
    result = column(answering("A", score=scores(*raw), normalizer=normalizer), weight=2)
    assert result.raw.tolist() == list(raw)
    assert result.normalized.tolist() == final
    assert result.weighted.tolist() == [2 * score for score in final]


def test_a_plugin_may_normalise_its_scores_itself() -> None:
    values = column(
        answering("A", score=scores(1, 2, 3), normalize=lambda state, pod, raw: raw * 10)
    )
    assert (values.raw.tolist(), values.normalized.tolist()) == ([1, 2, 3], [10, 20, 30])


def test_normalising_cannot_write_to_the_raw_scores() -> None:
    def in_place(state: Any, pod: Any, raw: Any) -> Any:
        raw *= 10
        return raw

    with pytest.raises(ValueError, match="read-only"):
        column(answering("A", score=scores(1, 2, 3), normalize=in_place))


def test_scores_may_be_returned_node_by_node() -> None:
    result = column(answering("A", score_node=lambda state, pod, info: int(info.name[1:])))
    assert result.raw.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param(
            {"score": lambda *_: np.zeros(3)},
            "returned float64[3]; wanted int64[3], an array with",
            id="floats",
        ),
        pytest.param(
            {"score": scores(1, 2)},
            "returned int64[2]; wanted int64[3]",
            id="too few for the nodes",
        ),
        pytest.param(
            {"score": lambda *_: [1, 2, 3]},
            "a list; wanted int64[3], an array with one whole number per node of the view",
            id="a list",
        ),
        pytest.param(
            {"score": None},
            "returned nothing (is a return missing?); wanted int64[3]",
            id="nothing",
        ),
        pytest.param(
            {"score_node": 0.5}, "returned 0.5; wanted an int", id="a float, node by node"
        ),
        pytest.param(
            {"score_node": True}, "returned True; wanted an int", id="a truth value, node by node"
        ),
        pytest.param({"score_node": None}, "returned nothing", id="nothing, node by node"),
        pytest.param(
            {"score": scores(1, 2, 3), "normalize": scores(1, 2)},
            "returned int64[2]; wanted",
            id="fewer scores after normalising",
        ),
    ],
)
def test_a_result_of_a_wrong_form_is_refused(answers: dict[str, Any], message: str) -> None:
    normalize = answers.get("normalize")
    if normalize is not None:
        answers = {**answers, "normalize": lambda state, pod, raw: normalize(None, None, None)}
    with pytest.raises(RefusedAnswer) as caught:
        column(answering("A", **answers))
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong", [101, -1, 2**63 - 1, -(2**63)])
def test_a_score_out_of_range_is_reported_in_upstreams_words(wrong: int) -> None:
    with pytest.raises(scoring.OutOfRange) as caught:
        column(answering("A", score=scores(0, wrong, 100)))
    assert str(caught.value).startswith(
        f'plugin "A" returns an invalid score {wrong}, it should in the '
        "range of [0, 100] after normalizing, at answering.py:"
    )


def test_an_outer_plugin_gets_normalised_scores_of_its_parts() -> None:
    """With a named normaliser, with the plugin's own, and unchanged without one."""
    state, raw = CycleState(), np.array([0, 1, 2], np.int64)
    tainting: Any = plugin(TaintToleration)
    plain: Any = plugin(ImageLocality)
    own = made(answering("Own", score=scores(0, 1, 2), normalize=scores(7, 8, 9)))
    results = [
        scoring.normalize_scores(one, state, pod(), raw).tolist() for one in (tainting, plain, own)
    ]
    assert results == [[100, 50, 0], [0, 1, 2], [7, 8, 9]]


# ---- score table ----------------------------------------------------------------------------


def int64s(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def table() -> scoring.ScoreTable:
    nodes = cluster_of(node("a"), node("b"), node("c")).lend().nodes
    columns = [
        scoring.PluginScores("Fit", 1, int64s(90, 70, 40), int64s(90, 70, 40)),
        scoring.PluginScores("Taint", 3, int64s(0, 2, 0), int64s(100, 0, 100)),
    ]
    other_nodes = {"far away": int64s(0, 60, 160)}
    return scoring.ScoreTable(nodes, columns, int64s(390, 130, 500), other_nodes)


def test_a_node_that_was_not_scored_has_no_row() -> None:
    with pytest.raises(KeyError, match="ghost"):
        table().row("ghost")


@pytest.mark.parametrize(
    ("totals", "best"), [((1, 3, 2), [1]), ((3, 3, 2), [0, 1]), ((0, 0, 0), [0, 1, 2])]
)
def test_the_best_nodes_are_all_nodes_with_the_highest_total(
    totals: tuple[int, ...], best: list[int]
) -> None:
    node_table = table()
    node_table.totals = int64s(*totals)
    assert node_table.best_positions().tolist() == best


def test_a_row_has_the_weighted_score_of_each_plugin_and_their_sum() -> None:
    assert table().row("c") == ([("Fit", 40), ("Taint", 300), ("far away", 160)], 500)
    for position in range(3):
        pairs, total = table().row_at(position)
        assert total == sum(score for _, score in pairs)
