"""A plugin that blocks is logged and counted."""

import logging

import pytest

from bayplan.metrics import SchedulerMetrics
from bayplan.serving.blocking import tell_of_blocking
from bayplan.watchdog import BlockingCall


def test_a_blocking_call_is_counted_each_second_and_logged_when_it_is_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = SchedulerMetrics()
    for seconds, is_news in ((5.0, True), (6.0, False)):
        call = BlockingCall("Slow/one", "Filter", "policy.py:12", seconds, is_news)
        tell_of_blocking(metrics, call)
    labels = {"plugin": "Slow/one", "extension_point": "Filter"}
    assert metrics.value("bayplan_plugin_blocking_seconds_total", **labels) == 2
    (line,) = caplog.records
    assert (line.levelno, line.getMessage()) == (logging.ERROR, "A plugin blocks the scheduler")
    assert vars(line)["bayplan_keys"] == {
        "plugin": "Slow/one",
        "extensionPoint": "Filter",
        "at": "policy.py:12",
        "seconds": 5.0,
    }
