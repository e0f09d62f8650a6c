"""The cases of Kubernetes' integration tests of groups, topology and trees, as scenarios.

`upstream_groups/cases.jsonl` has one case a line, with names of its own: the steps that create,
update and delete objects, and what has to come true. A case is named after its table of
kubernetes v1.37 and its place there, from 1:

- groups: test/integration/scheduler/podgroup/podgroup_test.go, TestPodGroupScheduling
- racks, basic racks: podgroup/topology_aware_scheduling/tas_test.go, TestTopologyAwareScheduling…
- trees: podgroup/cpg_test.go, TestCPGScheduling
- trees on racks, trees that preempt on racks: podgroup/topology_aware_scheduling/cpg_tas_test.go
- apart: podgroup/podgroup_affinity_test.go, TestPodGroupSchedulingWithPodAntiAffinity
- trees in the queue: podgroup/queueing_test.go, TestCPGQueueing
- queue: podgroup/queueing/queueing_test.go, TestPodGroupQueueing
- preemption, preemption of trees: preemption/podgroup/podgrouppreemption_test.go
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import POD
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.objects.keys import object_key
from tests.scenarios.gangs import UPSTREAM, condition
from tests.scenarios.trees import GATES
from tests.scenarios.upstream_objects import create, is_gone, is_refused, node_of
from tests.scenarios.world import World, play

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "upstream_groups" / "cases.jsonl").read_text().splitlines()
]
REQUEST_SECONDS = 0.01
#: Virtual seconds until a step has come true at the latest.
PATIENCE_SECONDS = 120
VERSION = KubernetesVersion.V1_37


def gates_of(case: dict[str, Any]) -> list[dict[str, bool]]:
    """The gates with which a case runs, each in turn."""
    has_trees = case["id"].startswith(("trees", "preemption of trees"))
    gates = {**GATES, "CompositePodGroup": has_trees}
    if case.get("policy"):
        gates["PodGroupPreemptionPolicy"] = True
    if not case["id"].startswith("groups"):
        return [gates]
    states = case.get("topology", [True, False])
    return [{**gates, "TopologyAwareWorkloadScheduling": is_on} for is_on in states]


RUNS = [
    pytest.param(case, gates, id=f"{case['id']}-{number}")
    for case in CASES
    for number, gates in enumerate(gates_of(case))
]


@pytest.mark.parametrize(("case", "gates"), RUNS)
def test_a_case_of_kubernetes_comes_true(case: dict[str, Any], gates: dict[str, bool]) -> None:
    async def scene(world: World) -> None:
        for verb, about in case["steps"]:
            if verb in ("create", "update"):
                for content in about:
                    create(world, content)
                    # One request follows another.
                    await world.until(world.now + REQUEST_SECONDS)
            elif verb == "protect":
                protect(world, about)
            elif verb == "ungate":
                for name in about:
                    world.change_pod(name, ungate)
            elif verb == "delete":
                for kind, name in about:
                    world.cluster.delete(object_key(KINDS[kind], "default", name))
            else:
                await until(world, verb, about)
            await world.until(world.now + 1)

    # The default profile.
    play(scene, profile={"plugins": {}}, gates=gates, kubernetes=VERSION)


def test_a_gated_pod_holds_its_group_with_the_gate_of_groups_only() -> None:
    async def scene(world: World) -> None:
        create(world, {"node": "n1", "cpu": "4"})
        create(world, {"group": "g", "minimum": 2})
        create(world, {"pod": "gated", "group": "g", "gates": ["hold"]})
        for name in ("a", "b"):
            create(world, {"pod": name, "group": "g"})
        await world.until(5)
        assert [bool(node_of(world, name)) for name in ("a", "b")] == [not is_on] * 2

    for is_on in (True, False):
        gates = {"GenericWorkload": is_on}
        play(scene, profile={"plugins": {}}, gates=gates, kubernetes=VERSION)


# ---- objects --------------------------------------------------------------------------------

KINDS = {"pod": POD, "group": UPSTREAM, "tree": COMPOSITE_POD_GROUP}


def ungate(content: dict[str, Any]) -> None:
    del content["spec"]["schedulingGates"]


def protect(world: World, labels: dict[str, str]) -> None:
    """A budget that allows no disruption."""
    group_version, _, kind = POD_DISRUPTION_BUDGET.partition(" ")
    meta = {"name": "budget", "namespace": "default"}
    spec = {"minAvailable": 2, "selector": {"matchLabels": labels}}
    content = {"apiVersion": group_version, "kind": kind, "metadata": meta, "spec": spec}
    world.cluster.create({**content, "status": {"disruptionsAllowed": 0}})


# ---- what has to come true --------------------------------------------------------------------


async def until(world: World, verb: str, about: Any) -> None:
    end_seconds = world.now + PATIENCE_SECONDS
    while not CHECKS[verb](world, about):
        assert world.now < end_seconds, f"{verb} {about} did not come true: {state(world)}"
        await world.until(world.now + 1)


def are_bound(world: World, names: Iterable[str]) -> bool:
    return all(not is_gone(world, name) and node_of(world, name) for name in names)


def any_are_bound(world: World, about: Sequence[Any]) -> bool:
    names, bound_count, refused_count = about
    bound = [name for name in names if node_of(world, name)]
    refused = [name for name in names if is_refused(world, name)]
    return (len(bound), len(refused)) == (bound_count, refused_count)


def share_a_domain(world: World, about: Sequence[Any]) -> bool:
    names, key = about
    nodes = [world.scheduler.cache.node(node_of(world, name)) for name in names]
    assert all(nodes)
    labels = [each.metadata.labels or {} for each in nodes if each is not None]
    return len({each.get(key) for each in labels}) == 1


def has_condition(world: World, about: Sequence[Any]) -> bool:
    name, status, reason = about
    actual = condition(world, name, "PodGroupInitiallyScheduled", UPSTREAM)
    return actual.get("status") == status and reason in (None, actual.get("reason"))


CHECKS: dict[str, Callable[[World, Any], bool]] = {
    "bound": are_bound,
    "unschedulable": lambda world, names: all(is_refused(world, name) for name in names),
    "waiting": lambda world, names: not any(node_of(world, name) for name in names),
    "failed": lambda world, names: all(world.reason(n) == "SchedulerError" for n in names),
    "gone": lambda world, names: all(is_gone(world, name) for name in names),
    "any": any_are_bound,
    "on": lambda world, about: all(node_of(world, name) in about[1] for name in about[0]),
    "together": share_a_domain,
    "condition": has_condition,
}


def state(world: World) -> dict[str, str]:
    """Where the pods are, or why they wait."""
    names = [stored.key.name for stored in world.cluster.objects(POD)]
    return {name: node_of(world, name) or world.message(name)[:160] for name in names}
