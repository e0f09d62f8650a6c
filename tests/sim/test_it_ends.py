"""A simulation ends even if a plugin always refuses."""

from typing import Any, final

import pytest

from bayplan import (
    BindPort,
    CycleState,
    PermitPlugin,
    PodInfo,
    PreBindPlugin,
    Status,
    unschedulable,
)
from bayplan.config import config_from
from bayplan.framework.status import Code
from bayplan.plugins.registry import Registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.simulation import Simulation
from bayplan.sim.world.retry_outlook import TRIES_MAX
from tests.kit.manifests import node, pod


@final
class RefusesAtPreBind(PreBindPlugin):
    name = "RefusesAtPreBind"

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        return unschedulable("not here")


@final
class NeverAllows(PermitPlugin):
    name = "NeverAllows"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 5.0


def simulated(plugin: str, *pods: str, **gates: bool) -> Any:
    registry = Registry()
    registry.add(RefusesAtPreBind)
    registry.add(NeverAllows)
    registry.add(AllowsLate)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": gates,
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}],
    }
    initial = (node("n1"), *map(pod, pods or ("p",)))
    workload = Workload(initial=initial).for_scheduler("default-scheduler")
    return Simulation(workload, config_from(config), registry).run()


@pytest.mark.parametrize("early", [True, False], ids=["popped early", "waits out its delay"])
@pytest.mark.parametrize("plugin", ["RefusesAtPreBind", "NeverAllows"])
def test_a_pod_that_is_always_refused_ends_the_run_pending(plugin: str, early: bool) -> None:
    result = simulated(plugin, SchedulerPopFromBackoffQ=early)
    assert set(result.unschedulable) == {"default/p"}
    assert result.attempts < 10
    assert result.simulated_seconds < 60


@pytest.mark.parametrize("early", [True, False], ids=["popped early", "waits out its delay"])
@pytest.mark.parametrize("pods", [("p", "q"), ("p", "q", "r")], ids=["two", "three"])
def test_pods_that_always_time_out_at_permit_end_the_run(
    pods: tuple[str, ...], early: bool
) -> None:
    result = simulated("NeverAllows", *pods, SchedulerPopFromBackoffQ=early)
    assert set(result.unschedulable) == {f"default/{name}" for name in pods}
    assert result.attempts <= len(pods) * 2 * TRIES_MAX
    assert result.simulated_seconds < 600


@final
class AllowsLate(PermitPlugin):
    """Allows pods from its ninth call on."""

    name = "AllowsLate"

    def setup(self) -> None:
        self.call_count = 0

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        self.call_count += 1
        return (Status(Code.WAIT), 5.0) if self.call_count < 9 else (None, 0.0)


def test_retries_that_succeed_after_a_while_are_waited_for() -> None:
    assert not simulated("AllowsLate", "p", "q").unschedulable
