"""The utilization of used nodes, and the resources that waiting pods hold."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.comparison.experiment import ConfigurationSpec, InputSpec
from bayplan.comparison.job import RunResult, perform
from bayplan.comparison.metrics.catalogue import DomainsInUse
from bayplan.comparison.metrics.utilization import Utilization
from bayplan.comparison.planning import plan
from bayplan.state.pods import PodInfo, pod_info
from tests.comparison.kit import node_with_cpu, pod_with_cpu, spec
from tests.examples.policies import EXAMPLES

# ---- utilization ----------------------------------------------------------------------------


#: The metric does not read the result.
RESULT: Any = None


def results(folder: Path) -> list[RunResult]:
    """A packed and a spread run: three nodes of 4 cores, four pods of 1 core."""
    jobs = plan(spec(folder, metrics=("utilization",)), "test").jobs
    return [perform(job).result for job in jobs]


def test_empty_nodes_do_not_count(tmp_path: Path) -> None:
    packed, spread = results(tmp_path)
    assert packed.metrics == {"utilized_cpu_percent": pytest.approx(100)}
    assert spread.metrics == {"utilized_cpu_percent": pytest.approx(100 * 4 / 12)}


def test_the_utilization_curve_is_over_the_arrived_demand(tmp_path: Path) -> None:
    packed, spread = results(tmp_path)
    name = "cpu utilized % over cpu arrived %"
    arrived = [100 * n / 12 for n in (1, 2, 3)]
    assert [x for x, _ in packed.curves[name]] == pytest.approx(arrived)
    assert [y for _, y in packed.curves[name]] == pytest.approx([25, 50, 75])
    assert [y for _, y in spread.curves[name]] == pytest.approx([25, 25, 25])


def placed(name: str, node_name: str, phase: str = "Running") -> PodInfo:
    content = pod_with_cpu(name)
    content["metadata"]["uid"] = name
    content["spec"]["nodeName"] = node_name
    content["status"] = {"phase": phase}
    pod = decode(POD, content)
    assert isinstance(pod, Pod)
    return pod_info(pod)


def decoded(content: dict[str, Any]) -> Node:
    node = decode(NODE, content)
    assert isinstance(node, Node)
    return node


def test_a_node_whose_last_pod_ended_is_unused() -> None:
    metric = Utilization()
    metric.node(None, decoded(node_with_cpu("a", cpu=4)))
    metric.node(None, decoded(node_with_cpu("b", cpu=2)))
    for name, node_name in (("p", "a"), ("q", "b")):
        metric.pod(None, placed(name, node_name))
    assert metric.values(RESULT) == {"utilized_cpu_percent": pytest.approx(100 * 2 / 6)}
    metric.pod(placed("p", "a"), placed("p", "a", phase="Succeeded"))
    assert metric.values(RESULT) == {"utilized_cpu_percent": pytest.approx(50)}
    metric.pod(placed("q", "b"), None)
    assert metric.values(RESULT) == {}


def test_a_used_node_that_grows_has_more_capacity() -> None:
    metric = Utilization()
    small = decoded(node_with_cpu("a", cpu=2))
    metric.node(None, small)
    metric.pod(None, placed("p", "a"))
    metric.node(small, decoded(node_with_cpu("a", cpu=4)))
    assert metric.values(RESULT) == {"utilized_cpu_percent": pytest.approx(25)}


def owned(pod: PodInfo, kind: str) -> PodInfo:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": True}
    content = msgspec.to_builtins(pod.pod)
    content["metadata"]["ownerReferences"] = [owner]
    decoded_pod = decode(POD, content)
    assert isinstance(decoded_pod, Pod)
    return pod_info(decoded_pod)


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_that_start_on_their_node_do_not_make_the_node_used(kind: str) -> None:
    metric, nodes = Utilization(), DomainsInUse()
    for one in (metric, nodes):
        for name in ("a", "b"):
            one.node(None, decoded(node_with_cpu(name, cpu=4)))
            one.pod(None, owned(placed(f"d{name}", name), kind))
        one.pod(None, owned(placed("p", "a"), "ReplicaSet"))
    assert metric.values(RESULT) == {"utilized_cpu_percent": 25.0}
    assert nodes.values(RESULT)["nodes_used"] == 1.0


# ---- held resources -------------------------------------------------------------------------


GANGS = EXAMPLES / "gangs"


def metrics(folder: Path, config: str) -> dict[str, float]:
    experiment = msgspec.structs.replace(
        spec(folder, metrics=("held",)),
        inputs=(InputSpec(paths=(str(GANGS / "cluster.yaml"), str(GANGS / "jobs.yaml"))),),
        configurations=(ConfigurationSpec(name="one", file=str(GANGS / config)),),
    )
    [job] = plan(experiment, "test").jobs
    return perform(job).result.metrics


def test_a_group_placed_in_one_pass_holds_nothing_while_waiting(tmp_path: Path) -> None:
    assert metrics(tmp_path, "one_pass.yaml") == {
        "held_cpu_hours": 0,
        "held_nvidia.com/gpu_hours": 0,
    }


def test_members_placed_one_by_one_hold_their_resources(tmp_path: Path) -> None:
    """Each member holds four GPUs and four CPUs for at least one minute."""
    result = metrics(tmp_path, "pod_by_pod.yaml")
    gpu_hours = result["held_nvidia.com/gpu_hours"]
    assert gpu_hours >= 4 / 60
    assert result["held_cpu_hours"] == pytest.approx(4 * gpu_hours)
