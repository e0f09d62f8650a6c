"""A controller that holds its pods back is named: nobody has to wonder where its pods are."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.input.inputs import load_inputs
from tests.cli.command_line import answer, bayplan, write_objects
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, owned

STAMP = "2026-01-01T00:00:00Z"


def deleted(kind: str, name: str = "web", **spec: Any) -> Content:
    content = controller(kind, name, uid=f"u-{name}", **spec)
    finalizers = ["foregroundDeletion"]
    content["metadata"] |= {"deletionTimestamp": STAMP, "finalizers": finalizers}
    return content


def notes(*objects: Content) -> list[str]:
    return [each for each in load_inputs([*objects]).notes if "default/" in each]


@pytest.mark.parametrize(
    "kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"]
)
def test_a_controller_that_is_deleted_in_the_foreground_is_named(kind: str) -> None:
    (note,) = notes(deleted(kind))
    why = "is being deleted and makes no more pods: a finalizer keeps it (foregroundDeletion)"
    assert note == f"{kind} default/web {why}"


def test_a_controller_that_waits_for_somebody_is_named_with_what_it_waits_for() -> None:
    queued = controller("Job", "b", suspend=True)
    queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    until = "is suspended (spec.suspend): it has no pods until"
    paused = "is paused (spec.paused): it makes no new ReplicaSet until it is resumed"
    assert notes(
        *(controller("Job", f"a{number}", suspend=True) for number in range(3)),
        queued,
        controller("Job", "c", managedBy="example.com/c"),
        controller("Deployment", "d", paused=True),
    ) == [
        f"Job default/a0 (and 2 more) {until} it is resumed",
        f"Job default/b {until} Kueue admits it from queue q",
        "Job default/c is left to example.com/c (spec.managedBy): no pods are made for it here",
        f"Deployment default/d {paused}",
    ]


def test_a_controller_that_needs_no_pods_is_not_named() -> None:
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    paused = controller("Deployment", "b", uid="u-b", paused=True)
    assert not notes(
        node("n1"),
        controller("ReplicaSet", "a", replicas=0),
        paused,
        owned(controller("ReplicaSet", "b-1", replicas=0), paused, controller=True),
        controller("Job", "c", suspend=True, status=complete),
    )


def test_a_run_says_it_and_an_answer_about_the_workload_says_it_once(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), pod("p"))
    job = write_objects(tmp_path / "job.yaml", controller("Job", "j", suspend=True))
    reason = "is suspended (spec.suspend): it has no pods until it is resumed"
    assert f"Job default/j {reason}" in answer("simulate", cluster, job)
    result = bayplan("fit", "-f", job, cluster)
    assert (result.exit_code, result.output.count(reason)) == (4, 1)
