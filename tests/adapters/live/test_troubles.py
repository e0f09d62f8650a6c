"""What cannot be done at present."""

import logging

import pytest

from bayplan.adapters.live.troubles import Troubles


def test_a_trouble_is_told_when_it_begins_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    troubles = Troubles()
    for problem in ("no", "no", "still no", "still no"):
        troubles.begin("list v1 Node", RuntimeError(problem))
    assert troubles.problems == {"list v1 Node": "still no"}
    troubles.end("list v1 Node")
    troubles.end("list v1 Node")
    assert not troubles.problems
    assert caplog.messages == [
        "cannot list v1 Node: no",
        "cannot list v1 Node: still no",
        "can list v1 Node again",
    ]
