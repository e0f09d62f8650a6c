"""The table has a row for each measurement, and empty cells for missing values."""

import re

from bayplan.perf.data_items import Measurement
from bayplan.perf.planning import RefusedWorkload
from bayplan.perf.report import below_threshold, listing, summary
from bayplan.perf.running import WorkloadOutcome
from tests.sim.printing import printed

SAMPLES = (900.0, 1000.0, 1100.0)


def measurement(samples: tuple[float, ...] = ()) -> Measurement:
    return Measurement(
        name="Case/w/ns",
        pods=1500,
        nodes=7,
        seconds=1.5,
        pods_per_second=1234.5,
        samples=samples,
    )


def outcome(*measured: Measurement, threshold: float = 0.0) -> WorkloadOutcome:
    return WorkloadOutcome(
        name="Case/w", nodes=5000, pods=2000, measured=measured, threshold=threshold
    )


def rows(*outcomes: WorkloadOutcome) -> list[list[str]]:
    lines = printed(summary(outcomes)).splitlines()
    return [line.split() for line in lines if line.startswith("Case")]


def test_a_measurement_is_a_row() -> None:
    row = ["Case/w/ns", "5,000", "1,500", "7", "1.500", "1,234"]
    assert rows(outcome(measurement())) == [row]
    sampled = ["1,000", "1,000", "1,100", "1,100"]
    assert rows(outcome(measurement(SAMPLES))) == [[*row, *sampled]]


def test_a_workload_without_a_measurement_has_a_row() -> None:
    assert rows(outcome()) == [["Case/w", "5,000"]]


def test_the_list_gives_the_reason_why_a_workload_cannot_run() -> None:
    table = listing([RefusedWorkload("Case/w", ("no b", "no a"))], {"Case/w": ("short", "slow")})
    (line,) = [one for one in printed([table]).splitlines() if one.startswith("Case")]
    assert re.split(" {3,}", line) == ["Case/w", "short, slow", "no b; no a"]


def test_the_average_is_compared_with_the_threshold() -> None:
    (message,) = below_threshold(outcome(measurement(SAMPLES), threshold=1000))
    assert message == "Case/w/ns: 1,000 pods/s, the file's threshold is 1000"
    assert not list(below_threshold(outcome(measurement(SAMPLES), threshold=999)))
    assert not list(below_threshold(outcome(measurement(), threshold=9999)))
