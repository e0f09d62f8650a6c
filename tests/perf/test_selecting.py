"""Names are patterns, labels are filtered as upstream's flag does it."""

import re

import pytest

from bayplan.perf.selecting import Selection


@pytest.mark.parametrize(
    ("label_filter", "takes"),
    [
        ("", True),
        ("performance", True),
        ("+performance", True),
        ("performance,short", False),
        ("performance,-short", True),
        ("performance, !short", True),
        ("-performance", False),
        ("!performance", False),
        (",", True),
    ],
)
def test_labels_must_or_must_not_be_there(label_filter: str, takes: bool) -> None:
    assert Selection(label_filter=label_filter).takes("A/b", ["performance", "slow"]) is takes


@pytest.mark.parametrize(
    ("pattern", "takes"),
    [("Basic", True), ("^Basic/5Nodes$", True), ("/500", False), ("^5", False)],
)
def test_a_name_is_searched_for(pattern: str, takes: bool) -> None:
    assert Selection([re.compile(pattern)]).takes("Basic/5Nodes", ()) is takes
