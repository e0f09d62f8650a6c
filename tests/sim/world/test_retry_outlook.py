"""The changes after which a run waits for a retry."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.api.objects import NODE, POD
from bayplan.framework.status import unschedulable
from bayplan.objects.keys import object_key
from bayplan.sim.simulation import Simulation
from bayplan.sim.world.retry_outlook import RetryOutlook
from tests.framework.answering import answering
from tests.kit.manifests import Content, node, pod, pod_group
from tests.sim.runs import create, simulation, workload

WAITS = object_key(POD, "default", "waits")


def without_nodes(*more: Content) -> Simulation:
    """A run without nodes that has ended while its pod is in backoff."""
    # A pod of a missing node exists as long as the quarantine lasts.
    feed = workload(pod("waits"), *more, until_seconds=0.0, pod_gc=PodGcTimes(3600.0))
    run = simulation(feed)
    run.run()
    assert not outlook_of(run).retry_may_succeed(run.scheduler)
    return run


def outlook_of(run: Simulation) -> RetryOutlook:
    return run._retry_outlook


def relabel(cluster: EmbeddedCluster) -> None:
    cluster.update(pod("waits", labels={"new": "label"}))


HELP: list[tuple[str, Callable[[EmbeddedCluster], object]]] = [
    ("a node is created", lambda cluster: cluster.create(node("n1"))),
    ("an object of another kind is created", lambda cluster: cluster.create(pod_group())),
    ("a pod is deleted", lambda cluster: cluster.delete(object_key(POD, "default", "runs"))),
    ("a pod ends", lambda cluster: cluster.end_pod(object_key(POD, "default", "runs"))),
    ("the pod is changed", relabel),
]


@pytest.mark.parametrize("change", [pytest.param(call, id=name) for name, call in HELP])
def test_a_run_waits_for_a_retry_after(change: Callable[[EmbeddedCluster], object]) -> None:
    run = without_nodes(pod("runs", nodeName="n0"))
    change(run.cluster)
    assert outlook_of(run).retry_may_succeed(run.scheduler)


DO_NOT: list[tuple[str, Callable[[EmbeddedCluster], object]]] = [
    ("another pod is created", lambda cluster: cluster.create(pod("new"))),
    ("a pod with a node is created", lambda cluster: cluster.create(pod("new", nodeName="n0"))),
    (
        "a pending pod is deleted",
        lambda cluster: cluster.delete(object_key(POD, "default", "other")),
    ),
]


@pytest.mark.parametrize("change", [pytest.param(call, id=name) for name, call in DO_NOT])
def test_a_run_does_not_wait_for_a_retry_after(change: Callable[[EmbeddedCluster], object]) -> None:
    run = without_nodes(pod("other"))
    change(run.cluster)
    assert not outlook_of(run).retry_may_succeed(run.scheduler)


def refusing_until(seconds: float) -> type[Any]:
    """A Filter plugin that rejects pods until this time, at which it activates the pod."""
    plugins: list[Any] = []

    def refuse(state: Any, pod_info: Any, info: Any) -> Any:
        handle = plugins[0].handle
        if handle.now_seconds >= seconds:
            return None
        handle.activate([pod_info], at_seconds=seconds)
        return unschedulable("not yet")

    def setup(self: Any) -> None:
        plugins.append(self)

    return answering("Later", setup=setup, filter_node=refuse, events_to_register=[])


def test_a_run_waits_for_a_pod_deferred_before_an_event() -> None:
    late = create(50, node("n2"))
    run = simulation(workload(node("n1"), pod("waits"), steps=[late]), refusing_until(100))
    result = run.run()
    assert result.pods["default/waits"].bound_at == 100.0


def test_a_run_does_not_wait_for_a_pod_deferred_after_all_events() -> None:
    steps = [create(0, node("n1")), create(1, pod("waits"))]
    run = simulation(workload(steps=steps), refusing_until(100))
    assert not outlook_of(run).retry_may_succeed(run.scheduler)
    assert run.run().placements == {}


def test_a_pod_that_waits_for_an_event_has_no_retry_that_may_succeed() -> None:
    run = simulation(workload(node("n1"), pod("waits", cpu="64")))
    run.run()
    run.cluster.delete(object_key(NODE, "", "n1"))
    assert not outlook_of(run).retry_may_succeed(run.scheduler)
