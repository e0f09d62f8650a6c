"""Groups of pods that come to a scheduler: their objects, the attempts, and what these cost.

The engine has what `bayplan run` has. Seconds are processor time of this process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import process_time
from typing import Any

from bayplan.api.objects import NAMESPACE, NODE
from bayplan.api.pod_groups import COSCHEDULING_GROUP, COSCHEDULING_LABEL
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.schema import API_VERSION, KIND
from bayplan.engine.scheduler import Scheduler
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, Effect, WatchEvent
from benchmarks import shapes
from benchmarks.engine_run import added, production_journal

GROUP_KIND = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"
NAMESPACE_NAME = "sched-1"
RACK = "example.com/rack"
GPU = "nvidia.com/gpu"

Object = dict[str, Any]


# ---- objects --------------------------------------------------------------------------------


def node(index: int, labels: Mapping[str, str], amounts: Mapping[str, str]) -> Object:
    """A node that offers these amounts."""
    name = f"node-{index:05d}"
    metadata = {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}}
    return {"metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}}


def group(name: str, member_count: int, annotations: Mapping[str, str] | None = None) -> Object:
    """A group that needs all its members."""
    metadata = {"name": name, "namespace": NAMESPACE_NAME, "annotations": dict(annotations or {})}
    return {"metadata": metadata, "spec": {"minMember": member_count}}


def pod(name: str, cpu: str, gpus: int = 0) -> Object:
    content = shapes.make_pod("default", name, NAMESPACE_NAME)
    resources: Object = {"requests": {"cpu": cpu, "memory": "500Mi"}}
    if gpus:
        resources["requests"][GPU] = str(gpus)
        resources["limits"] = {GPU: str(gpus)}
    content["spec"]["containers"][0]["resources"] = resources
    return content


def member(name: str, group_name: str, cpu: str, gpus: int = 0) -> Object:
    content = pod(name, cpu, gpus)
    content["metadata"]["labels"] = {COSCHEDULING_LABEL: group_name}
    return content


# ---- attempts -------------------------------------------------------------------------------


class GroupRun:
    """A scheduler that gets events and is measured. A pod that got a node stays assumed."""

    def __init__(
        self,
        nodes: Iterable[Object],
        fields: Object | None = None,
    ) -> None:
        """``fields``: of the configuration, besides the default profile."""
        header = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{}]}
        self.clock = ManualClock()
        self.scheduler = Scheduler(
            config_from({**header, **(fields or {})}),
            default_registry(),
            self.clock,
            journal=production_journal(),
            raise_bugs=True,
        )
        self.seconds = 0.0
        self.attempts = 0
        self.bound = 0
        self.failed = 0
        self.failed_seconds = 0.0
        self.scheduler.handle(added(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}}))
        for content in nodes:
            self.scheduler.handle(added(NODE, content))

    def measure(self, work: Callable[[], None]) -> None:
        """Do work whose time counts."""
        start = process_time()
        work()
        self.seconds += process_time() - start

    def place(self, events: Sequence[WatchEvent]) -> None:
        """Measure the events and the attempts that follow."""

        def work() -> None:
            for event in events:
                self.scheduler.handle(event)
            self.try_all()

        self.measure(work)

    def try_all(self) -> None:
        """Try all pods and groups that are ready."""
        while True:
            start, bound = process_time(), self.bound
            if not self.scheduler.schedule_one():
                break
            self.perform(self.scheduler.take_effects())
            self.attempts += 1
            if self.bound == bound:
                self.failed += 1
                self.failed_seconds += process_time() - start

    def perform(self, effects: Sequence[Effect]) -> None:
        """Count the bindings. No effect is performed."""
        self.bound += sum(isinstance(effect, BindPod) for effect in effects)

    def wait(self, seconds: float) -> None:
        """Advance the clock from one deadline to the next."""
        end = self.clock.now() + seconds
        while (due := self.scheduler.next_deadline_seconds()) is not None and due <= end:
            self.clock.advance_to(max(due, self.clock.now() + 0.001))
            self.scheduler.run_timers()
            self.try_all()
        self.clock.advance_to(end)
