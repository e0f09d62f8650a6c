"""A run for the tests of the page: arrivals, ends, a preemption, a group, a node deletion."""

from typing import Any

from bayplan import rng
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.workload import Step, Workload
from bayplan.sim.simulation import Simulation
from tests.kit.manifests import Content, node, pod, pod_group, priority_class
from tests.sim.runs import create, delete, patch, workload

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
ZONE = "topology.kubernetes.io/zone"
_ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "20"}

#: A configuration with another scoring strategy.
PACK = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
"""


def example_workload(pod_count: int = 60) -> Workload:
    """``pod_count`` pods arrive in the first ten minutes and run for some minutes."""
    draws = rng.stream(7, "example run")
    nodes = [_node(number) for number in range(6)]
    steps: list[Step] = []
    for number in range(pod_count):
        content = _pod(
            f"job-{number:03d}",
            cpu=draws.choice(["500m", "1", "2", "4"]),
            annotations={"bayplan.dev/duration": f"{draws.randint(60, 400)}s"},
        )
        steps.append(create(draws.randint(0, 600), content))
    urgent = _pod("urgent", cpu="8", priorityClassName="high", priority=1000)
    members = [_pod(f"train-{number}", cpu="2", labels={GROUP_LABEL: "train"}) for number in (1, 2)]
    taint = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
    steps += [
        create(150, urgent),
        create(200, pod_group("train", 3)),
        *(create(200, member) for member in members),
        patch(300, {**nodes[2], **taint}),
        delete(420, nodes[1]),
        create(500, _node(9)),
        create(520, _pod("train-3", cpu="2", labels={GROUP_LABEL: "train"})),
    ]
    steps.sort(key=lambda step: step.at_seconds)
    waits = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    huge = _pod("huge", cpu="900")
    initial = (priority_class("high", 1000), *nodes, _pod("old", cpu="1", nodeName="n0"))
    return workload(*initial, waits, huge, steps=steps)


def _node(number: int) -> Content:
    labels = {ZONE: "abc"[number % 3], "pool": "general" if number < 4 else "spot"}
    return node(f"n{number}", labels=labels, status={"allocatable": _ALLOCATABLE})


def _pod(name: str, cpu: str, **fields: Any) -> Content:
    return pod(name, cpu=cpu, **fields)


def simulated(feed: Workload) -> Simulation:
    return Simulation(feed, config_from(DEFAULT_CONFIG), default_registry(), seed=1)
