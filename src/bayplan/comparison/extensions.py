"""Metrics of comparisons and preparations of inputs from installed packages.

A preparation is a function. It gets the pods to place and returns further objects of the cluster as
plain manifests: objects that a policy needs and that follow from the workload.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from bayplan.comparison.metrics.run_metric import RunMetric
from bayplan.sim.input.errors import InputError
from bayplan.state.pods import PodInfo

METRICS_GROUP = "bayplan.metrics"
PREPARATIONS_GROUP = "bayplan.preparations"

Preparation = Callable[[Sequence[PodInfo]], Iterable[Mapping[str, Any]]]


def installed_metrics() -> dict[str, type[RunMetric]]:
    """The metrics of installed packages, by name. Raises InputError."""
    metrics: dict[str, type[RunMetric]] = {}
    for origin, metric in _loaded(METRICS_GROUP):
        if not (isinstance(metric, type) and issubclass(metric, RunMetric)):
            raise InputError([f"{origin}: not a metric; wanted a subclass of RunMetric"])
        name = getattr(metric, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError([f'{origin}: wanted a name, as in name = "nodes_used"'])
        metrics[name] = metric
    return metrics


def installed_preparations() -> dict[str, Preparation]:
    """By the names of their entry points. Raises InputError."""
    points = entry_points(group=PREPARATIONS_GROUP)
    names = [point.name for point in sorted(points, key=lambda p: (p.name, p.value))]
    loaded = [function for _, function in _loaded(PREPARATIONS_GROUP)]
    return dict(zip(names, loaded, strict=True))


def _loaded(group: str) -> Iterable[tuple[str, Any]]:
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        origin = f"entry point {point.name} = {point.value}"
        try:
            yield origin, point.load()
        except Exception as error:  # whatever a package does when imported
            text = f"{type(error).__name__}: {error}"
            raise InputError([f"{origin}: {text}"]) from error
