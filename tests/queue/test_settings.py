"""Defaults of the queue."""

from bayplan.queue.settings import QueueSettings
from tests.queue.factories import by_priority


def test_the_defaults_are_upstreams() -> None:
    settings = QueueSettings(sort_key=by_priority)
    assert settings.initial_backoff_seconds == 1
    assert settings.max_backoff_seconds == 10
    assert settings.pop_from_backoff_q
    assert settings.unschedulable_max_seconds == 5 * 60
    assert settings.flush_period_seconds == 30
