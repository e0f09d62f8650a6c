"""How long it takes to compute which nodes of a large cluster can be drained.

    python -m benchmarks drain [--nodes 1000] [--pods 30000] [--workloads 300]
        [--hard 0.02] [--fullness 0.75] [--out drain.json]

The pods belong to ReplicaSets; each workload has a PodDisruptionBudget that allows one disruption.
A share of the workloads (--hard) has a required anti-affinity between its own pods, so that their
replacements are placed in a trial. Processor time of this process is measured, on one core. Exit
status 1: it takes longer than 10 s.
"""

import gc
import json
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import NODE, POD, ApiObject, decode
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.whatif.drain_each import drain_each
from benchmarks.machine import machine, today

SECONDS_MAX = 10.0
_NODE_CPU, _ZONES = 32, 3


@click.command()
@click.option("--nodes", "node_count", default=1000, show_default=True)
@click.option("--pods", "pod_count", default=30_000, show_default=True)
@click.option("--workloads", "workload_count", default=300, show_default=True)
@click.option("--hard", "hard_share", default=0.02, show_default=True)
@click.option("--fullness", default=0.75, show_default=True, help="Share of the CPU that is in use")
@click.option("--out", type=click.Path(path_type=Path), help="File for the result as JSON")
def main(out: Path | None, **sizes: Any) -> None:
    """Drain each node of a cluster in memory."""
    model = ClusterModel(cluster(**sizes), SchedulerConfig(), default_registry(()))
    gc.collect()
    start, wall = process_time(), perf_counter()
    report = drain_each(model)
    seconds = process_time() - start
    result = {
        **sizes,
        "seconds": round(seconds, 2),
        "wall_seconds": round(perf_counter() - wall, 2),
        "can_go": sum(one.can_go for one in report.departures),
        "tried": sum(one.is_tried for one in report.departures),
        "pods": sum(one.pods for one in report.departures),
        "date": today(),
        "machine": machine(),
    }
    print(json.dumps(result, indent=2))
    if out is not None:
        out.write_text(json.dumps(result))
    if seconds > SECONDS_MAX:
        sys.exit(1)


def cluster(
    node_count: int, pod_count: int, workload_count: int, hard_share: float, fullness: float
) -> ClusterPicture:
    """Equal nodes in three zones, with pods spread over them one by one."""
    per_node = max(pod_count // node_count, 1)
    cpu = f"{int(1000 * _NODE_CPU * fullness / per_node)}m"
    # Successive pods are on successive nodes, so a node has at most one pod of a workload.
    per_workload = max(pod_count // workload_count, 1)
    hard_count = int(workload_count * hard_share)
    pods = (
        _pod(number, number // per_workload, number % node_count, cpu, hard_count)
        for number in range(pod_count)
    )
    by_kind = {
        NODE: map(_node, range(node_count)),
        POD_DISRUPTION_BUDGET: map(_budget, range(workload_count)),
        POD: pods,
    }
    return ClusterPicture(store_of(by_kind))


def _decoded(kind: str, content: dict[str, Any]) -> Any:
    return decode(kind, content)


def _node(number: int) -> ApiObject:
    name = f"n{number}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"z{number % _ZONES}",
    }
    amounts = {"cpu": str(_NODE_CPU), "memory": "128Gi", "pods": "110"}
    content = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}
    return _decoded(NODE, content)


def _budget(number: int) -> ApiObject:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": f"w{number}"}}}
    metadata = {"name": f"w{number}", "namespace": "default"}
    status = {"disruptionsAllowed": 1}
    return _decoded(POD_DISRUPTION_BUDGET, {"metadata": metadata, "spec": spec, "status": status})


def _pod(number: int, workload: int, node: int, cpu: str, hard_count: int) -> ApiObject:
    name, labels = f"w{workload}", {"app": f"w{workload}"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    spec: dict[str, Any] = {
        "nodeName": f"n{node}",
        "containers": [
            {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        ],
        "topologySpreadConstraints": [spread],
    }
    if workload < hard_count:
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": labels},
        }
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": terms}
    metadata = {
        "name": f"{name}-{number}",
        "namespace": "default",
        "uid": f"uid-{number}",
        "labels": labels,
        "ownerReferences": [{**owner, "controller": True}],
    }
    return _decoded(POD, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
