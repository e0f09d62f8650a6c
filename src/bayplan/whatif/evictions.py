"""Pods that leave their nodes: which of them are created again, and which a disruption budget
protects.

A replacement is a pod with the spec of the pod that goes. It counts as ready once it has a node, so
a budget that allows a disruption allows one for each pod in turn; a budget that allows none blocks.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, final

from msgspec.structs import replace

from bayplan.adapters.embedded.disruption_budgets import ignores_budgets, may_go_unready
from bayplan.answers.document import Value
from bayplan.api import objects
from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim, ResourceClaimStatus
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.selectors import Selector, SelectorError, label_selector
from bayplan.api.storage_objects import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.workloads import controller_kind, is_bound_to_node, is_mirror
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.storage_infos import ClaimInfo

#: Annotations about the volume of a claim.
_BINDING = ("pv.kubernetes.io/", "volume.kubernetes.io/")


# ---- the answer ----------------------------------------------------------------------------


@final
class LeftOver(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that waits and does not fit."""

    #: The pod, "namespace/name"; for a replacement, the name of the pod that goes.
    pod: str
    #: The node that it left; "": it had none.
    source: str = ""
    #: The sentence that kube-scheduler writes into the condition PodScheduled of the pod that
    #: waits, or what the plugin says that holds the pod back.
    message: str
    #: The name of the pod that waits in its place, if it has another name.
    replacement: str = ""


@final
class BlockedPod(Value, frozen=True, kw_only=True):
    """A pod whose eviction a budget does not allow."""

    pod: str
    #: Names of the budgets, in the pod's namespace.
    budgets: tuple[str, ...]
    message: str


# ---- budgets -------------------------------------------------------------------------------


@dataclass(slots=True)
class Budget:
    name: str
    selector: Selector
    allowed: int
    content: PodDisruptionBudget


@final
class Budgets:
    """How many disruptions each budget allows now."""

    def __init__(self, model: ClusterModel) -> None:
        self._by_namespace: dict[str, list[Budget]] = defaultdict(list)
        for each in model.objects(POD_DISRUPTION_BUDGET):
            budget = cast(PodDisruptionBudget, each)
            try:
                selector = label_selector(budget.spec.selector)
            except SelectorError:
                continue  # This selector selects nothing.
            allowed = budget.status.disruptions_allowed
            own = Budget(budget.metadata.name, selector, allowed, budget)
            self._by_namespace[budget.metadata.namespace or ""].append(own)
        self._of_shape: dict[int, tuple[PodShape, list[Budget]]] = {}

    def of(self, pod: PodInfo) -> list[Budget]:
        """The budgets that select a pod."""
        entry = self._of_shape.get(id(pod.shape))
        if entry is None:
            labels = pod.labels
            all_of_namespace = self._by_namespace.get(pod.namespace, ())
            selecting = [one for one in all_of_namespace if one.selector.matches(labels)]
            entry = self._of_shape[id(pod.shape)] = pod.shape, selecting
        return entry[1]


def blocked_by(
    pod: PodInfo, budgets: Sequence[Budget], used: Mapping[str, int]
) -> BlockedPod | None:
    """Why a pod cannot be evicted now. ``used``: the disruptions that have not ended, by budget.

    Upstream: pkg/registry/core/pod/storage/eviction.go.
    """
    if not budgets or ignores_budgets(pod.pod):
        return None
    names = tuple(budget.name for budget in budgets)
    if len(budgets) > 1:
        message = "several budgets select the pod, which the eviction API does not support"
        return BlockedPod(pod=pod.key, budgets=names, message=message)
    [budget] = budgets
    if may_go_unready(pod.pod, budget.content):
        return None
    if budget.allowed - used.get(f"{pod.namespace}/{budget.name}", 0) > 0:
        return None
    message = f"budget {pod.namespace}/{budget.name} allows no disruption"
    return BlockedPod(pod=pod.key, budgets=names, message=message)


# ---- replacements ---------------------------------------------------------------------------


def recreated(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """The pods that a controller creates again."""
    return [
        pod for pod in pods if controller_kind(pod.metadata) and not is_bound_to_node(pod.metadata)
    ]


def replacement(pod: PodInfo, suffix: str = "") -> objects.Pod:
    """The pod that a controller creates for one that goes: pending, with the same spec.

    It has the same name, so that the claims of its volumes are those of the pod that goes.
    """
    metadata = replace(
        pod.metadata,
        name=f"{pod.name}{suffix}",
        uid=None,
        resource_version=None,
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
    )
    return objects.Pod(metadata=metadata, spec=pod.spec, declared=dict(pod.declared))


def create_again(model: ClusterModel, pod: PodInfo, *, uid: str | None = None) -> None:
    """Add the replacement of a pod that was removed, with its claims for devices.

    ``uid``: the uid of the replacement; None: the model chooses one. The devices that the pod alone
    had become free. A claim that was made for the pod is made again.
    """
    created = replacement(pod)
    has_own_volumes = any(each.ephemeral for each in pod.spec.volumes or ())
    has_devices = pod.spec.resource_claims or pod.status.extended_resource_claim_status
    if has_devices or has_own_volumes:
        uid = uid or f"again-{pod.uid}"
        statuses = pod.status.resource_claim_statuses
        created = replace(created, status=replace(created.status, resource_claim_statuses=statuses))
        release_claims(model, pod, uid)
    model.add(objects.POD, replace(created, metadata=replace(created.metadata, uid=uid)))


def release_claims(model: ClusterModel, pod: PodInfo, new_uid: str = "") -> None:
    """Free the devices of a pod that was removed, unless other pods use them, and the claims of its
    ephemeral volumes.

    ``new_uid``: the uid of the replacement, which gets the claims that were made for the pod; "":
    there is no replacement, and the claims are deleted.
    """
    generated = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
    }
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or generated.get(entry.name)
        claim = model.get(RESOURCE_CLAIM, pod.namespace, name) if name else None
        if not isinstance(claim, ResourceClaim):
            continue
        owners = claim.metadata.owner_references or ()
        if not new_uid and any(owner.uid == pod.uid for owner in owners):
            model.remove(RESOURCE_CLAIM, pod.namespace, claim.metadata.name)
        else:
            model.replace(RESOURCE_CLAIM, _released(claim, pod.uid, new_uid))
    for volume in pod.spec.volumes or ():
        key = (objects.PERSISTENT_VOLUME_CLAIM, pod.namespace, f"{pod.name}-{volume.name}")
        made = model.get(*key) if volume.ephemeral is not None else None
        if isinstance(made, PersistentVolumeClaim):
            if new_uid:
                again = without_late_volume(model, made)
                metadata = _with_owner(again.metadata, pod.uid, new_uid)
                model.replace(objects.PERSISTENT_VOLUME_CLAIM, replace(again, metadata=metadata))
            else:
                model.remove(*key)
    implicit = pod.status.extended_resource_claim_status
    name = None if implicit is None else implicit.resource_claim_name
    if name and model.get(RESOURCE_CLAIM, pod.namespace, name) is not None:
        # The scheduler makes another claim for the replacement.
        model.remove(RESOURCE_CLAIM, pod.namespace, name)


def _released(claim: ResourceClaim, uid: str, new_uid: str) -> ResourceClaim:
    """A claim after one user has left. Its devices are free unless it has other users. A claim that
    was generated for the pod is generated again."""
    users = tuple(user for user in claim.status.reserved_for or () if user.uid != uid)
    status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
    return replace(claim, metadata=_with_owner(claim.metadata, uid, new_uid), status=status)


def _with_owner(metadata: objects.ObjectMeta, uid: str, new_uid: str) -> objects.ObjectMeta:
    """The metadata with the pod of the new uid as the owner, in place of the pod of the old uid."""
    owners = tuple(
        replace(owner, uid=new_uid) if owner.uid == uid else owner
        for owner in metadata.owner_references or ()
    )
    return replace(metadata, owner_references=owners)


def without_late_volume(model: ClusterModel, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim of an ephemeral volume as it is created again: without a volume, if one is
    provisioned when the pod has a node."""
    name = ClaimInfo(claim).class_name
    storage_class = model.get(objects.STORAGE_CLASS, "", name) if name else None
    if (
        not isinstance(storage_class, StorageClass)
        or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER
    ):
        return claim
    kept = {
        key: value
        for key, value in (claim.metadata.annotations or {}).items()
        if not key.startswith(_BINDING)
    }
    metadata = replace(claim.metadata, annotations=kept or None)
    return replace(claim, metadata=metadata, spec=replace(claim.spec, volume_name=None))


def is_evicted(pod: PodInfo) -> bool:
    """Whether a drain evicts a pod. The pod must not go with its node, must run, and must not be
    being deleted. A drain evicts pods without a controller only if it is forced to."""
    stays = is_bound_to_node(pod.metadata) or is_mirror(pod.metadata)
    return not (stays or pod.is_terminating or objects.is_terminal(pod.pod))
