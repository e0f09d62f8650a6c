"""The metrics that every comparison has, compared with values calculated by hand."""

from pathlib import Path

import msgspec
import pytest

from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.comparison.experiment import InputSpec
from bayplan.comparison.job import RunResult, perform
from bayplan.comparison.metrics.catalogue import metric_note
from bayplan.comparison.planning import plan
from tests.comparison.kit import cluster_file, node_with_cpu, pod_with_cpu, spec
from tests.kit.manifests import pod, pod_group

# ---- metric notes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "unit", "better"),
    [
        ("placed", "pods", "higher"),
        ("unschedulable: Insufficient cpu", "pods", "lower"),
        ("fragmented_nvidia.com/gpu_percent", "%", "lower"),
        ("gang_waiting_seconds_p95", "s", "lower"),
        ("domains_used: zone", "values", ""),
        ("somebody_elses", "", ""),
    ],
)
def test_a_metric_has_a_unit_and_a_better_direction(metric: str, unit: str, better: str) -> None:
    note = metric_note(metric)
    assert (note.unit, note.better) == (unit, better)


# ---- metrics --------------------------------------------------------------------------------


def results(folder: Path, *extra: object, **fields: object) -> list[RunResult]:
    """A packed and a spread run: three nodes of 4 cores, four pods of 1 core."""
    experiment = spec(folder, **fields)
    file = cluster_file(folder, *extra)  # type: ignore[arg-type]
    experiment = msgspec.structs.replace(experiment, inputs=(InputSpec(paths=(str(file),)),))
    return [perform(job).result for job in plan(experiment, "test").jobs]


def test_pods_and_the_reasons_of_pending_pods_are_counted(tmp_path: Path) -> None:
    packed, _ = results(tmp_path, pod_with_cpu("big", cpu=5))
    assert packed.metrics["placed"] == 4
    assert packed.metrics["unschedulable"] == 1
    assert packed.metrics["unschedulable: Insufficient cpu"] == 1


def test_all_members_of_a_group_wait_for_the_reason_of_the_one_that_was_evaluated(
    tmp_path: Path,
) -> None:
    labels = {COSCHEDULING_LABEL: "g"}
    members = [pod(f"m{i}", cpu="5", labels=labels) for i in range(3)]
    packed, _ = results(tmp_path, pod_group("g", 3), *members)
    assert packed.metrics["unschedulable"] == 3
    assert packed.metrics["unschedulable: Insufficient cpu"] == 3


def test_allocation_is_a_percentage_of_the_capacity_of_all_nodes(tmp_path: Path) -> None:
    packed, _ = results(tmp_path)
    assert packed.metrics["allocated_cpu_percent"] == pytest.approx(100 * 4 / 12)
    assert packed.metrics["peak_cpu_percent"] == pytest.approx(100 * 4 / 12)


def test_the_allocation_curve_is_over_the_arrived_demand(tmp_path: Path) -> None:
    packed, _ = results(tmp_path)
    points = packed.curves["cpu allocated % over cpu arrived %"]
    # Before each pod, all earlier pods are placed.
    shares = [100 * n / 12 for n in range(4)]
    assert [x for x, _ in points] == pytest.approx(shares)
    assert [y for _, y in points] == pytest.approx(shares)


def test_fragmentation_is_the_capacity_that_a_pod_could_not_use(tmp_path: Path) -> None:
    packed, spread = results(tmp_path, pod_with_cpu("big", cpu=5))
    # Packed: two nodes have 4 free cores each, the third none. Four of five pods can use all
    # free cores, the big pod cannot use any.
    assert packed.metrics["fragmented_cpu_percent"] == pytest.approx(100 / 5)
    assert spread.metrics["fragmented_cpu_percent"] == pytest.approx(100 / 5)


def test_free_capacity_where_a_pod_does_not_fit_is_fragmented(tmp_path: Path) -> None:
    packed, spread = results(tmp_path, pod_with_cpu("wide", cpu=3))
    # The wide pod arrives last. Packed: n0 has four pods, the wide pod takes 3 cores of n1. Then
    # 1 + 4 cores are free, of which the wide pod could use 4. Spread: the nodes have 2, 1 and 1
    # pods, the wide pod takes 3 cores of a node with 1 pod. Then 2, 3 and 0 cores are free.
    assert packed.metrics["fragmented_cpu_percent"] == pytest.approx(100 * (1 / 5) / 5)
    assert spread.metrics["fragmented_cpu_percent"] == pytest.approx(100 * (2 / 5) / 5)


def test_nodes_and_domains_that_hold_pods_are_counted(tmp_path: Path) -> None:
    zone = "topology.kubernetes.io/zone"
    far = node_with_cpu("n9", cpu=4, **{zone: "far"})
    packed, spread = results(tmp_path, far, pod_with_cpu("p8"))
    assert packed.metrics["nodes_used"] == 2
    assert spread.metrics["nodes_used"] == 4
    assert spread.metrics[f"domains_used: {zone}"] == 1


def test_waiting_time_is_from_creation_to_binding(tmp_path: Path) -> None:
    late = {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "Scenario",
        "spec": {"events": [{"at": "5s", "create": [node_with_cpu("n9", cpu=8)]}]},
    }
    (tmp_path / "late.json").write_text(msgspec.json.encode(late).decode())
    experiment = spec(tmp_path)
    paths = (str(cluster_file(tmp_path, pod_with_cpu("big", cpu=5))), str(tmp_path / "late.json"))
    experiment = msgspec.structs.replace(experiment, inputs=(InputSpec(paths=paths),))
    metrics = perform(plan(experiment, "test").jobs[0]).result.metrics
    assert metrics["waiting_seconds_max"] >= 5
    assert metrics["waiting_seconds_p50"] == 0
    assert metrics["waiting_seconds_mean"] == pytest.approx(metrics["waiting_seconds_max"] / 5)
