"""Controllers whose pods the API server refuses."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode
from tests.kit.manifests import Content, node, priority_class
from tests.sim.manifests import controller, scenario, template
from tests.sim.runs import run_by_default, simulation


def refused(kind: str, **spec: Any) -> Content:
    """A controller whose pods name a class that is not there."""
    return controller(kind, template=template(priorityClassName="late"), **spec)


REFUSED = [
    (refused("ReplicaSet", replicas=3), 3, 81.915),
    (refused("Deployment", replicas=3), 3, 81.915),
    (refused("ReplicationController", replicas=3), 3, 81.915),
    (refused("StatefulSet", replicas=3), 3, 81.915),
    (refused("DaemonSet"), 1, 81.915),
    (refused("Job", completions=3, parallelism=3), 3, 63.0),
]


@pytest.mark.parametrize(
    ("subject", "count", "at_seconds"), REFUSED, ids=[one["kind"] for one, _, _ in REFUSED]
)
def test_a_controller_that_is_refused_tries_again_with_upstreams_delays(
    subject: Content, count: int, at_seconds: float
) -> None:
    late = scenario({"at": 50, "create": [priority_class("late", 5)]})
    result = run_by_default(load_inputs([node("n1"), subject, late]))
    created = [one.created_at for one in result.pods.values()]
    assert created == pytest.approx([at_seconds] * count)
    assert not any("forbidden" in note for note in result.notes)


@pytest.mark.parametrize(
    ("subject", "count"), [one[:2] for one in REFUSED], ids=[one["kind"] for one, _, _ in REFUSED]
)
def test_a_run_ends_although_a_controller_is_always_refused(subject: Content, count: int) -> None:
    never = scenario({"at": 5000, "create": [priority_class("late", 5)]})
    workload = load_inputs([node("n1"), subject, never])
    for until in (None, 4000.0):
        result = run_by_default(replace(workload, steps=(), until_seconds=until))
        assert not result.pods
        assert result.simulated_seconds == (until or 0)
        pods = "1 pod" if count == 1 else f"{count} pods"
        why = r'pods "web-.*" is forbidden: no PriorityClass with name late was found'
        assert re.search(rf"lacks {pods}: {why}$", result.notes[-1])


def test_without_controllers_the_refused_pods_are_counted() -> None:
    late = scenario({"at": 50, "create": [priority_class("late", 5)]})
    subject = refused("ReplicaSet", replicas=3)
    objects = [node("n1"), subject, late]
    result = run_by_default(load_inputs(objects, expansion=ExpansionMode.ONCE))
    assert "forbidden" in result.notes[-2]
    assert result.notes[-1] == "of the pods of ReplicaSet default/web, 2 more were refused, too"


EVENTS = [
    (refused("ReplicaSet", replicas=1), "replicaset-controller", r"Error creating: pods"),
    (
        refused("ReplicationController", replicas=1),
        "replication-controller",
        "Error creating: pods",
    ),
    (
        refused("StatefulSet", replicas=1),
        "statefulset-controller",
        "create Pod web-0 in StatefulSet web failed error: pods",
    ),
]


@pytest.mark.parametrize(
    ("subject", "reporter", "start"), EVENTS, ids=[one["kind"] for one, _, _ in EVENTS]
)
def test_a_refusal_is_an_event_of_the_controller(
    subject: Content, reporter: str, start: str
) -> None:
    late = scenario({"at": 50, "create": [priority_class("late", 5)]})
    workload = load_inputs([node("n1"), subject, late]).for_scheduler("default-scheduler")
    run = simulation(replace(workload, steps=()))
    run.run()
    [event] = [one.content for one in run.cluster.objects(EVENT)]
    assert (event["type"], event["reason"]) == ("Warning", "FailedCreate")
    assert event["reportingController"] == reporter
    assert event["regarding"]["name"] == "web"
    assert event["note"].startswith(start)
    assert event["note"].endswith("is forbidden: no PriorityClass with name late was found")
