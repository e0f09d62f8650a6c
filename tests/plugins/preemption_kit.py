"""A profile that can preempt, over a sample cluster: one attempt and its result.

over = scene(node("n1", cpu=2), pod("low", cpu=2, node="n1"))
assert over.attempt(pod("p", cpu=2, priority=5)).nominated == "n1"
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import Node, decode
from bayplan.api.pod_groups import KINDS
from bayplan.config.kubernetes_versions import NEWEST
from bayplan.engine.cycle import Cycle
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.preemption import REVIEW, CandidateReview
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.runtime import Framework
from bayplan.framework.status import NodeToStatus, is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.default_preemption import DefaultPreemption
from bayplan.plugins.default_preemption.dry_run import Findings
from bayplan.plugins.default_preemption.plugin import DefaultPreemptionArgs
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import PROFILE, SampleCluster, handle_for
from bayplan.testing.state_checks import SamplePort

EARLY, LATER, LATEST = (f"2026-01-01T00:0{minute}:00Z" for minute in (1, 2, 3))


def started(stamp: str) -> dict[str, Any]:
    return {"startTime": stamp}


def budget(name: str, labels: dict[str, str], allowed: int, *disrupted: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(disrupted, EARLY),
        },
    }


@dataclass(frozen=True, slots=True)
class Attempted:
    """The result of an attempt."""

    cycle: Cycle
    #: None: the nomination does not change.
    nominated: str | None
    message: str
    code: str


@final
class Scene:
    """A cluster with one profile."""

    def __init__(self, *args: Node | PodInfo, **options: Any) -> None:
        """``options``: DefaultPreemption's args, and ``gates`` and ``kubernetes``."""
        gates, version = options.pop("gates", None), options.pop("kubernetes", NEWEST)
        self.cluster = SampleCluster(gates=gates, kubernetes=version).add(*args)
        plugins = ProfilePlugins(PROFILE, PrioritySort(None, self._handle(PrioritySort)))
        fit = NodeResourcesFit(None, self._handle(NodeResourcesFit))
        ports = NodePorts(None, self._handle(NodePorts))
        taints = TaintToleration(None, self._handle(TaintToleration))
        preempting = self._handle(DefaultPreemption)
        plugin_args = DefaultPreemptionArgs(**options)
        self.plugin = DefaultPreemption(plugin_args, preempting)
        plugins.pre_filter = [ports, fit]
        plugins.filter = [taints, ports, fit]
        plugins.post_filter = [self.plugin]
        plugins.bind = [DefaultBinder(None, self._handle(DefaultBinder))]
        self.framework = Framework(plugins, self.cluster.nominator)
        self.cluster.frameworks[PROFILE] = self.framework

    def _handle(self, plugin: Any) -> Any:
        return handle_for(self.cluster, plugin, plugin.name)

    def put_budgets(self, *budgets: dict[str, Any]) -> None:
        self.cluster.put(POD_DISRUPTION_BUDGET, *budgets)

    def put_group(self, name: str, **spec: Any) -> None:
        """Add a group of `scheduling.k8s.io`, whose members are the pods placed so far."""
        kind = "scheduling.k8s.io/v1beta1 PodGroup"
        content = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        self.cluster.pod_groups.put(KINDS[kind].compile(kind, decode(kind, content)))
        for each in self.cluster.cache.pods():
            self.cluster.pod_groups.put_pod(each.pod)

    def nominate(self, *pods: PodInfo) -> None:
        for each in pods:
            self.cluster.nominator.add_nominated_pod(each)

    def cycle(self, pod: PodInfo) -> Cycle:
        """A cycle over all nodes."""
        runner = CycleRunner(self.cluster.nominator, seed=0, extenders=())
        cycle = Cycle(QueuedPodInfo(pod, 0.0), self.framework, self.cluster.lend())
        assert runner.run(cycle) is None
        return cycle

    def attempt(self, pod: PodInfo, review: CandidateReview | None = None) -> Attempted:
        cycle = self.cycle(pod)
        assert is_rejected(cycle.status), f"{pod!r} fits: {cycle.choice}"
        if review is not None:
            cycle.state[REVIEW] = review
        statuses = cycle.node_to_status()
        nomination, status = self.framework.run_post_filter(cycle.state, pod, statuses)
        assert status is not None
        nominated = None if nomination is None else nomination.node_name
        return Attempted(cycle, nominated, status.message, str(status.code))

    def find(self, pod: PodInfo) -> Findings:
        """Run the dry run alone."""
        cycle = self.cycle(pod)
        assert is_rejected(cycle.status), f"{pod!r} fits: {cycle.choice}"
        statuses: NodeToStatus = cycle.node_to_status()
        return self.plugin.find(cycle.state, pod, statuses.codes(cycle.snapshot.nodes))

    def candidates(self, pod: PodInfo) -> dict[str, list[str]]:
        """Node → names of its victims, from the most important one on."""
        batch = self.find(pod).candidates
        if batch is None:
            return {}
        nodes = self.cluster.lent_snapshot
        assert nodes is not None
        return {
            nodes.nodes.name(position): [v.name for v in batch.victims(index).pods]
            for index, position in enumerate(batch.positions.tolist())
        }

    def perform(self, port: Any = None) -> Any:
        """Perform the writes of the plugin and those that follow. A failed write is skipped."""
        port = port or SamplePort(self.cluster.store)
        while self.cluster.writes:
            writes: Sequence[Any] = list(self.cluster.writes)
            self.cluster.writes.clear()
            for _, write in writes:
                try:
                    asyncio.run(write(port))
                except Exception:  # noqa: BLE001 - the engine notes it
                    continue
        return port


def scene(*args: Node | PodInfo, **options: Any) -> Scene:
    return Scene(*args, **options)
