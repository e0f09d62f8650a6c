"""Metrics as each version of kube-scheduler exposes them.

``kube_scheduler_metrics.txt`` has, for each metric and version: level, labels and buckets
(Prometheus' ExponentialBuckets), from pkg/scheduler/metrics of that version. The levels were
compared with what the binaries expose.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client import Metric

from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import (
    NEWEST,
    KubernetesVersion,
    version_of_release,
)
from bayplan.config.metric_table import MetricStandard, metric_standard
from bayplan.metrics import SchedulerMetrics
from bayplan.serving.shown_metrics import ShownMetrics
from tests.engine.kit import Engine

RECORDED = Path(__file__).with_name("kube_scheduler_metrics.txt")

#: The metrics of kube-scheduler that Bayplan lacks; see docs/operations.md.
LACKING = (
    "scheduler_async_api_call_",
    "scheduler_batch_rescore_",
    "scheduler_dra_bindingconditions_",
    "scheduler_pending_async_api_calls",
    "scheduler_pre_queueing_hint_evaluations",
    "scheduler_resourceclaim_creates",
    "scheduler_store_schedule_results",
)


class Row(NamedTuple):
    level: str
    deprecated_since: str
    labels: frozenset[str]
    bounds: tuple[float, ...]


def _bounds(text: str) -> tuple[float, ...]:
    if text == "-":
        return ()
    if text == "default":
        return (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
    start, factor, count = map(float, text.split(","))
    return tuple(start * factor**power for power in range(int(count)))


def _row(cell: str) -> Row:
    level, labels, bounds = cell.split(";")
    level, _, since = level.partition(",")
    names = frozenset(labels.split("+")) - {"-"}
    return Row(level, since, names, _bounds(bounds))


def recorded() -> dict[str, dict[str, Row]]:
    """Release → metric → its row."""
    head, *lines = (line.split() for line in RECORDED.read_text(encoding="utf-8").splitlines())
    return {
        release: {line[0]: _row(line[index]) for line in lines if line[index] != "-"}
        for index, release in enumerate(head)
        if index
    }


RECORDS = recorded()


def standard_of(version: KubernetesVersion) -> MetricStandard:
    return metric_standard(default_gates(version))


def shown(version: KubernetesVersion, metrics: SchedulerMetrics | None = None) -> list[Metric]:
    made = metrics or Engine(kubernetes=version).scheduler.metrics
    return list(ShownMetrics(made.registry, standard_of(version)).collect())


def collector_of(metrics: SchedulerMetrics, name: str) -> Any:
    every = (*vars(metrics).values(), *metrics._readings)
    return next(each for each in every if getattr(each, "_name", "") == name)


@pytest.mark.parametrize("release", RECORDS)
def test_a_version_shows_its_metrics_with_its_levels_labels_and_buckets(release: str) -> None:
    version = version_of_release(release)
    assert version is not None
    metrics = Engine(kubernetes=version).scheduler.metrics
    families = [each for each in shown(version, metrics) if each.name.startswith("scheduler_")]
    rows = RECORDS[release]
    names = set[str]()
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        names.add(name)
        row, collector = rows[name], collector_of(metrics, family.name)
        since = f" (Deprecated since {row.deprecated_since})" * bool(row.deprecated_since)
        assert family.documentation.startswith(f"[{row.level}]{since} "), name
        assert frozenset(collector._labels) == row.labels, name
        bounds = getattr(collector, "_bounds", ())
        assert tuple(bounds) == pytest.approx(row.bounds), name
    assert {each for each in rows if not each.startswith(LACKING)} == names


def test_metrics_of_bayplan_and_of_the_process_have_no_level() -> None:
    metrics = SchedulerMetrics()
    metrics.show_counter("process_shown", "Shown.", (), list)
    metrics.show_counter("rest_client_shown", "Shown.", (), list)
    texts = {each.name: each.documentation for each in shown(NEWEST, metrics)}
    assert texts["process_shown"] == "Shown."
    assert texts["rest_client_shown"] == "[ALPHA] Shown."
    assert not texts["bayplan_bugs"].startswith("[")


@pytest.mark.parametrize(
    ("version", "level"), [(KubernetesVersion.V1_35, "ALPHA"), (KubernetesVersion.V1_36, "BETA")]
)
def test_levels_of_work_queues_and_of_the_build_are_the_versions(
    version: KubernetesVersion, level: str
) -> None:
    standard = standard_of(version)
    for name in ("workqueue_depth", "kubernetes_build_info"):
        assert standard.help_text(name, "Text.") == f"[{level}] Text."


def samples(version: KubernetesVersion) -> dict[str, set[tuple[str, float]]]:
    """Metric → (value of its first label, value)."""
    metrics = SchedulerMetrics()
    metrics.pending_pods.show("active", lambda: 1.0)
    metrics.pending_pods.show("pending", lambda: 2.0)
    metrics.event_handling_duration.observe(1.0, "UnscheduledPodAdd")
    metrics.event_handling_duration.observe(1.0, "UnschedulablePodAdd")
    metrics.extension_point_duration.observe(1.0, "Sign", "Success", "p")
    metrics.extension_point_duration.observe(1.0, "Filter", "Success", "p")
    return {
        family.name: {
            (next(iter(sample.labels.values()), ""), sample.value)
            for sample in family.samples
            if not sample.name.endswith(("_bucket", "_sum"))
        }
        for family in shown(version, metrics)
        if family.samples
    }


def test_labels_have_the_values_of_the_version() -> None:
    old, new = samples(KubernetesVersion.V1_34), samples(NEWEST)
    assert old["scheduler_pending_pods"] == {("active", 1)}
    assert new["scheduler_pending_pods"] == {("active", 1), ("pending", 2)}
    points = "scheduler_framework_extension_point_duration_seconds"
    assert (old[points], new[points]) == ({("Filter", 1)}, {("Filter", 1), ("Sign", 1)})
    events = "scheduler_event_handling_duration_seconds"
    assert old[events] == {("UnschedulablePodAdd", 2)}
    assert new[events] == {("UnschedulablePodAdd", 1), ("UnscheduledPodAdd", 1)}
