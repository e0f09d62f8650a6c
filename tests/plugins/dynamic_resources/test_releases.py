"""Reservations that are being given up, as the next attempt at their pod sees them."""

import asyncio
from typing import cast

import pytest

from bayplan.plugins.dynamic_resources import releases
from bayplan.plugins.dynamic_resources.releases import Releases
from bayplan.ports import BindPort


class Port:
    """Time passes; after so many looks the write has ended."""

    def __init__(self, over: Releases, looks: int) -> None:
        self._over = over
        self._looks = looks

    async def sleep(self, seconds: float) -> None:
        self._looks -= 1
        if not self._looks:
            self._over.end("claim", "pod")


def ended(over: Releases, looks: int = 0) -> bool:
    return asyncio.run(over.ended("claim", "pod", cast(BindPort, Port(over, looks))))


def test_who_gave_nothing_up_waits_for_nothing() -> None:
    over = Releases()
    over.begin("claim", "another")
    assert not ended(over)


def test_the_next_attempt_waits_for_the_write_and_knows_of_it_once() -> None:
    over = Releases()
    over.begin("claim", "pod")
    assert ended(over, looks=3)
    assert not ended(over)


def test_a_write_that_has_ended_is_known_until_the_next_attempt() -> None:
    over = Releases()
    over.begin("claim", "pod")
    over.end("claim", "pod")
    assert ended(over)


def test_of_many_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "COUNT_MAX", 2)
    over = Releases()
    for pod in ("pod", "q", "r"):
        over.begin("claim", pod)
    over.end("claim", "pod")
    assert not ended(over)
