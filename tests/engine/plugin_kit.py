"""Small plugins for tests of profiles, and configurations that use them."""

from collections.abc import Sequence
from typing import Any, ClassVar, final

from bayplan.config import ConfigError, SchedulerConfig, config_from
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import (
    BindPlugin,
    EnqueueExtensions,
    Plugin,
    PluginArgs,
    QueueSortPlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.score_sources import Source
from bayplan.plugins.node_name import NodeNameOrder
from bayplan.plugins.registry import Registry
from bayplan.plugins.score_connectors import Invert
from bayplan.profile.dry_start import idle_handle

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


@final
class Sort(QueueSortPlugin):
    name = "Sort"

    def key(self, queued: Any) -> Any:
        return queued.timestamp_seconds


@final
class Binder(BindPlugin):
    name = "Binder"

    async def bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None:
        return None


@final
class Both(ScalarFilterPlugin, ScalarScorePlugin, SignPlugin):
    """Filters and scores, signs, and registers no events."""

    name = "Both"

    def filter_node(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0

    def sign_pod(self, pod: Any) -> Any:
        return None if pod is None else ("both", self.instance_name)


class GateArgs(PluginArgs, frozen=True):
    key: str = "a"
    limit: int = 3

    def problems(self) -> Any:
        if self.limit < 0:
            yield "limit", f"{self.limit}; wanted 0 or more"


@final
class Gate(ScalarFilterPlugin, EnqueueExtensions):
    """Takes args and registers an event; lists when its events are read and when it is closed."""

    name = "Gate"
    args_type = GateArgs
    events_read: ClassVar[list[str]] = []
    closed: ClassVar[list[str]] = []

    def filter_node(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        self.events_read.append(self.instance_name)
        return [ClusterEventWithHint(NODE_ADDED)]

    def close(self) -> None:
        self.closed.append(self.instance_name)


class RackArgs(PluginArgs, frozen=True):
    topology_key: str
    scorer: dict[str, Any] = {}


@final
class Rack(ScalarScorePlugin):
    """Needs args. Some of them describe another plugin, which it makes."""

    name = "Rack"
    args_type = RackArgs

    def setup(self) -> None:
        self.inner: Plugin | None = None
        if self.args.scorer:
            self.inner = self.handle.make(self.args.scorer["name"], self.args.scorer["args"])

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0


@final
class Talkative(ScalarScorePlugin, EnqueueExtensions):
    """Only scores, so its events must not be read."""

    name = "Talkative"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        raise AssertionError("the events of a plugin that cannot reject are not read")


@final
class NoStart(ScalarScorePlugin):
    name = "NoStart"

    def setup(self) -> None:
        raise ValueError("no licence")

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0


@final
class NoEvents(ScalarFilterPlugin, EnqueueExtensions):
    name = "NoEvents"

    def filter_node(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        raise ValueError("cannot think of any")


def registry(*plugins: type[Plugin]) -> Registry:
    """A registry with a queue sort, a binder and ``plugins``."""
    return Registry((Sort, Binder, *plugins))


def config(*profiles: dict[str, Any], **fields: Any) -> SchedulerConfig:
    return config_from({**HEAD, "profiles": list(profiles), **fields})


def profile(
    enabled: Sequence[str] = (), args: dict[str, Any] | None = None, **points: Any
) -> dict[str, Any]:
    """A profile that sorts, binds and has ``enabled`` at all points; ``args`` by instance."""
    multi_point = [{"name": name} for name in ("Sort", "Binder", *enabled)]
    return {
        "plugins": {"multiPoint": {"enabled": multi_point}, **points},
        "pluginConfig": [{"name": n, "args": a} for n, a in (args or {}).items()],
    }


def handles(registry: Registry) -> Any:
    """The function by which `build_profiles` makes handles."""

    def handle_for(profile_name: str, instance_name: str, plugin: type[Plugin]) -> Handle:
        return idle_handle(registry, profile_name, instance_name, plugin)

    return handle_for


def complaints(error: ConfigError) -> list[str]:
    return [str(problem) for problem in error.problems]


class MeanArgs(PluginArgs, frozen=True):
    score_from: tuple[Source, ...] = ()


class Mean(ScorePlugin):
    name = "Mean"
    args_type = MeanArgs

    def score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return sum(state.scores(name) for name in self.args.score_from) // 2


REGISTRY = registry(Both, Gate, Invert, Mean, NodeNameOrder)


def reads(name: str) -> dict[str, str]:
    return {"scoreFrom": name}
