"""Pods that are lost in a simulation without controllers, or that no controller replaces."""

from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import Content, node, pod, priority_class
from tests.sim.manifests import controller, owned, template
from tests.sim.manifests import scenario as any_scenario
from tests.sim.runs import load_objects, run_by_default


def scenario(*events: Content) -> Content:
    """A scenario in which no controller replaces a pod."""
    return any_scenario(*events, expansion="once")


N1 = {"kind": "Node", "name": "n1"}
WEB = controller("Deployment", replicas=4, selector={"matchLabels": {"app": "web"}})


def lost(result: SimulationResult) -> dict[str, dict[str, int]]:
    causes_by_workload = {one.workload: one.causes for one in result.lost}
    counted = sum(
        sum(causes.values()) for workload, causes in causes_by_workload.items() if workload
    )
    assert result.counts.not_recreated == counted
    return causes_by_workload


def lines(result: SimulationResult) -> list[str]:
    return [part.plain for part in result.parts() if isinstance(part, Text)]


def at(seconds: float, **verbs: Any) -> Content:
    return {"at": seconds, **verbs}


def delete_pod(name: str) -> Content:
    return {"kind": "Pod", "name": name}


def urgent(name: str) -> Content:
    return pod(name, priorityClassName="high", cpu="4")


def test_preempted_pods_of_a_deployment_are_named_in_the_summary(tmp_path: Path) -> None:
    come = scenario(at(5, create=[urgent("urgent")]))
    result = run_by_default(
        load_objects(tmp_path, node("n1"), WEB, priority_class("high", 100), come)
    )
    assert lost(result) == {"Deployment default/web": {"preempted": 4}}
    message = lines(result)
    assert message[:2] == ["1 of 1 pod placed on 1 node", "4 pods gone: 4 preempted"]
    assert message[2:4] == [
        "4 pods not made again, as a cluster's controllers would: 4 preempted",
        "  of Deployment default/web 4",
    ]


def test_pods_lost_with_a_node_are_counted_by_workload(tmp_path: Path) -> None:
    web = controller("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})
    sts = controller("StatefulSet", name="db", replicas=1)
    deletion = scenario(at(5, delete=[N1]))
    result = run_by_default(load_objects(tmp_path, node("n1"), web, sts, pod("bare"), deletion))
    with_node = "lost with a node"
    assert lost(result) == {
        "": {with_node: 1},
        "Deployment default/web": {with_node: 2},
        "StatefulSet default/db": {with_node: 1},
    }
    assert "1 pod without a controller is gone: 1 lost with a node" in lines(result)


def test_a_pod_of_a_controller_outside_of_the_input_counts(tmp_path: Path) -> None:
    reference = controller("ReplicaSet", name="web-1", uid="r")
    mine = owned(pod("a", nodeName="n1"), reference, controller=True)
    result = run_by_default(
        load_objects(tmp_path, node("n1"), mine, scenario(at(5, delete=[delete_pod("a")])))
    )
    assert lost(result) == {"ReplicaSet default/web-1": {"deleted": 1}}


def test_pods_deleted_with_their_controller_do_not_count(tmp_path: Path) -> None:
    deletion = scenario(at(5, delete=[{"kind": "Deployment", "name": "web"}]))
    assert lost(run_by_default(load_objects(tmp_path, node("n1"), WEB, deletion))) == {}


def test_surplus_pods_of_a_scaled_down_deployment_do_not_count(tmp_path: Path) -> None:
    mine = controller("ReplicaSet", name="r", replicas=2, uid="r")
    pods = [owned(pod(name), mine, controller=True) for name in ("a", "b")]
    fewer = {**{key: mine[key] for key in ("apiVersion", "kind")}, "metadata": {"name": "r"}}
    change = at(5, patch=[{**fewer, "spec": {"replicas": 1}}], delete=[delete_pod("a")])
    assert (
        lost(run_by_default(load_objects(tmp_path, node("n1"), mine, *pods, scenario(change))))
        == {}
    )


def test_the_next_pod_of_a_job_is_neither_a_loss_nor_a_replacement(tmp_path: Path) -> None:
    short = template(annotations={"bayplan.dev/duration": "10s"})
    job = controller("Job", name="j", parallelism=2, completions=4, template=short)
    result = run_by_default(load_objects(tmp_path, node("n1"), job))
    assert (result.counts.pods, lost(result)) == (4, {})

    first = sorted(name for name, one in result.pods.items() if one.created_at == 0.0)[0]
    deletion = scenario(at(5, delete=[delete_pod(first.partition("/")[2])]))
    result = run_by_default(load_objects(tmp_path, node("n1"), job, deletion))
    assert lost(result) == {"Job default/j": {"deleted": 1}}


def test_a_pod_deleted_after_its_duration_is_not_lost(tmp_path: Path) -> None:
    ends = {"bayplan.dev/duration": "10s", "bayplan.dev/when-done": "delete"}
    result = run_by_default(load_objects(tmp_path, node("n1"), pod("a", annotations=ends)))
    assert (result.pods["default/a"].deleted_at, lost(result)) == (10.0, {})


@pytest.mark.parametrize("comes_again", [True, False])
def test_a_daemon_pod_deleted_with_its_node_is_not_lost(tmp_path: Path, comes_again: bool) -> None:
    daemons = controller("DaemonSet", name="d", selector={"matchLabels": {"app": "web"}})
    events = [at(5, delete=[N1]), at(9, create=[node("n1")])][: 1 + comes_again]
    result = run_by_default(load_objects(tmp_path, node("n1"), daemons, scenario(*events)))
    assert lost(result) == {}


def test_a_daemon_pod_preempted_on_a_remaining_node_counts(tmp_path: Path) -> None:
    daemons = controller("DaemonSet", name="d", selector={"matchLabels": {"app": "web"}})
    come = scenario(at(5, create=[urgent("urgent")]))
    result = run_by_default(
        load_objects(tmp_path, node("n1"), daemons, priority_class("high", 100), come)
    )
    assert lost(result) == {"DaemonSet default/d": {"preempted": 1}}


def test_a_pod_that_the_scenario_creates_again_is_not_lost(tmp_path: Path) -> None:
    mine = controller("ReplicaSet", name="r", uid="r", replicas=1)
    again = owned(pod("b"), mine, controller=True)
    events = at(5, delete=[delete_pod("a")]), at(6, create=[again])
    there = owned(pod("a"), mine, controller=True)
    assert (
        lost(run_by_default(load_objects(tmp_path, node("n1"), mine, there, scenario(*events))))
        == {}
    )


def test_a_bare_pod_created_again_is_not_lost(tmp_path: Path) -> None:
    events = at(5, delete=[delete_pod("a")]), at(6, create=[pod("a")])
    assert (
        lost(run_by_default(load_objects(tmp_path, node("n1"), pod("a"), scenario(*events)))) == {}
    )


def test_a_pod_that_is_being_deleted_at_the_start_is_not_lost(tmp_path: Path) -> None:
    going = pod("a", nodeName="n1", deletionTimestamp="2026-01-01T00:00:30Z")
    mine = owned(going, controller("ReplicaSet", name="r", uid="r"), controller=True)
    assert lost(run_by_default(load_objects(tmp_path, node("n1"), mine))) == {}
