"""A small cluster for tests: the state of a scheduler, without a scheduler.

A `SampleCluster` holds nodes, placed pods and other objects, and lends them as a scheduling cycle
does. It stands in for the engine behind the `Handle` of plugins: they see its clock, its
nominations and its objects, and it records the actions that they request (activate, emit).

`plugin` makes one plugin over such a cluster, with its args checked as in a configuration.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, final

from msgspec.structs import replace

from bayplan.api.objects import (
    NAMESPACE,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    Node,
    decode,
)
from bayplan.clock import ManualClock
from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.engine.waiting import WaitingPods
from bayplan.framework.cluster_rules import device_rules, group_rules
from bayplan.framework.handle import (
    Extender,
    Handle,
    HandleServices,
    PodInPreBind,
    SharedDRAManager,
    Write,
)
from bayplan.framework.plugin import Plugin
from bayplan.framework.runtime import Framework
from bayplan.metrics import SchedulerMetrics
from bayplan.objects.object_store import KindObjects
from bayplan.plugins.registry import Registry
from bayplan.ports import EmitEvent
from bayplan.problems import ConfigError
from bayplan.profile.filter_runner import ProfileFilters
from bayplan.profile.profiles import make_plugin
from bayplan.profile.resolved_config import checked_args
from bayplan.queue.nominator import Nominator
from bayplan.rng import stream
from bayplan.state.cache import ClusterView, Snapshot
from bayplan.state.pods import PodInfo
from bayplan.testing.factories import node, pod
from bayplan.testing.generators import NAMESPACES, Draws, Vocabulary, draw_node, draw_placed_pod

PROFILE = "default-scheduler"


@final
class SampleCluster:
    """Nodes, placed pods, other objects, and everything a plugin's handle needs."""

    def __init__(
        self,
        *,
        seed: int = 0,
        registry: Registry | None = None,
        gates: Mapping[str, bool] | None = None,
        kubernetes: KubernetesVersion = NEWEST,
        devices: SharedDRAManager | None = None,
        extenders: Sequence[Extender] = (),
    ) -> None:
        """``gates``: those that differ from the defaults of the version.

        ``devices``: the manager that plugins see in place of the cluster's own.
        """
        self.seed = seed
        defaults = default_gates(kubernetes)
        self.gates = replace(defaults, values={**defaults.values, **(gates or {})})
        self.cluster = ClusterView(
            lambda _: True,
            device_rules=device_rules(self.gates),
            group_rules=group_rules(self.gates),
        )
        self.cache = self.cluster.cache
        self.clock = ManualClock()
        self.nominator = Nominator()
        self.store = self.cluster.objects
        self.volumes = self.cluster.volumes
        self.devices = self.cluster.devices if devices is None else devices
        #: Profile name → its plugins, for plugins that run others (`handle.runner`).
        self.frameworks: dict[str, Framework] = {}
        self.waiting = WaitingPods()
        self.pods_in_pre_bind: dict[str, PodInPreBind] = {}
        self.pod_groups = self.cluster.pod_groups
        self.metrics = SchedulerMetrics()
        #: Actions that plugins requested.
        self.activated: list[PodInfo] = []
        #: (seconds, pods) of activations at a later time.
        self.activated_later: list[tuple[float, PodInfo]] = []
        self.emitted: list[EmitEvent] = []
        self.writes: list[tuple[str, Write]] = []
        #: What the handle of a plugin takes: ``Handle(cluster.services, …)``.
        self.services = HandleServices(
            filter_runner=partial(ProfileFilters, self.cluster, self.frameworks),
            make_plugin=partial(make_plugin, registry if registry is not None else Registry()),
            activate=self._activate,
            emit=lambda _, event: self.emitted.append(event),
            perform=lambda subject, write, _: self.writes.append((subject, write)),
            cluster=self.cluster,
            devices=self.devices,
            gates=self.gates,
            seed=seed,
            clock=self.clock,
            metrics=self.metrics,
            extenders=extenders,
            nominator=self.nominator,
            waiting=self.waiting.by_uid,
            pods_in_pre_bind=self.pods_in_pre_bind,
        )

    # ---- filling --------------------------------------------------------------------------

    def add(self, *added: Node | PodInfo) -> "SampleCluster":
        """Nodes, and pods that are on a node. Ends the present loan."""
        self.take_back()
        for each in added:
            if isinstance(each, PodInfo):
                assert each.node_name, f"{each!r} is on no node: give it one with node="
                self.cache.add_pod(each)
            else:
                self.cache.add_node(each)
        return self

    def put(self, kind: str, *contents: Mapping[str, Any]) -> "SampleCluster":
        """Objects of another kind as in a manifest: ``put("v1 Service", {"metadata": …})``."""
        for content in contents:
            self.store.of(kind).put(decode(kind, dict(content)))
        return self

    # ---- lending --------------------------------------------------------------------------

    def lend(self) -> Snapshot:
        """The snapshot of the next cycle. Ends the loan before it."""
        self.take_back()
        return self.cluster.lend()

    def take_back(self) -> None:
        """End the present loan: its views raise from now on."""
        self.cluster.take_back()

    @property
    def lent_snapshot(self) -> Snapshot | None:
        """The present loan."""
        return self.cluster.loan

    # ---- reading --------------------------------------------------------------------------

    def framework(self, profile_name: str) -> Framework:
        return self.frameworks[profile_name]

    def objects(self, kind: str) -> KindObjects[Any]:
        return self.store.of(kind)

    def _activate(self, pods: Iterable[PodInfo], at_seconds: float | None) -> None:
        if at_seconds is None:
            self.activated += pods
        else:
            self.activated_later += ((at_seconds, pod) for pod in pods)


def cluster(
    nodes: int | Sequence[Node] = 10,
    pods: int | Sequence[PodInfo] = 20,
    *,
    seed: int = 1,
    vocabulary: Vocabulary | None = None,
) -> SampleCluster:
    """Given nodes and placed pods, or as many drawn ones: ``cluster(nodes=50, pods=100, seed=1)``.

    With drawn nodes or pods, the cluster also has two namespaces, and a Service, a ReplicaSet and a
    StatefulSet that select some of the pods. Drawn pods are placed, whether they fit or not.
    """
    draws = Draws(stream(seed, "cluster"), vocabulary or Vocabulary())
    sample = SampleCluster(seed=seed)
    if isinstance(nodes, int) or isinstance(pods, int):
        _put_owners(sample)
    if isinstance(nodes, int):
        nodes = [node(f"node-{index}", **draw_node(draws)) for index in range(nodes)]
    sample.add(*nodes)
    if isinstance(pods, int):
        names = [each.metadata.name for each in nodes]
        count = pods if names else 0
        drawn = [pod(f"placed-{index}", **draw_placed_pod(draws)) for index in range(count)]
        pods = [each.on_node(draws.one(names)) for each in drawn]
    return sample.add(*pods)


def _put_owners(sample: SampleCluster) -> None:
    for name, team in zip(NAMESPACES, "ab", strict=True):
        sample.put(NAMESPACE, {"metadata": {"name": name, "labels": {"team": team}}})
    metadata = {"name": "web", "namespace": NAMESPACES[0]}
    sample.put(SERVICE, {"metadata": metadata, "spec": {"selector": {"app": "web"}}})
    for kind, app in ((REPLICA_SET, "db"), (STATEFUL_SET, "cache")):
        selector = {"matchLabels": {"app": app}}
        sample.put(kind, {"metadata": metadata, "spec": {"selector": selector}})


def handle_for(cluster: SampleCluster, plugin: type[Plugin], name: str) -> Handle:
    """The handle that the engine would give to an instance of a class."""
    return Handle(cluster.services, PROFILE, name, plugin.kinds)


def handle(
    cluster: SampleCluster | None = None, *, kinds: Sequence[str] = (), name: str = "test"
) -> Handle:
    """A plugin's handle over a cluster, or over an empty one.

    ``kinds``: the kinds that ``handle.objects`` accepts, as the plugin class declares them.
    """
    return Handle((cluster or SampleCluster()).services, PROFILE, name, tuple(kinds))


P = TypeVar("P", bound=Plugin)


def plugin(
    plugin_class: type[P],
    args: Any = None,
    *,
    cluster: SampleCluster | None = None,
    handle: Handle | None = None,
    instance_name: str | None = None,
) -> P:
    """An instance: ``plugin(LabelScore, {"label": "price"}, cluster=cluster(nodes=5))``.

    ``args``: plain values as in pluginConfig, or the plugin's own struct. Raises ConfigError with
    all their errors. Without ``handle``, the plugin gets a handle over ``cluster``, or over an
    empty cluster.
    """
    gates = None if cluster is None else cluster.gates
    checked, problems = checked_args(plugin_class, {} if args is None else args, gates)
    if problems:
        raise ConfigError(problems, plugin_class.name)
    name = instance_name or plugin_class.name
    if handle is None:
        handle = handle_for(cluster or SampleCluster(), plugin_class, name)
    return plugin_class(checked, handle, name)
