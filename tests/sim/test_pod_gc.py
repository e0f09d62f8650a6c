"""The pods of a node that is deleted in a simulation."""

from pathlib import Path
from typing import Any

from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import node, pod
from tests.sim.manifests import controller, owned, scenario
from tests.sim.runs import delete, load_objects, run_by_default, simulation, workload

N1 = {"kind": "Node", "name": "n1"}


def deletion_times(result: SimulationResult) -> dict[str, float | None]:
    return {name: one.deleted_at for name, one in result.pods.items() if one.deleted_at is not None}


def cpu(result: SimulationResult) -> tuple[int, int]:
    """(requested, allocatable) at the end."""
    return next((one.requested, one.allocatable) for one in result.usage if one.resource == "cpu")


def test_the_pods_of_a_deleted_node_are_deleted() -> None:
    steps = [delete(10, node("n1"))]
    nodes_and_pods = [node("n1"), node("n2"), *(pod(f"p{number}") for number in range(8))]
    result = simulation(workload(*nodes_and_pods, steps=steps)).run()
    on_n1 = {name: 10.0 for name, one in result.pods.items() if one.node == "n1"}
    assert len(on_n1) == 4
    assert deletion_times(result) == on_n1
    assert cpu(result) == (4000, 4000)


def test_a_scenario_sets_quarantine_and_period(tmp_path: Path) -> None:
    deletion = {"at": "5s", "delete": [N1]}
    slow: Any = {"quarantine": "40s", "period": "20s"}
    feed = load_objects(
        tmp_path, node("n1"), pod("a", nodeName="n1"), scenario(deletion, podGC=slow)
    )
    assert feed.pod_gc == PodGcTimes(40.0, 20.0)
    assert deletion_times(run_by_default(feed)) == {"default/a": 60.0}


def test_a_node_that_is_created_again_gets_new_daemon_pods(tmp_path: Path) -> None:
    daemons = controller("DaemonSet", name="d", selector={"matchLabels": {"app": "web"}})
    again = scenario({"at": "5s", "delete": [N1]}, {"at": "9s", "create": [node("n1")]})
    result = run_by_default(load_objects(tmp_path, node("n1"), daemons, again))
    old, new = sorted(result.pods.values(), key=lambda one: one.created_at or 0.0)
    assert (old.node, old.deleted_at) == ("n1", 5.0)
    assert (new.node, new.created_at, new.deleted_at) == ("n1", 9.0, None)


def test_a_pending_daemon_pod_is_deleted_with_its_node(tmp_path: Path) -> None:
    daemons = controller("DaemonSet", name="d", selector={"matchLabels": {"app": "web"}})
    full = {**node("n1"), "status": {"allocatable": {"cpu": "0", "memory": "1Gi", "pods": "9"}}}
    result = run_by_default(
        load_objects(tmp_path, full, daemons, scenario({"at": "5s", "delete": [N1]}))
    )
    assert list(deletion_times(result).values()) == [5.0]
    assert result.counts.unschedulable == 0


def test_a_running_pod_on_a_node_outside_of_the_input_is_deleted_at_the_start() -> None:
    reference = controller("ReplicaSet", name="r", uid="r")
    result = simulation(workload(node("n1"), owned(pod("a", nodeName="n9"), reference))).run()
    assert deletion_times(result) == {"default/a": 0.0}
