"""Garbage collection is rarer inside, and as before outside."""

import gc

import pytest

from bayplan.comparison.collecting import rarely_collected


def test_collections_are_rarer_while_it_lasts() -> None:
    before = gc.get_threshold()
    with rarely_collected():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_thresholds_come_back_after_a_failure() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="broken"), rarely_collected():
        raise ValueError("broken")
    assert gc.get_threshold() == before
