"""A blocking plugin is named. Time is passed in, and nothing sleeps."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from bayplan.framework.plugin import ScalarFilterPlugin
from bayplan.testing import handle
from bayplan.watchdog import BlockingCall, BlockingCalls, PluginWatchdog


class Slow(ScalarFilterPlugin):
    """Runs a function of the test during Filter."""

    name = "Slow"
    inside: Callable[[], None]

    def filter_node(self, state: Any, pod: Any, node: Any) -> None:
        self._work()

    def _work(self) -> None:
        self.inside()


def blocked(inside: Callable[[], None]) -> None:
    plugin = Slow(None, handle(), "Slow/one")
    plugin.inside = inside
    plugin.filter_node(None, None, None)


def stack() -> FrameType:
    return sys._getframe(1)


def test_a_call_that_does_not_return_is_named_with_its_point_and_place() -> None:
    calls, samples = BlockingCalls(limit_seconds=5), list[BlockingCall | None]()

    def inside() -> None:
        samples.extend(calls.sample(stack(), seconds) for seconds in (10, 14, 15))

    blocked(inside)
    first, second, third = samples
    assert first is second is None
    assert third is not None
    assert (third.plugin, third.point, third.seconds) == ("Slow/one", "Filter", 5)
    assert third.place.startswith("test_watchdog.py:")


def test_many_short_calls_are_not_one_long_call() -> None:
    calls, samples = BlockingCalls(limit_seconds=5), list[BlockingCall | None]()
    for seconds in range(0, 60, 4):
        blocked(lambda seconds=seconds: samples.append(calls.sample(stack(), seconds)))
    assert set(samples) == {None}


def test_without_a_running_plugin_nothing_is_reported() -> None:
    calls = BlockingCalls(limit_seconds=5)
    assert [calls.sample(stack(), seconds) for seconds in (0, 9)] == [None, None]
    assert calls.sample(None, 99) is None


def test_a_blocking_call_is_news_at_its_limit_and_each_time_its_duration_doubles() -> None:
    calls, news = BlockingCalls(limit_seconds=5), list[int]()

    def inside() -> None:
        for seconds in range(50):
            sample = calls.sample(stack(), seconds)
            if sample is not None and sample.is_news:
                news.append(seconds)

    blocked(inside)
    assert news == [5, 10, 20, 40]


def test_the_thread_ends_with_its_block() -> None:
    before = threading.active_count()
    with PluginWatchdog(lambda _: None):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
