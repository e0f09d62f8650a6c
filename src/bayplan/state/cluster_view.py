"""The cluster as the scheduler knows it: what the API reported, and pods that are assumed.

The scheduling cycle reads a snapshot of it on loan. The loan ends before anything changes, so a
cycle never sees the cluster change under it.
"""

from collections.abc import Callable
from typing import final

from bayplan.api.pod_groups import BUILT_IN_KINDS, PodGroupKinds
from bayplan.state.cache import Cache
from bayplan.state.cluster_objects import ClusterObjects
from bayplan.state.device_table import Devices
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo
from bayplan.state.snapshot import Snapshot
from bayplan.state.volumes import Volumes


@final
class ClusterView:
    """Nodes, placed pods, pod groups and all other objects of one cluster."""

    def __init__(
        self,
        is_ours: Callable[[str], bool],
        group_kinds: PodGroupKinds = BUILT_IN_KINDS,
        *,
        has_taint_rules: bool = False,
        cache: Cache | None = None,
        objects: ClusterObjects | None = None,
    ) -> None:
        """``is_ours``: whether a scheduler name belongs to one of the profiles.

        ``has_taint_rules``: whether DeviceTaintRules count (gate DRADeviceTaintRules).
        """
        self.cache = Cache() if cache is None else cache
        #: All objects but pods and nodes; these, too, where a plugin looks them up.
        self.objects = ClusterObjects() if objects is None else objects
        #: The storage among ``objects``, with what is assumed of it.
        self.volumes = Volumes(self.cache.table, self.objects)
        self.devices = Devices(self.cache.table, self.objects, has_taint_rules=has_taint_rules)
        self.pod_groups = PodGroups(is_ours, group_kinds)
        #: The newest version of each pod that the API reported, by uid.
        self.pods: dict[str, PodInfo] = {}
        #: The snapshot that the present cycle reads; None between cycles.
        self.loan: Snapshot | None = None

    def lend(self) -> Snapshot:
        """Lend the cluster to a cycle."""
        self.loan = self.cache.lend()
        return self.loan

    def take_back(self) -> None:
        """End the loan, so that the cluster may change. Harmless if repeated."""
        if self.loan is not None:
            self.loan.end()
            self.loan = None

    def assume(self, placed: PodInfo) -> None:
        """Count a pod on its node before the API reports it there."""
        self.cache.assume(placed)
        if placed.group_key is not None:
            self.pod_groups.assume(placed)

    def forget(self, placed: PodInfo) -> None:
        """Undo `assume`."""
        self.cache.forget(placed)
        if placed.group_key is not None:
            self.pod_groups.forget(placed)
