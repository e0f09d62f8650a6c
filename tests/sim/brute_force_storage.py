"""Whether the volumes and devices of a pod are within a node's reach, from the JSON of API objects.

The second half of `brute_force`. It covers what the drawn worlds contain: claims that are bound,
wait for their pod or have a volume made for them; CSI drivers with a limit; claims to devices of
one node, one request each, without selectors.

Upstream: plugins/volumebinding, nodevolumelimits, volumerestrictions, dynamicresources.
"""

from collections.abc import Iterator

from bayplan.api.device_objects import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from tests.sim.brute_force import (
    RULES,
    Content,
    Key,
    Picture,
    Placed,
    holds,
    is_terminating,
    key_of,
    labels_of,
    selects_node,
    thousandths,
    uid_of,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"

#: (driver, pool, device)
Device = tuple[str, str, str]


def claim_keys(pod: Content) -> list[Key]:
    """The PersistentVolumeClaims that a pod names."""
    named = (each.get("persistentVolumeClaim") for each in pod["spec"].get("volumes") or ())
    return [(key_of(pod)[0], each["claimName"]) for each in named if each is not None]


def volumes(picture: Picture, pod: Content, node: Content) -> str:
    """VolumeBinding and VolumeZone: each claim has a volume that the node reaches, or can get one
    on the node."""
    for key in claim_keys(pod):
        claim = picture.kind(PERSISTENT_VOLUME_CLAIM).get(key)
        if claim is None or is_terminating(claim):
            return f"claim {key[1]} is not there"
        why = _bound(picture, claim, node) if _volume_name(claim) else _free(picture, claim, node)
        if why:
            return why
    return ""


def _volume_name(claim: Content) -> str:
    return claim["spec"].get("volumeName") or ""


def _bound(picture: Picture, claim: Content, node: Content) -> str:
    name = _volume_name(claim)
    volume = picture.kind(PERSISTENT_VOLUME).get(("", name))
    if volume is None:
        return f"volume {name} is not there"
    return "" if _reaches(volume, node) else f"volume {name} is out of the node's reach"


def _reaches(volume: Content, node: Content) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects_node(required, node)


def _free(picture: Picture, claim: Content, node: Content) -> str:
    """Whether a claim without a volume can get one: "" if it can, or the reason."""
    name = claim["spec"].get("storageClassName") or ""
    storage_class = picture.kind(STORAGE_CLASS).get(("", name))
    if storage_class is None or storage_class.get("volumeBindingMode") != WAITS:
        return f"claim {key_of(claim)[1]} is bound at once, and not yet"
    if any(_may_hold(volume, claim, node) for volume in picture.kind(PERSISTENT_VOLUME).values()):
        return ""
    if storage_class["provisioner"] == NO_PROVISIONER:
        return f"no volume for claim {key_of(claim)[1]}"
    return "" if _is_allowed(storage_class, node) else f"class {name} makes no volumes there"


def _may_hold(volume: Content, claim: Content, node: Content) -> bool:
    spec, request = volume["spec"], claim["spec"]
    owner = spec.get("claimRef")
    is_its = (
        owner is not None
        and (owner.get("namespace"), owner["name"]) == key_of(claim)
        and owner.get("uid") in (None, "", uid_of(claim))
    )
    is_free = owner is None and (volume.get("status") or {}).get("phase") == "Available"
    return (
        (is_free or is_its)
        and not is_terminating(volume)
        and spec.get("storageClassName") == request.get("storageClassName")
        and set(request["accessModes"]) <= set(spec["accessModes"])
        and thousandths(spec["capacity"]["storage"])
        >= thousandths(request["resources"]["requests"]["storage"])
        and _reaches(volume, node)
    )


def _is_allowed(storage_class: Content, node: Content) -> bool:
    allowed = storage_class.get("allowedTopologies")
    return not allowed or any(
        all(
            holds({**each, "operator": "In"}, labels_of(node))
            for each in term["matchLabelExpressions"]
        )
        for term in allowed
    )


def one_pod(picture: Picture, pod: Content, node: Content) -> str:
    """VolumeRestrictions: a ReadWriteOncePod claim has one user."""
    for key in claim_keys(pod):
        claim = picture.kind(PERSISTENT_VOLUME_CLAIM).get(key)
        if claim is None or ONE_POD not in claim["spec"]["accessModes"]:
            continue
        for each in picture.placed.values():
            if each.pod is not pod and key in claim_keys(each.pod):
                return f"claim {key[1]} is in use by {'/'.join(key_of(each.pod))}"
    return ""


def attach_limits(picture: Picture, pod: Content, node: Content) -> str:
    """NodeVolumeLimits: a driver attaches no more volumes than its limit. Claims without a volume
    count, too."""
    name = node["metadata"]["name"]
    limits = _limits(picture, name)
    here = {key for each in picture.occupants(name) for key in claim_keys(each)}
    for driver, limit in limits.items():
        attached = {key for key in here if _driver(picture, key) == driver}
        new = {key for key in claim_keys(pod) if _driver(picture, key) == driver} - attached
        if new and len(attached) + len(new) > limit:
            return f"{driver} attaches {limit} volumes, and has {len(attached)}"
    return ""


def _limits(picture: Picture, node_name: str) -> dict[str, int]:
    csi_node = picture.kind(CSI_NODE).get(("", node_name))
    drivers = [] if csi_node is None else csi_node["spec"].get("drivers") or []
    counts = ((each["name"], (each.get("allocatable") or {}).get("count")) for each in drivers)
    return {name: count for name, count in counts if count is not None}


def _driver(picture: Picture, key: Key) -> str:
    """The driver that attaches the current or future volume of a claim."""
    claim = picture.kind(PERSISTENT_VOLUME_CLAIM).get(key)
    if claim is None:
        return ""
    volume = picture.kind(PERSISTENT_VOLUME).get(("", _volume_name(claim)))
    if volume is not None:
        return (volume["spec"].get("csi") or {}).get("driver") or ""
    name = claim["spec"].get("storageClassName") or ""
    storage_class = picture.kind(STORAGE_CLASS).get(("", name))
    return "" if storage_class is None or _volume_name(claim) else storage_class["provisioner"]


# ---- devices ------------------------------------------------------------------------------


def device_claim_names(pod: Content) -> Iterator[str | None]:
    """The ResourceClaims of a pod; None: the claim does not exist yet."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    generated_names = {each["name"]: each.get("resourceClaimName") for each in statuses}
    for each in pod["spec"].get("resourceClaims") or ():
        yield each.get("resourceClaimName") or generated_names.get(each["name"])


def allocated_devices(claim: Content) -> set[Device]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(each["driver"], each["pool"], each["device"]) for each in results}


def devices(picture: Picture, pod: Content, node: Content) -> str:
    """DynamicResources: an allocated claim's devices are within reach; for the other claims the
    node has enough free devices."""
    claims = picture.kind(RESOURCE_CLAIM)
    requested_count = 0
    for name in device_claim_names(pod):
        claim = claims.get((key_of(pod)[0], name or ""))
        if claim is None or is_terminating(claim):
            return f"device claim {name} is not there"
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is None and not _is_shared_here(picture, node, key_of(claim)):
            requests = claim["spec"]["devices"]["requests"]
            requested_count += sum(each["exactly"].get("count") or 1 for each in requests)
        selector = (allocation or {}).get("nodeSelector")
        if selector and not selects_node(selector, node):
            return f"the devices of claim {name} are out of the node's reach"
    allocated = {device for claim in claims.values() for device in allocated_devices(claim)}
    free = [each for each in _devices_of(picture, node) if each not in allocated]
    if requested_count > len(free):
        return f"{requested_count} devices, and {len(free)} are free"
    return ""


def _is_shared_here(picture: Picture, node: Content, claim: Key) -> bool:
    """Whether a pod that is assumed on the node will get the devices of a claim. The other users
    of the claim get the same devices."""
    return any(
        not pod["spec"].get("nodeName")
        and key_of(pod)[0] == claim[0]
        and claim[1] in device_claim_names(pod)
        for pod in picture.occupants(node["metadata"]["name"])
    )


def _devices_of(picture: Picture, node: Content) -> Iterator[Device]:
    for device_slice in picture.kind(RESOURCE_SLICE).values():
        spec = device_slice["spec"]
        if spec.get("nodeName") == node["metadata"]["name"]:
            for each in spec.get("devices") or ():
                yield spec["driver"], spec["pool"]["name"], each["name"]


ALL_RULES = (*RULES, volumes, one_pod, attach_limits, devices)


def why_not(picture: Picture, pod: Content, node_name: str) -> str:
    """Why a pod may not run on a node, with the rule's name; "" if it may."""
    node = picture.node(node_name)
    if node is None:
        return f"node exists: there is no node {node_name}"
    picture_without_pod = picture.without([uid_of(pod)])
    for rule in ALL_RULES:
        why = rule(picture_without_pod, pod, node)
        if why:
            return f"{rule.__name__}: {why}"
    return ""


def nodes_that_take(picture: Picture, pod: Content) -> list[str]:
    """Names of the nodes that a pod fits on."""
    return [name for name in picture.node_names() if not why_not(picture, pod, name)]


__all__ = ["Placed", "allocated_devices", "nodes_that_take", "why_not"]
