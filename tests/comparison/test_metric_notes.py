"""What a metric means."""

import pytest

from bayplan.comparison.metric_notes import metric_note


@pytest.mark.parametrize(
    ("metric", "unit", "better"),
    [
        ("placed", "pods", "higher"),
        ("unschedulable: Insufficient cpu", "pods", "lower"),
        ("fragmented_nvidia.com/gpu_percent", "%", "lower"),
        ("gang_waiting_seconds_p95", "s", "lower"),
        ("domains_used: zone", "values", ""),
        ("somebody_elses", "", ""),
    ],
)
def test_a_metric_has_a_unit_and_a_better_direction(metric: str, unit: str, better: str) -> None:
    note = metric_note(metric)
    assert (note.unit, note.better) == (unit, better)
