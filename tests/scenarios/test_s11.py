"""S-11, part A: words and values of a complete scheduler.

Names and numbers of codes, events and statuses are in tests/framework/test_status.py and
test_events.py, refusals of configurations in tests/config and tests/engine.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.config import ConfigError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import UPDATE, ClusterEvent, ClusterEventWithHint
from bayplan.framework.plugin import (
    EnqueueExtensions,
    PreEnqueuePlugin,
    ReservePlugin,
    ScalarFilterPlugin,
)
from bayplan.framework.status import (
    EXTENDER_NAME,
    NO_NODES_AVAILABLE,
    Code,
    Status,
    unresolvable,
    unschedulable,
)
from bayplan.framework.types import MAX_NODE_SCORE, MAX_TOTAL_SCORE, MIN_NODE_SCORE, NominatingMode
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from tests.scenarios.world import Setup, World, play, scenario

QUOTA = "example.com/v1 Quota"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        pytest.param(
            [MIN_NODE_SCORE, MAX_NODE_SCORE, MAX_TOTAL_SCORE], [0, 100, 2**63 - 1], id="F-012"
        ),
        pytest.param(EXTENDER_NAME, "Extender", id="F-017"),
        pytest.param([mode.name for mode in NominatingMode], ["NOOP", "OVERRIDE"], id="F-019"),
        pytest.param(NO_NODES_AVAILABLE, "no nodes available to schedule pods", id="S-02"),
    ],
)
def test_names_and_values_equal_upstreams(actual: object, expected: object) -> None:
    assert actual == expected


# ---- codes as labels (F-001) ----------------------------------------------------------------


class Says(ReservePlugin, EnqueueExtensions):
    """Returns the code that the pod's label names, and registers no event."""

    name = "Says"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return Status(Code[pod.labels["says"]])

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return []


@scenario(plugins=["Says"], classes=[Says])
async def test_metrics_show_codes_in_upstreams_spelling(world: World) -> None:
    world.add_node("n1")
    for code in ("SUCCESS", "UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE", "PENDING"):
        world.add_pod(code.lower().replace("_", "-"), labels={"says": code})
    await world.until(0)
    name = "scheduler_framework_extension_point_duration_seconds_count"
    for status in ("Success", "Unschedulable", "UnschedulableAndUnresolvable", "Pending"):
        labels = {"extension_point": "Reserve", "status": status, "profile": "bayplan"}
        assert world.metric(name, **labels) == 1, status


# ---- instances (F-005, F-048) ---------------------------------------------------------------


class Shut(ScalarFilterPlugin, EnqueueExtensions):
    """Rejects pods that have the label of the instance."""

    name = "Shut"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        label = self.instance_name.partition("/")[2]
        return unschedulable(f"shut by {label}") if label in pod.labels else None

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return []


@scenario(plugins=["Shut/one", "Shut/other"], classes=[Shut])
async def test_two_instances_of_one_class_have_separate_names(world: World) -> None:
    world.add_node("n1")
    world.add_pod("p", labels={"one": ""})
    world.add_pod("q", labels={"other": ""})
    await world.until(0)
    for name, instance in (("p", "Shut/one"), ("q", "Shut/other")):
        assert world.unschedulable_plugins(name) == {instance}
        gauge = {"plugin": instance, "profile": "bayplan"}
        assert world.metric("scheduler_unschedulable_pods", **gauge) == 1
    assert [r.plugin for r in world.attempts("q")[0].rejections] == ["Shut/other"]


# ---- gates (F-036) --------------------------------------------------------------------------


class NeedsQuota(PreEnqueuePlugin, EnqueueExtensions):
    """Gates pods until their namespace has a Quota, a custom kind, that allows pods."""

    name = "NeedsQuota"
    kinds = (QUOTA,)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        quotas = self.handle.objects(QUOTA).list(pod.namespace)
        allowed = any(quota.content["spec"]["pods"] > 0 for quota in quotas)
        return None if allowed else unresolvable("no quota")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent("example.com/Quota", UPDATE))]


def quota(pods: int) -> dict[str, Any]:
    metadata = {"name": "q", "namespace": "default"}
    kind = {"apiVersion": "example.com/v1", "kind": "Quota"}
    return {**kind, "metadata": metadata, "spec": {"pods": pods}}


@scenario(plugins=["NeedsQuota"], classes=[NeedsQuota])
async def test_a_plugin_reads_and_waits_for_objects_of_a_declared_kind(world: World) -> None:
    """F-021 and F-081. A gated pod has 0 attempts (F-036)."""
    world.add_node("n1")
    world.cluster.create(quota(0))
    world.add_pod("p")
    await world.until(3)
    queued = world.scheduler.queue.find(world.uid("p"))
    assert queued is not None
    assert (queued.attempts, queued.gated, queued.gating_plugin) == (0, True, "NeedsQuota")
    assert queued.initial_attempt_seconds is None
    world.cluster.update(quota(1))
    await world.until(3)
    assert world.bound("p") == (3.0, "n1")
    # The user's waiting time starts when the gate opens.
    name = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert world.metric(name, attempts="1") == 0.0


class Undeclared(ReservePlugin):
    """Looks up objects of a kind that the plugin does not declare."""

    name = "Undeclared"

    def setup(self) -> None:
        self.quotas = self.handle.objects(QUOTA)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


def test_an_undeclared_kind_is_refused_at_the_start() -> None:
    async def scene(world: World) -> None: ...

    with pytest.raises(ConfigError) as caught:
        play(scene, plugins=["Undeclared"], classes=[Undeclared])
    for word in ("Undeclared", QUOTA, "kinds", 'verbs ["list", "watch"]'):
        assert word in str(caught.value)


# ---- events of plugins (F-082) --------------------------------------------------------------


class Talks(ReservePlugin):
    """Emits an event at Reserve."""

    name = "Talks"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.handle.emit(pod, "Normal", "Reserved", "Reserving", f"a seat on {node_name}")

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


@scenario(plugins=["Talks"], classes=[Talks])
async def test_an_event_of_a_plugin_is_in_the_api_and_in_the_journal(world: World) -> None:
    world.add_node("n1")
    world.add_pod("p")
    await world.until(0)
    assert world.events("p", "Reserved") == ["a seat on n1"]
    assert world.notes("default/p") == ["event Reserved: a seat on n1"]


# ---- determinism ----------------------------------------------------------------------------


def test_equal_seeds_give_equal_runs_and_other_seeds_differ_only_in_draws() -> None:
    async def scene(world: World) -> None:
        for number in range(6):
            world.add_node(f"n{number}")
        for number in range(12):
            world.add_pod(f"p{number}")
        await world.until(0)

    worlds = [play(scene, Setup(seed=seed)) for seed in (1, 1, 2)]
    assert worlds[0].digest == worlds[1].digest
    assert worlds[0].digest != worlds[2].digest
    for number in range(12):
        one, other = (world.attempts(f"p{number}")[0] for world in (worlds[0], worlds[2]))
        assert (one.feasible_count, one.tied_count) == (other.feasible_count, other.tied_count)


# ---- artefacts of Go (F-094) ----------------------------------------------------------------

SOURCE = Path(bayplan.__file__).parent
CORE = ("api", "state", "framework", "queue", "plugins", "engine")


@pytest.mark.parametrize("package", CORE)
def test_no_function_of_the_core_takes_a_logger_or_a_context(package: str) -> None:
    results = [
        f"{path.name}:{function.name}({argument.arg})"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in (*function.args.args, *function.args.kwonlyargs)
        if argument.arg in ("ctx", "context", "logger")
    ]
    assert results == []
