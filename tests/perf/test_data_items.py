"""Results have upstream's format and contain only measurements."""

import msgspec

from bayplan.clock import ManualClock
from bayplan.perf.data_items import data_items, measurement
from bayplan.perf.pod_watch import BindingLog


def log(*times: float) -> BindingLog:
    made = BindingLog(ManualClock(), ["a"], {})
    made.times += times
    made.nodes |= {"n1", "n2"}
    return made


def test_a_short_run_has_no_samples() -> None:
    one = measurement("Case/w/a", log(0.5, 1.0, 1.5), 2.0)
    assert (one.pods, one.nodes, one.seconds, one.pods_per_second) == (3, 2, 2.0, 3.0)
    assert one.sampled == {}
    metrics = [item.labels["Metric"] for item in data_items([(one, 0.0)]).data_items]
    assert metrics == ["BindingThroughput", "SchedulingDuration"]


def test_the_file_has_upstreams_format() -> None:
    one = measurement("Case/w/a", log(*(n / 10 for n in range(1, 41))), 4.0)
    written = msgspec.json.decode(msgspec.json.encode(data_items([(one, 680.0)])))
    assert written["version"] == "v1"
    assert written["dataItems"][0] == {
        "data": {
            "Average": 10.0,
            "Perc50": 10.0,
            "Perc90": 10.0,
            "Perc95": 10.0,
            "Perc99": 10.0,
            "AverageThreshold": 680.0,
        },
        "unit": "pods/s",
        "labels": {"Name": "Case/w/a", "Metric": "SchedulingThroughput"},
    }
    assert written["dataItems"][-1]["data"] == {"Duration": 4.0}


def test_without_pods_only_the_duration_is_reported() -> None:
    items = data_items([(measurement("Case/w/a", log(), 1.0), 0.0)]).data_items
    assert [item.unit for item in items] == ["s"]
