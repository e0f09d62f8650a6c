"""What a plugin may use: the handle of its instance, and what the handle gives access to.

A plugin reads `self.handle`. Upstream: framework.Handle (k8s.io/kube-scheduler/framework, v1.37).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from bayplan.config.feature_gates import FeatureGates
from bayplan.framework.extender import Extender
from bayplan.framework.filter_runner import FilterRunner
from bayplan.framework.shared_devices import SharedDRAManager
from bayplan.framework.types import Nomination
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import BindPort, ObjectReference
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot
from bayplan.state.volumes import Volumes


class WaitingPod(Protocol):
    """A pod held at Permit."""

    @property
    def pod(self) -> PodInfo: ...
    @property
    def node_name(self) -> str: ...
    @property
    def pending_plugins(self) -> list[str]:
        """Instances that have not allowed it yet, sorted."""
        ...

    def allow(self, plugin: str) -> None:
        """One plugin agrees; when all have, the pod goes on to binding."""
        ...

    def reject(self, plugin: str, message: str) -> None:
        """Ends the wait: the pod is unschedulable by ``plugin``."""
        ...

    def preempt(self, plugin: str, message: str) -> bool:
        """Ends the wait with an error, so that the pod is tried again after a backoff. False: the
        wait was over."""
        ...


class PodInPreBind(Protocol):
    """A pod whose PreBind plugins run, or have run. Upstream: framework.PodInPreBind."""

    def cancel(self, message: str) -> bool:
        """The binding fails with this message, and the pod is tried again. False: PreBind has
        ended, and the binding goes on."""
        ...

    async def ended(self, port: BindPort) -> None:
        """Wait until PreBind has ended, also where it has not begun yet. Does not raise."""
        ...


class PodNominator(Protocol):
    """Who is nominated where. Upstream: framework.PodNominator."""

    def add_nominated_pod(self, pod: PodInfo, nomination: Nomination | None = None) -> None: ...
    def delete_nominated_pod_if_exists(self, pod: PodInfo) -> None: ...
    def update_nominated_pod(self, old: PodInfo, new: PodInfo) -> None: ...
    def nominated_pods_for_node(self, node_name: str) -> list[PodInfo]: ...

    def nominated_node(self, pod: PodInfo) -> str:
        """Where a pod is nominated to; "" for nowhere."""
        ...

    def nominated_nodes(self) -> list[str]:
        """Nodes that some pod is nominated to, sorted."""
        ...


class Objects(Protocol):
    """Read-only lister of one kind, kept current."""

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All, or those of one namespace, in order of their keys."""
        ...

    def get(self, name: str, namespace: str | None = None) -> Any | None: ...


class Handle(Protocol):
    """What a plugin may use besides its arguments."""

    extenders: Sequence[Extender]  #: In the order in which they are asked.
    #: By uid: pods that are being bound and that some PreBind plugin works for.
    pods_in_pre_bind: Mapping[str, PodInPreBind]

    @property
    def profile_name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def gates(self) -> FeatureGates: ...
    @property
    def now_seconds(self) -> float:
        """The scheduler's clock: virtual in a simulation."""
        ...

    @property
    def epoch_seconds(self) -> float:
        """The calendar's time, for time stamps in API objects."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The cluster on loan; valid inside a scheduling cycle only, raises elsewhere."""
        ...

    @property
    def nominator(self) -> PodNominator: ...
    @property
    def runner(self) -> FilterRunner: ...
    @property
    def devices(self) -> SharedDRAManager: ...
    @property
    def metrics(self) -> SchedulerMetrics:
        """What is counted; shared by all plugins."""
        ...

    def objects(self, kind: str) -> Objects:
        """Lister of a kind the plugin declares in `kinds`, e.g. "v1 Service".

        Pods and nodes, too, as the API has them; pods come as PodInfo.
        """
        ...

    @property
    def pod_groups(self) -> PodGroups:
        """Groups of pods with their members, of all kinds; to be read only."""
        ...

    @property
    def volumes(self) -> Volumes:
        """Claims, volumes and classes with what is assumed of them; for plugins that declare
        `STORAGE_KINDS` among their `kinds`. Outside a scheduling cycle, too."""
        ...

    def activate(self, pods: Iterable[PodInfo], at_seconds: float | None = None) -> None:
        """Try these pods now; remembered for one that is being tried, ignored if unknown.

        ``at_seconds``: not now, but when the scheduler's clock is there.
        """
        ...

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Pods held at Permit, ordered by uid."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None: ...
    def reject_waiting_pod(self, uid: str) -> bool: ...

    def make(self, name: str, args: Any = None) -> Any:
        """An instance of another plugin, for composition; its args are checked like any.

        Whoever made it closes it.
        """
        ...

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
        """An event about a pod: kind is Normal or Warning. ``related``: a second object."""
        ...

    def perform(self, subject: str, write: Callable[[BindPort], Awaitable[None]]) -> None:
        """Write from where nothing can be awaited; a refusal is noted under ``subject``."""
        ...
