"""Objects with generated names, and waits that end when no event is pending."""

from pathlib import Path

import pytest

from bayplan.perf.world import IDLE_SECONDS_MAX
from tests.perf.kit import LARGE_POD, SMALL_POD, case, op, run_cases, write_cases

NODE_POD = {"count": 1, "podTemplatePath": "pod.yaml"}


def test_colliding_generated_names_are_generated_again(tmp_path: Path) -> None:
    """Among 6,000 pods some generated names collide: a name has 5 of 27 letters."""
    pods = op("createPods", count=6000, podTemplatePath="pod.yaml", skipWaitToCompletion=True)
    gated = SMALL_POD.replace("spec: {", "spec: {schedulingGates: [{name: g}], ")
    outcome = run_cases(write_cases(tmp_path, case(pods), pod=gated))
    assert (outcome.failure, outcome.pods) == ("", 6000)


def test_a_name_used_twice_ends_the_workload(tmp_path: Path) -> None:
    pods = op("createPods", count=2, podTemplatePath="pod.yaml", namespace="ns")
    text = SMALL_POD.replace("generateName: pod-", "name: only")
    outcome = run_cases(write_cases(tmp_path, case(pods), pod=text))
    message = 'operation 0 (createPods): cannot create: pods "only" already exists'
    assert outcome.failure == message


def test_a_wait_ends_although_a_pod_can_never_be_bound(tmp_path: Path) -> None:
    path = write_cases(
        tmp_path, case(op("createNodes", count=1), op("createPods", **NODE_POD)), pod=LARGE_POD
    )
    failure = run_cases(path).failure
    assert failure.startswith(
        "operation 1 (createPods): a pod is not bound and nothing is left to happen; "
        "for example namespace-1/pod-"
    )
    assert "0/1 nodes are available: 1 Insufficient cpu. preemption: " in failure


def test_a_wait_lasts_while_events_are_pending(tmp_path: Path) -> None:
    churn = op("churn", mode="recreate", number=1, templatePaths=["any.yaml"])
    path = write_cases(
        tmp_path,
        case(
            op("createNodes", count=1), churn, op("createPods", count=2, podTemplatePath="pod.yaml")
        ),
        pod=LARGE_POD,
        any="{apiVersion: v1, kind: Service, metadata: {generateName: s-}}",
    )
    failure = run_cases(path, timeout_seconds=2 * IDLE_SECONDS_MAX).failure
    assert "2 pods are not bound after 60 s" in failure


@pytest.mark.parametrize("namespaces", [["none"], ["namespace-1", "none"]])
def test_a_barrier_needs_existing_namespaces(tmp_path: Path, namespaces: list[str]) -> None:
    path = write_cases(
        tmp_path,
        case(op("createNodes", count=1), op("createPods"), op("barrier", namespaces=namespaces)),
    )
    assert run_cases(path).failure == "operation 2 (barrier): no namespace none was made before"
