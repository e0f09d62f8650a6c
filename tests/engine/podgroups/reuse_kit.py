"""A scheduler for scenarios of groups that run with the cache of results and without."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.api.objects import NAMESPACE, POD, decode
from bayplan.api.pod_groups import COSCHEDULING_GROUP, COSCHEDULING_LABEL, REQUIRED_TOPOLOGY
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.schema import API_VERSION, KIND
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import DigestSink, Journal
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, EventType, WatchEvent
from tests.kit.manifests import Content, container, node, pod

GROUP_KIND = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"


def rack_node(index: int, rack_count: int, cpu: int = 4, **spec: Any) -> Content:
    amounts = {"cpu": str(cpu), "memory": "16Gi", "pods": "20"}
    status = {"allocatable": amounts, "capacity": amounts}
    return node(f"n{index}", labels={"rack": f"r{index % rack_count}"}, spec=spec, status=status)


def member(
    name: str, cpu: int, group: str = "", labels: Mapping[str, str] | None = None, **spec: Any
) -> Content:
    labels = {**(labels or {}), **({COSCHEDULING_LABEL: group} if group else {})}
    containers = [container(f"{cpu}m")]
    return pod(name, uid=name, labels=labels, containers=containers, **spec)


def group(name: str, minimum: int, topology: str = "rack") -> Content:
    """``topology``: the key of the required topology; "": all nodes."""
    annotations = {REQUIRED_TOPOLOGY: topology} if topology else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"minMember": minimum}}


class GroupScheduler:
    """A scheduler with methods for events."""

    def __init__(self, *, is_cached: bool) -> None:
        self.sink = DigestSink()
        gates = {"OpportunisticBatching": is_cached}
        self.clock = ManualClock()
        self.scheduler = Scheduler(
            config_from({"apiVersion": API_VERSION, "kind": KIND, "featureGates": gates}),
            default_registry(),
            self.clock,
            journal=Journal([self.sink]),
            raise_bugs=True,
        )
        self.add(NAMESPACE, {"metadata": {"name": "default"}})
        self.nodes_of: dict[str, str] = {}

    def add(self, kind: str, content: Content) -> None:
        self.scheduler.handle(WatchEvent(EventType.ADDED, kind, decode(kind, content)))

    def modify(self, kind: str, content: Content) -> None:
        self.scheduler.handle(WatchEvent(EventType.MODIFIED, kind, decode(kind, content)))

    def delete(self, kind: str, content: Content) -> None:
        self.scheduler.handle(WatchEvent(EventType.DELETED, kind, decode(kind, content)))

    def wait(self, seconds: float) -> None:
        """Advance the clock and try all groups that are due."""
        self.clock.advance_to(self.clock.now() + seconds)
        self.scheduler.run_timers()
        self.schedule()

    def schedule(self) -> None:
        while self.scheduler.schedule_one():
            for effect in self.scheduler.take_effects():
                if isinstance(effect, BindPod):
                    self.nodes_of[effect.pod.uid] = effect.node_name

    def add_group(
        self,
        name: str,
        count: int,
        cpu: int = 500,
        *,
        topology: str = "rack",
        label_keys: Sequence[str] = (),
        **spec: Any,
    ) -> None:
        """``label_keys``: labels whose value is the index of the member."""
        self.add(GROUP_KIND, group(name, count, topology))
        for index in range(count):
            labels = dict.fromkeys(label_keys, str(index))
            self.add(POD, member(f"{name}-{index}", cpu, name, labels, **spec))
