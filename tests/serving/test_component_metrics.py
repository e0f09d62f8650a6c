"""Metrics of the component and of its connection to the cluster."""

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from bayplan.adapters.live import event_writer
from bayplan.adapters.live.cluster import LiveCluster, open_cluster
from bayplan.ports import ApiError, EmitEvent, ObjectReference
from bayplan.serving.component_metrics import register_build_info, register_cluster
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import refuse


def test_the_build_info_metric_is_one() -> None:
    registry = CollectorRegistry()
    register_build_info(registry)
    (family,) = registry.collect()
    (sample,) = family.samples
    assert (family.name, sample.value) == ("kubernetes_build_info", 1)
    assert sample.labels["git_version"].startswith("v")
    assert sample.labels["compiler"].startswith("CPython 3.")
    assert (sample.labels["go_version"], "/" in sample.labels["platform"]) == ("", True)


def event(name: str) -> EmitEvent:
    pod = ObjectReference("v1 Pod", "ns", name, f"uid-{name}", "7")
    return EmitEvent(pod, "Warning", "FailedScheduling", "Scheduling", "no room", "bayplan", None)


def samples_of(cluster: LiveCluster) -> dict[str, Any]:
    registry = CollectorRegistry()
    register_cluster(registry, cluster)
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_dropped_events_are_counted() -> None:
    async def main() -> dict[str, Any]:
        async with talking_to(refuse) as client, open_cluster(client) as cluster:
            await cluster.create_event(event("a"))
            await cluster.create_event(event("b"))
            await cluster.flush_events()
            return samples_of(cluster)

    result = asyncio.run(main())
    assert result["bayplan_events_dropped_total[]"] == 2
    assert result["workqueue_adds_total['events']"] == 2
    assert result["workqueue_depth['events']"] == 0


def test_events_beyond_the_queue_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "WAITING_MAX", 3)

    async def main() -> dict[str, Any]:
        async with talking_to(refuse) as client, open_cluster(client) as cluster:
            for number in range(5):
                await cluster.create_event(event(f"p{number}"))
            return samples_of(cluster)

    result = asyncio.run(main())
    assert result["bayplan_events_dropped_total[]"] == 2
    assert result["workqueue_depth['events']"] == 3


def test_failing_requests_have_a_metric_while_they_fail() -> None:
    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with talking_to(refuse) as client, open_cluster(client) as cluster:
            cluster._failures.begin("list v1 Node", ApiError(403, "Forbidden", "no"))
            before = samples_of(cluster)
            cluster._failures.end("list v1 Node")
            return before, samples_of(cluster)

    before, after = asyncio.run(main())
    assert before["bayplan_cluster_problem['list v1 Node']"] == 1
    assert not [name for name in after if name.startswith("bayplan_cluster_problem")]
