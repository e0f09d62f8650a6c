"""Events of one cluster for a shadow: no API server, no clock."""

from msgspec import structs

from bayplan.api.objects import POD, Node, Pod
from bayplan.ports import EventType, WatchEvent
from bayplan.shadow.report import ShadowReport
from bayplan.shadow.shadow import Shadow
from bayplan.state.pods import PodInfo


class Stream:
    """The events of one cluster. Time advances only by `wait`."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def event(
        self,
        kind: str,
        content: Pod | Node,
        change: EventType = EventType.ADDED,
        *,
        is_listed: bool = False,
    ) -> None:
        self.shadow.observe(WatchEvent(change, kind, content), self.now, is_listed=is_listed)

    def create(self, *pods: PodInfo) -> None:
        for each in pods:
            self.event(POD, each.pod)

    def bind(self, bound: PodInfo, node_name: str, *, is_listed: bool = False) -> None:
        spec = structs.replace(bound.pod.spec, node_name=node_name)
        changed = structs.replace(bound.pod, spec=spec)
        self.event(POD, changed, EventType.MODIFIED, is_listed=is_listed)

    def report(self) -> ShadowReport:
        self.shadow.finish(self.now)
        return self.shadow.report("2026-01-01T00:00:00Z")
