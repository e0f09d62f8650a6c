"""Who is kept, and who must be asked, follows from how plugins look at nodes and what they sign."""

from typing import Any

import pytest

from bayplan.engine.likes import Like
from tests.engine.kept_kit import Attempts, Bad, MaxRank, Rank, Worse
from tests.engine.test_row_totals import Company, NotTheFirst, Unsigned, labelled


def like_of(*plugins: Any) -> Like | None:
    known = Attempts(*plugins, nodes=labelled(9))
    for _ in range(3):
        known.attempt()
    picks = known.known.picks
    return None if picks is None else picks.like


@pytest.mark.parametrize(
    ("plugins", "filters", "shares", "asked"),
    [
        ((Bad, Rank, MaxRank), ["Bad"], ["Rank", "MaxRank"], []),
        ((Bad, NotTheFirst, Rank), ["Bad"], ["Rank"], [(1, "NotTheFirst")]),
        ((NotTheFirst, Bad, Rank), ["Bad"], ["Rank"], [(0, "NotTheFirst")]),
        ((Bad, Worse, Rank, Company), ["Bad", "Worse"], ["Rank"], ["Company"]),
        ((Bad, Rank, Unsigned), ["Bad"], ["Rank"], ["Unsigned"]),
        # Normalised by extremes, which move with whoever is asked besides.
        ((Bad, NotTheFirst, Rank, MaxRank), ["Bad"], ["Rank"], [(1, "NotTheFirst"), "MaxRank"]),
    ],
)
def test_those_who_answer_row_by_row_and_sign_are_kept(
    plugins: Any, filters: list[str], shares: list[str], asked: list[Any]
) -> None:
    like = like_of(*plugins)
    assert like is not None
    assert [name for name, _ in like.filters] == filters
    assert [share.name for share in like.shares] == shares
    assert [*like.asked_filters, *like.asked_scores] == asked
    assert like.is_whole == (not asked)


def test_where_nobody_is_kept_there_is_no_like() -> None:
    assert like_of(NotTheFirst, Company) is None
