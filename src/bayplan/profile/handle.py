"""The handle of a plugin instance. It is the same in a live cluster, a simulation and a test.

`filter_overlay` runs Filters for nodes as they would be without some pods, or with more. The
overlay has amounts of resources only (state/amounts_overlay.py), so it can be used only if no
Filter reads another value that depends on pods.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, final

from bayplan.clock import Clock
from bayplan.config.feature_gates import FeatureGates
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import (
    Extender,
    FilterKey,
    FilterRunner,
    PodInPreBind,
    SharedDRAManager,
    Verdicts,
    WaitingPod,
)
from bayplan.framework.plugin import FilterPlugin, Plugin
from bayplan.framework.runtime import Framework
from bayplan.framework.signing import (
    PodSignature,
    facets_read,
    followed_kinds,
    follows_from_objects,
)
from bayplan.framework.status import Status
from bayplan.framework.validation import failure_of
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import BindPort, EmitEvent, ObjectReference, pod_reference
from bayplan.queue.nominator import Nominator
from bayplan.state.amounts_overlay import OCCUPIED
from bayplan.state.cache import ClusterView, Snapshot
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.cluster_objects import KindObjects, UndeclaredKind
from bayplan.state.columns import all_true
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.volumes import STORAGE_KINDS, Volumes

# ---- filters without victims ----------------------------------------------------------------


_OCCUPIED_BITS = int(OCCUPIED)


def only_amounts_matter(framework: Framework, state: CycleState) -> bool:
    """Whether placed pods affect the Filters for this pod only through amounts of resources."""
    skipped, cached = frozenset(state.skip_filter_plugins), framework.only_amounts_matter
    answer = cached.get(skipped)
    if answer is None:
        answer = cached[skipped] = _only_amounts_matter(framework, skipped)
    return answer


def _only_amounts_matter(framework: Framework, skipped: frozenset[str]) -> bool:
    for plugin in framework.plugins.filter:
        if plugin.instance_name in skipped:
            continue
        if not isinstance(plugin, FilterPlugin) or plugin.scope != "row":
            return False
        if int(plugin.promises.facets) & _OCCUPIED_BITS:
            return False
    return True


def filter_key(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    objects: Callable[[str], Sequence[Any]],
    *,
    dependencies: "_Dependencies | None" = None,
) -> FilterKey | None:
    """See `FilterRunner.filter_key`. ``objects``: returns all objects of a kind.

    ``dependencies``: a cached form of `_dependencies`.
    """
    if not framework.plugins.reuse_bytes_max:
        return None
    signature, skipped = framework.sign_pod(pod), frozenset(state.skip_filter_plugins)
    depends_on = (dependencies or _dependencies)(framework, signature, skipped)
    if depends_on is None:
        return None
    facet_bits, kinds = depends_on
    return FilterKey((signature, skipped), facet_bits, tuple(map(objects, kinds)))


_Dependencies = Callable[
    [Framework, PodSignature, frozenset[str]], tuple[int, Sequence[str]] | None
]


def _dependencies(
    framework: Framework, signature: PodSignature, skipped: frozenset[str]
) -> tuple[int, Sequence[str]] | None:
    """(facets of a row as bits, kinds of objects) on which the results of the Filters depend for
    pods of this signature. None: a Filter does not sign such pods."""
    facet_bits, kinds = 0, set[str]()
    for plugin in framework.plugins.filter:
        if plugin.instance_name in skipped:
            continue
        part = signature.parts.get(plugin.instance_name)
        if part is None:
            return None
        facet_bits |= int(facets_read(plugin, part))
        if follows_from_objects(plugin, part):
            kinds.update(followed_kinds(plugin))
    return facet_bits, sorted(kinds)


def filter_overlay(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
    *,
    reading: Facet = ALL_FACETS,
) -> FilterOutcome:
    """Evaluate Filter for each node of an overlay. Nominated pods do not count.

    ``reading``: only plugins that read one of these facets are evaluated.
    """
    outcome = FilterOutcome(nodes, all_true(len(nodes)))
    # Integers, because arithmetic with flags is slow.
    facet_bits, filters = int(reading), framework.plugins.filter
    reads = [p.instance_name for p in filters if int(p.promises.facets) & facet_bits]
    for name, ask in framework.calls(state, pod).filter:
        if name not in reads or name in state.skip_filter_plugins:
            continue
        try:
            outcome.add(name, ask(state, pod, nodes, outcome.feasible))
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            outcome.error = failure_of(name, "Filter", problem)
        if outcome.is_settled:
            break
    return outcome


# ---- the handle of an instance --------------------------------------------------------------


#: Writes something through the port; see Handle.perform.
Write = Callable[[BindPort], Awaitable[None]]


class SnapshotNotLent(RuntimeError):
    """A plugin read the snapshot outside a scheduling cycle."""

    def __init__(self, plugin: str) -> None:
        super().__init__(
            f"plugin {plugin} read handle.snapshot outside a scheduling cycle: it is lent from "
            f"PreFilter to Permit only; hints and PreEnqueue read handle.objects(kind)"
        )


class WaitingPodIndex(Protocol):
    """The pods at Permit."""

    def all(self) -> Sequence[WaitingPod]:
        """In the order of their uids."""
        ...

    def get(self, uid: str) -> WaitingPod | None: ...


class HandleServices(Protocol):
    """The parts and actions of a scheduler that handles use."""

    @property
    def seed(self) -> int: ...
    @property
    def gates(self) -> FeatureGates: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def metrics(self) -> SchedulerMetrics: ...
    @property
    def cluster(self) -> ClusterView: ...
    @property
    def devices(self) -> SharedDRAManager: ...
    @property
    def nominator(self) -> Nominator: ...
    @property
    def extenders(self) -> Iterable[Extender]: ...
    @property
    def frameworks(self) -> Mapping[str, Framework]: ...
    @property
    def waiting(self) -> WaitingPodIndex: ...
    @property
    def pods_in_pre_bind(self) -> Mapping[str, PodInPreBind]: ...
    def make_plugin(self, name: str, args: Any, handle: "PluginHandle") -> Plugin: ...
    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None) -> None: ...
    def emit(self, pod: PodInfo, event: EmitEvent) -> None: ...
    def perform(self, subject: str, write: Write, plugin: str) -> None: ...


@final
class PluginHandle:
    """framework.handle.Handle for one instance."""

    def __init__(
        self,
        services: HandleServices,
        profile_name: str,
        instance_name: str,
        kinds: tuple[str, ...],
    ) -> None:
        self._services = services
        self._profile_name = profile_name
        self.instance_name = instance_name
        self._kinds = kinds
        self.gates = services.gates
        self.metrics = services.metrics
        self.extenders: Sequence[Extender] = tuple(services.extenders)
        self.pods_in_pre_bind = services.pods_in_pre_bind
        #: The plugins that `make` returned, in order: see framework/calls.py.
        self.made: list[Plugin] = []
        self._runner = _Runner(services, self)

    @property
    def profile_name(self) -> str:
        return self._profile_name

    @property
    def seed(self) -> int:
        return self._services.seed

    @property
    def now_seconds(self) -> float:
        return self._services.clock.now()

    @property
    def epoch_seconds(self) -> float:
        return self._services.clock.epoch_seconds()

    @property
    def snapshot(self) -> Snapshot:
        snapshot = self._services.cluster.loan
        if snapshot is None:
            raise SnapshotNotLent(self.instance_name)
        return snapshot

    @property
    def nominator(self) -> Nominator:
        return self._services.nominator

    @property
    def runner(self) -> FilterRunner:
        return self._runner

    @property
    def devices(self) -> SharedDRAManager:
        return self._services.devices

    def objects(self, kind: str) -> KindObjects:
        if kind not in self._kinds:
            raise UndeclaredKind(kind, self.instance_name)
        return self._services.cluster.objects.of(kind)

    @property
    def pod_groups(self) -> PodGroups:
        return self._services.cluster.pod_groups

    @property
    def volumes(self) -> Volumes:
        for kind in STORAGE_KINDS:
            if kind not in self._kinds:
                raise UndeclaredKind(kind, self.instance_name)
        return self._services.cluster.volumes

    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None = None) -> None:
        self._services.activate(pods, at_seconds)

    def waiting_pods(self) -> Sequence[WaitingPod]:
        return self._services.waiting.all()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self._services.waiting.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        waiting = self._services.waiting.get(uid)
        if waiting is not None:
            waiting.reject(self.instance_name, "removed")
        return waiting is not None

    def make(self, name: str, args: Any = None) -> Plugin:
        part = self._services.make_plugin(name, args, self)
        self.made.append(part)
        return part

    def inside(self, plugin: type[Plugin], name: str) -> "PluginHandle":
        """The handle of a part, with a name and kinds of its own."""
        number = f"#{len(self.made) + 1}" if self.made else ""
        full_name = f"{self.instance_name}.{name}{number}"
        return PluginHandle(self._services, self._profile_name, full_name, plugin.kinds)

    def emit(
        self,
        regarding: PodInfo,
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: ObjectReference | None = None,
    ) -> None:
        reference, reporter = pod_reference(regarding), self._profile_name
        event = EmitEvent(reference, kind, reason, action, note, reporter, related)
        self._services.emit(regarding, event)

    def perform(self, subject: str, write: Write) -> None:
        self._services.perform(subject, write, self.instance_name)


@final
class _Runner:
    """framework.handle.FilterRunner over the profile's framework and the lent snapshot.

    Both are looked up at each call, because a plugin may store the runner at its start.
    """

    def __init__(self, services: HandleServices, handle: PluginHandle) -> None:
        self._services = services
        self._handle = handle
        self._dependencies: _Dependencies = lru_cache(maxsize=64)(_dependencies)

    @property
    def _framework(self) -> Framework:
        return self._services.frameworks[self._handle.profile_name]

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        snapshot = self._handle.snapshot
        return self._framework.filter_with_nominated(state, pod, snapshot, node_name)

    def nominated_ahead(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        return self._framework.nominated_ahead(pod, node_name)

    def only_amounts_matter(self, state: CycleState) -> bool:
        return only_amounts_matter(self._framework, state)

    def filter_key(self, state: CycleState, pod: PodInfo) -> FilterKey | None:
        objects = self._services.cluster.objects.of
        return filter_key(
            self._framework,
            state,
            pod,
            lambda kind: objects(kind).list(),
            dependencies=self._dependencies,
        )

    def filter_overlay(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, reading: Facet = ALL_FACETS
    ) -> Verdicts:
        return filter_overlay(self._framework, state, pod, nodes, reading=reading)

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        return self._framework.run_add_pod(state, pod, added, node)

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        return self._framework.run_remove_pod(state, pod, removed, node)
