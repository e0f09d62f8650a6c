"""A case's configuration and cluster, made with the scheduler's own classes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bayplan.config import ConfigError, config_from
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Status
from bayplan.metrics import Buckets
from bayplan.plugins.registry import Registry
from bayplan.profile.profiles import BuiltProfile, build_profiles
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.settings import QueueProfile, QueueRecorder, QueueSettings
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.question import ProfileUnderTest
from tests.parity.tally import Sheet

Json = dict[str, Any]

#: The plugins that exist here.
REGISTRY = Registry()
#: All gates are at their defaults.
NO_GATES: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class World:
    """A cluster with the profiles of one configuration over it."""

    cluster: SampleCluster
    built: Mapping[str, BuiltProfile]
    profiles: Mapping[str, ProfileUnderTest]

    def queue(self, clock: Callable[[], float], recorder: QueueRecorder) -> SchedulingQueue:
        """A real queue with the settings of kube-scheduler's default configuration."""
        profiles = {
            name: QueueProfile(each.plugins.pre_enqueue, each.queued_events, each.signer.part)
            for name, each in self.built.items()
        }
        sort = next(iter(self.built.values())).plugins.queue_sort
        return SchedulingQueue(profiles, QueueSettings(sort.key), clock, recorder)


class Remarks:
    """A queue's recorder that stores the hints that failed."""

    def __init__(self) -> None:
        #: (plugin, label of the event)
        self.failed: set[tuple[str, str]] = set()

    def pre_enqueue_observer(self, profile: str) -> Buckets:
        return Buckets([])

    def pre_enqueue_plugin_took(self, plugin: str, code: Code, seconds: float) -> None: ...

    def hint_took(self, plugin: str, event: str, answer: str, seconds: float) -> None: ...
    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None: ...
    def gated(self, pod: PodInfo, plugin: str, status: Status) -> None: ...
    def hint_failed(self, plugin: str, event: str, error: BaseException) -> None:
        self.failed.add((plugin, event))


def make_world(
    config: Json | None, kubernetes: KubernetesVersion, gates: Mapping[str, bool] = NO_GATES
) -> World:
    """An empty cluster under a configuration. ``gates``: those that are not at their defaults.
    Raises ConfigError."""
    cluster = SampleCluster(registry=REGISTRY, kubernetes=kubernetes, gates=gates)
    services = cluster.services

    def handle_for(profile: str, instance: str, plugin: type[Plugin]) -> Handle:
        return Handle(services, profile, instance, plugin.kinds)

    written = DEFAULT_CONFIG if config is None else config
    flag = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
    parsed = config_from(written, "", flag, kubernetes=kubernetes)
    built = {b.plugins.profile_name: b for b in build_profiles(parsed, REGISTRY, handle_for)}
    profiles = {name: ProfileUnderTest(each.plugins, cluster) for name, each in built.items()}
    cluster.frameworks.update({name: each.framework for name, each in profiles.items()})
    return World(cluster, built, profiles)


def compare_config(case: Json, sheet: Sheet) -> World | None:
    """Compare whether the configuration is refused. Returns None if either side refuses it."""
    config: Json | None = case.get("config")
    answers: Json = case.get("answers") or {}
    #: A version whose kube-scheduler panicked accepted the configuration by mistake.
    text: str | None = answers.get("configError", answers.get("PANIC"))
    recorded = text is not None
    try:
        world = make_world(config, sheet.kubernetes, case.get("gates") or {})
    except ConfigError as error:
        sheet.compare("configError", recorded, True, str(error))
        return None
    sheet.compare("configError", recorded, False)
    return None if recorded else world
