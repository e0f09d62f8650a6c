"""A plugin that refuses for ever does not keep a simulation going for ever."""

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
from bayplan.sim.simulation import Simulation
from bayplan.sim.workload import Workload
from tests.adapters.manifests import node, pod


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


def simulated(plugin: str, **gates: bool) -> Any:
    registry = Registry()
    registry.add(RefusesAtPreBind)
    registry.add(NeverAllows)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": gates,
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}],
    }
    workload = Workload(initial=(node("n1"), pod("p"))).for_scheduler("default-scheduler")
    return Simulation(workload, config_from(config), registry).run()


@pytest.mark.parametrize("early", [True, False], ids=["popped early", "waits out its delay"])
@pytest.mark.parametrize("plugin", ["RefusesAtPreBind", "NeverAllows"])
def test_a_pod_that_is_refused_for_ever_ends_the_run_pending(plugin: str, early: bool) -> None:
    result = simulated(plugin, SchedulerPopFromBackoffQ=early)
    assert set(result.unschedulable) == {"default/p"}
    assert result.attempts < 10
    assert result.simulated_seconds < 60
