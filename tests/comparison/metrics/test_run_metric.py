"""User-defined metrics."""

import re
from typing import Any, cast

from bayplan.comparison.metrics import run_metric
from bayplan.comparison.metrics.run_metric import RunMetric
from bayplan.sim.output.result import SimulationResult
from bayplan.testing import pod


def documented() -> RunMetric:
    """The class that the file's documentation shows."""
    lines = (run_metric.__doc__ or "").splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\s*class ", line))
    names: dict[str, Any] = {"RunMetric": RunMetric}
    exec("\n".join(line.removeprefix("    ") for line in lines[start:]), names)
    return cast(RunMetric, names["NodesUsed"]())


def test_the_documented_metric_works() -> None:
    metric = documented()
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        waiting = pod(name)
        metric.pod(None, waiting)
        metric.pod(waiting, waiting.on_node(node))
    assert metric.values(cast(SimulationResult, None)) == {"nodes_used": 2}


def test_a_metric_need_not_implement_every_method() -> None:
    metric = documented()
    metric.node(None, None)
    assert metric.curves() == {}
