"""Gangs, preemptions and arrivals as metrics and settings of a comparison."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.api.objects import POD, Pod, decode
from bayplan.comparison.experiment import ConfigurationSpec, InputSpec
from bayplan.comparison.job import perform
from bayplan.comparison.metrics.scheduling import (
    Arrivals,
    FillingDemand,
    Preemptions,
    arranged,
    requested_by,
)
from bayplan.comparison.planning import plan
from bayplan.journal import AttemptRecord
from bayplan.sim.input.workload import Workload
from bayplan.state.pods import PodInfo, pod_info
from tests.comparison.kit import node_with_cpu, pod_with_cpu, spec
from tests.examples.policies import EXAMPLES

# ---- gangs ----------------------------------------------------------------------------------


GANGS = EXAMPLES / "gangs"


def metrics(folder: Path, config: str) -> dict[str, float]:
    experiment = msgspec.structs.replace(
        spec(folder, metrics=("gangs",)),
        inputs=(InputSpec(paths=(str(GANGS / "cluster.yaml"), str(GANGS / "jobs.yaml"))),),
        configurations=(ConfigurationSpec(name="one", file=str(GANGS / config)),),
    )
    [job] = plan(experiment, "test").jobs
    return perform(job).result.metrics


def test_the_second_of_two_jobs_waits_for_the_end_of_the_first(tmp_path: Path) -> None:
    """The GPUs are free after five minutes, and each job takes ten minutes."""
    assert metrics(tmp_path, "one_pass.yaml") == pytest.approx(
        {
            "gangs_placed": 2,
            "gangs_waiting": 0,
            "gang_waiting_seconds_mean": 600,
            "gang_waiting_seconds_p50": 600,
            "gang_waiting_seconds_p95": 870,
            "gang_waiting_seconds_max": 900,
        }
    )


def test_groups_that_never_ran_are_counted_without_a_duration(tmp_path: Path) -> None:
    result = metrics(tmp_path, "pod_by_pod.yaml")
    assert result == {"gangs_placed": 0, "gangs_waiting": 2}


def test_without_groups_nothing_is_reported(tmp_path: Path) -> None:
    [packed, _] = plan(spec(tmp_path, metrics=("gangs",)), "test").jobs
    assert perform(packed).result.metrics == {}


# ---- preemptions ----------------------------------------------------------------------------


#: The metric does not read the result.
RESULT: Any = None


def attempt(nominated: str) -> AttemptRecord:
    return AttemptRecord(
        at_seconds=0.0,
        pod="default/p",
        uid="p",
        profile="default-scheduler",
        attempt=1,
        result="unschedulable",
        nominated_node=nominated,
    )


def pod_with_condition(name: str, condition: str, reason: str) -> PodInfo:
    content = pod_with_cpu(name)
    content["metadata"]["uid"] = name
    content["status"] = {"conditions": [{"type": condition, "status": "True", "reason": reason}]}
    pod = decode(POD, content)
    assert isinstance(pod, Pod)
    return pod_info(pod)


def test_attempts_that_nominate_are_preemptions() -> None:
    metric = Preemptions()
    for node_name in ("n1", "", "n2"):
        metric.record(attempt(node_name))
    assert metric.values(RESULT) == {"preemptions": 2, "preemption_victims": 0}


def test_each_victim_is_counted_once_and_nothing_else() -> None:
    metric = Preemptions()
    victim = pod_with_condition("v", "DisruptionTarget", "PreemptionByScheduler")
    metric.pod(None, pod_with_condition("v", "PodScheduled", ""))
    metric.pod(victim, victim)
    metric.pod(victim, victim)
    metric.pod(None, pod_with_condition("drained", "DisruptionTarget", "EvictionByEvictionAPI"))
    metric.pod(victim, None)
    assert metric.values(RESULT) == {"preemptions": 0, "preemption_victims": 1}


# ---- arrivals -------------------------------------------------------------------------------


WORKLOAD = Workload(
    initial=(node_with_cpu("n", cpu=10), *(pod_with_cpu(f"p{i}") for i in range(8)))
)


def names(workload: Workload) -> list[str]:
    return [one["metadata"]["name"] for one in workload.initial if one["kind"] == "Pod"]


def until(percent: float, resource: str = "cpu") -> Arrivals:
    return Arrivals(shuffled=True, until_demand=FillingDemand(resource=resource, percent=percent))


def test_without_settings_the_workload_stays_unchanged() -> None:
    assert arranged(WORKLOAD, Arrivals(), 1) is WORKLOAD


def test_a_seed_shuffles_the_pods_and_loses_none() -> None:
    one, other = (arranged(WORKLOAD, Arrivals(shuffled=True), seed) for seed in (1, 2))
    assert names(one) != names(other)
    assert sorted(names(one)) == sorted(names(other)) == names(WORKLOAD)
    assert one.initial[0]["kind"] == "Node"


def test_nodes_are_renumbered_only_on_request() -> None:
    renumbered, unchanged = (
        arranged(WORKLOAD, Arrivals(shuffled=True, nodes_renumbered=flag), 1)
        for flag in (True, False)
    )
    assert [
        renumbered.initial[0]["metadata"]["name"],
        unchanged.initial[0]["metadata"]["name"],
    ] == [
        "0-n",
        "n",
    ]
    assert names(renumbered) == names(unchanged)


def test_the_same_seed_gives_the_same_workload() -> None:
    assert arranged(WORKLOAD, until(200), 3) == arranged(WORKLOAD, until(200), 3)


def test_pods_are_drawn_until_the_demand_is_reached() -> None:
    workload = arranged(WORKLOAD, until(130), 1)
    assert len(names(workload)) == 13  # 130 % of 10 cores, one core per pod
    assert len(set(names(workload))) == 13
    drawn = [name.partition(".")[0] for name in names(workload)[8:]]
    assert set(drawn) <= set(names(WORKLOAD))


def test_nothing_is_drawn_if_the_demand_is_already_reached() -> None:
    assert len(names(arranged(WORKLOAD, until(50), 1))) == 8


def test_drawing_ends_if_no_pod_requests_the_resource() -> None:
    assert len(names(arranged(WORKLOAD, until(130, "example.com/x"), 1))) == 8


def test_a_pod_drawn_again_is_another_pod() -> None:
    first = pod_with_cpu("a")
    first["metadata"]["uid"] = "of-a"
    [_, _, again] = arranged(
        Workload(initial=(node_with_cpu("n", cpu=2), first)), until(100), 1
    ).initial
    assert again["metadata"] == {"name": "a.1", "namespace": "default"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, 2.0), ({"bayplan.dev/gpu-milli": "460"}, 0.92), ({"bayplan.dev/gpu-milli": "x"}, 2.0)],
)
def test_a_share_of_a_gpu_counts_as_a_fraction(
    annotations: dict[str, str], expected: float
) -> None:
    content: dict[str, Any] = pod_with_cpu("a")
    content["metadata"]["annotations"] = annotations
    limits = {"nvidia.com/gpu": "2"}
    content["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    assert requested_by(content, "nvidia.com/gpu") == pytest.approx(expected)
