"""How long pods say that they run."""

import pytest

from bayplan.clock import ManualClock, rfc3339
from bayplan.engine.run_times import end_seconds, run_seconds
from bayplan.testing import pod

DURATION = "bayplan.dev/duration"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("30s", 30),
        ("1m30s", 90),
        ("250ms", 0.25),
        ("1.5h", 5400),
        (".5h", 1800),
    ],
)
def test_durations_are_read_as_scenarios_write_them(text: str, seconds: float) -> None:
    assert run_seconds(pod(annotations={DURATION: text})) == seconds


@pytest.mark.parametrize("text", ["", "-5", "soon", "5 s", "1e9", "s", "infinity"])
def test_what_is_no_duration_is_not_known(text: str) -> None:
    assert run_seconds(pod(annotations={DURATION: text})) is None
    assert end_seconds(pod(annotations={DURATION: text}), ManualClock()) is None


def test_the_end_counts_from_the_start_and_is_never_past() -> None:
    clock = ManualClock()
    clock.advance_to(100)
    started = rfc3339(clock.epoch_seconds() - 40)
    running = pod(annotations={DURATION: "60"}, status={"startTime": started})
    assert end_seconds(running, clock) == 120
    clock.advance_to(500)
    assert end_seconds(running, clock) == 500
    assert end_seconds(pod(annotations={DURATION: "60"}), clock) == 560
