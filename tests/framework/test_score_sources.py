"""How args name sources, and the scores that a reader gets."""

from typing import Any

import numpy as np
import pytest
from msgspec import Struct

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PluginArgs
from bayplan.framework.score_sources import (
    Over,
    Source,
    SourceScores,
    StagedScores,
    UndeclaredSource,
    reads_of,
)
from bayplan.state.columns import read_only
from bayplan.testing import SampleCluster, node


class Part(Struct, frozen=True, rename="camel"):
    score_from: Source
    weight: int = 1


class Args(PluginArgs, frozen=True):
    one: Source = ""
    one_or_many: Source | tuple[Source, ...] = ()
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Source] = {}
    perhaps: Source | None = None
    other: str = "NotRead"
    over: Over = "feasible"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        pytest.param({"one": "A"}, [("one", "A")], id="a name"),
        pytest.param({"one_or_many": "A"}, [("oneOrMany", "A")], id="a name in place of a list"),
        pytest.param(
            {"one_or_many": ("A", "B/x")},
            [("oneOrMany[0]", "A"), ("oneOrMany[1]", "B/x")],
            id="a list",
        ),
        pytest.param(
            {"parts": (Part(score_from="A"), Part(score_from="B"))},
            [("parts[0].scoreFrom", "A"), ("parts[1].scoreFrom", "B")],
            id="inside nested args",
        ),
        pytest.param({"by_name": {"x": "A"}}, [("byName.x", "A")], id="by name"),
        pytest.param({"perhaps": "A"}, [("perhaps", "A")], id="an optional source"),
    ],
)
def test_sources_are_collected_by_type(fields: Any, named: list[tuple[str, str]]) -> None:
    reads = reads_of(Args(**fields))
    assert [each for each in reads.named if each[1]] == named


def test_a_source_that_is_named_twice_is_listed_once() -> None:
    assert reads_of(Args(one="A", one_or_many=("B", "A"))).names == ("A", "B")


# ---- reading --------------------------------------------------------------------------------


def reading() -> CycleState:
    nodes = SampleCluster().add(node("a"), node("b")).lend().nodes
    scores: StagedScores = {"normalized": np.array([40, 80]), "raw": np.array([4, 8])}
    state = CycleState()
    state.sources = SourceScores("Reader", nodes.take([1, 0]), {"A": scores})
    return state


def test_a_source_that_the_args_do_not_name_cannot_be_read() -> None:
    with pytest.raises(UndeclaredSource, match='"B" are not read by Reader: name it in a field'):
        reading().scores("B")


def test_outside_of_a_readers_turn_no_source_can_be_read() -> None:
    with pytest.raises(UndeclaredSource, match="in Score and NormalizeScore only"):
        CycleState().scores("A")
    info = next(SampleCluster().add(node("a")).lend().nodes.infos())
    with pytest.raises(UndeclaredSource):
        CycleState().score_of("A", info)


def test_lent_scores_cannot_be_written() -> None:
    own = np.array([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        read_only(own)[0] = 7
    own[0] = 7
