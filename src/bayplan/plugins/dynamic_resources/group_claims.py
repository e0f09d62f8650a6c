"""Claims that the pods of a group share: gate DRAWorkloadResourceClaims.

A PodGroup lists claims. An entry of a pod's resourceClaims that equals an entry of its group in all
fields names a claim of the group. The claim belongs to the group if it was made from a template. It
is reserved for the group and not for each of its pods, so it has one user however many pods use it.

The first member of a pass over the group allocates a claim, and the allocation is written when that
member is bound. `allocated_in_pass` has the claims that members of the same pass have allocated.
Later members go to nodes that can use these devices. Pods outside the pass wait for the write.

Upstream: dynamic-resource-allocation/resourceclaim (BindTo, IsForPod, IsReservedForPod), and
podGroupStateData in dynamicresources.go.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from bayplan.api.device_objects import ConsumerReference, ResourceClaim
from bayplan.api.object_meta import controller_of
from bayplan.api.pod_groups import UPSTREAM_GROUP, PodGroup, PodGroupResourceClaim, group_entry
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Status, unresolvable
from bayplan.state.pod_groups import PodGroups
from bayplan.state.pods import PodInfo

NO_GROUP: Final = "pod group object not found for pod group podgroup/{}/{}"
UNSUPPORTED: Final = "PodGroup {}/{} claim {}: none of the supported fields are set"

_KEY: Final = "DynamicResources"


def group_name_of(pod: PodInfo) -> str:
    """The PodGroup that a pod's spec names; "": none."""
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def is_owned_by_group(claim: ResourceClaim, name: str) -> bool:
    """Whether the claim was made for the PodGroup of this name in its namespace."""
    owner = controller_of(claim.metadata)
    if owner is None or not owner.api_version.startswith(f"{UPSTREAM_GROUP}/"):
        return False
    return (owner.kind, owner.name) == ("PodGroup", name)


def is_reserved(claim: ResourceClaim, pod: PodInfo, *, has_group_claims: bool) -> bool:
    """Whether the pod, or its group with the feature, is among the users of the claim."""
    if claim.is_reserved_for(pod.uid):
        return True
    name = group_name_of(pod) if has_group_claims else ""
    return bool(name) and claim.is_reserved_for_group(name)


def pod_as_user(pod: PodInfo) -> ConsumerReference:
    return ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def users_of_claims(pod: PodInfo, groups: PodGroups) -> Sequence[ConsumerReference] | Status:
    """The object that each entry of the pod's resourceClaims is reserved for; or a text that says
    why it is not known yet."""
    name = group_name_of(pod)
    if not name:
        return [pod_as_user(pod) for _ in pod.spec.resource_claims or ()]
    state = groups.of(pod)
    group = None if state is None or not state.is_upstream else state.group
    if group is None:
        return unresolvable(NO_GROUP.format(pod.namespace, name))
    shared = set[PodGroupResourceClaim]()
    for each in group.resource_claims:
        if each.resource_claim_name is None and each.resource_claim_template_name is None:
            return unresolvable(UNSUPPORTED.format(pod.namespace, name, each.name))
        shared.add(each)
    own, of_group = pod_as_user(pod), _as_user(group)
    return [
        of_group if group_entry(named) in shared else own
        for named in pod.spec.resource_claims or ()
    ]


def _as_user(group: PodGroup) -> ConsumerReference:
    return ConsumerReference(
        api_group=UPSTREAM_GROUP,
        resource="podgroups",
        name=group.metadata.name,
        uid=group.metadata.uid or "",
    )


# ---- one pass -------------------------------------------------------------------------------


def allocated_in_pass(state: CycleState) -> set[str]:
    """The uids of claims that members of the present pass have allocated. Without a pass, it is a
    set that nobody reads."""
    if state.group_notes is None:
        return set()
    return cast(set[str], state.group_notes.setdefault(_KEY, set[str]()))


def claim_names_of(group: PodGroup) -> Iterator[str]:
    """The names of the claims that the group lists and that exist."""
    made = {
        each.name: each.resource_claim_name for each in group.status.resource_claim_statuses or ()
    }
    for each in group.resource_claims:
        name = each.resource_claim_name or made.get(each.name)
        if name is not None:
            yield name
