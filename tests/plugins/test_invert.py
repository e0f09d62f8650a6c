"""Invert: the opposite."""

from bayplan.framework.interface import Normalizer
from bayplan.framework.status import Status
from bayplan.plugins.invert import Invert
from tests.plugins.connector_kit import made_of, table_of


def test_a_score_becomes_what_it_lacks_of_100() -> None:
    assert made_of(Invert, {"scoreFrom": "A"}, {"A": (0, 10, 45, 100)}) == [100, 90, 55, 0]


def test_normalised_scores_are_inverted_unless_raw_ones_are_wanted() -> None:
    scores, by_max = {"A": (3, 6, 12)}, Normalizer.MAX
    assert made_of(Invert, {"scoreFrom": "A"}, scores, normalizer=by_max) == [75, 50, 0]
    raw = {"scoreFrom": "A", "stage": "raw"}
    assert made_of(Invert, raw, scores, normalizer=by_max) == [97, 94, 88]


def test_raw_scores_beyond_100_have_no_opposite() -> None:
    raw = {"scoreFrom": "A", "stage": "raw"}
    found = table_of(Invert, raw, {"A": (0, 300)}, normalizer=Normalizer.MAX)
    assert isinstance(found, Status)
    assert 'plugin "Invert" returns an invalid score -200' in found.message
