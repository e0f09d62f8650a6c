"""The volumes and devices that keep a pod from a node: the objects at fault, a line for each."""

from collections.abc import Iterator

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.explain.fixes.edits import plain
from bayplan.explain.fixes.rule_edits import term_text
from bayplan.model.cluster_model import ClusterModel
from bayplan.state.pods import PodInfo


def volume_details(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """One line for each claim of the pod."""
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if not isinstance(claim, PersistentVolumeClaim):
            yield f"PersistentVolumeClaim {claim_key} does not exist"
            continue
        yield f"PersistentVolumeClaim {claim_key}: {_claim_text(model, claim)}"


def _claim_text(model: ClusterModel, claim: PersistentVolumeClaim) -> str:
    if claim.spec.volume_name:
        volume = model.get(PERSISTENT_VOLUME, "", claim.spec.volume_name)
        if not isinstance(volume, PersistentVolume):
            return f"its PersistentVolume {claim.spec.volume_name} does not exist"
        return f"bound to {claim.spec.volume_name}{_reach(volume)}"
    class_name = claim.spec.storage_class_name
    if not class_name:
        return "not bound, without a storage class"
    if model.get(STORAGE_CLASS, "", class_name) is None:
        return f"not bound; StorageClass {class_name} does not exist"
    return f"not bound; its StorageClass is {class_name}"


def _reach(volume: PersistentVolume) -> str:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    terms = (required.node_selector_terms or ()) if required is not None else ()
    text = " or ".join(term_text(plain(term)) for term in terms)
    return f", which is reachable from nodes with {text}" if text else ""


def device_details(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """One line for each claim of the pod, and one for the devices that the cluster offers."""
    statuses = {each.name: each for each in pod.status.resource_claim_statuses or ()}
    for each in pod.spec.resource_claims or ():
        name = each.resource_claim_name
        if name is None and each.name in statuses:
            name = statuses[each.name].resource_claim_name
        if name is None:
            yield f"the ResourceClaim for {each.name} was not created yet"
            continue
        claim = model.get(RESOURCE_CLAIM, pod.namespace, name)
        if not isinstance(claim, ResourceClaim):
            yield f"ResourceClaim {pod.namespace}/{name} does not exist"
            continue
        yield from _device_claim(model, claim)


def _device_claim(model: ClusterModel, claim: ResourceClaim) -> Iterator[str]:
    where = f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name}"
    if claim.status.allocation is not None:
        yield f"{where} has its devices already"
        return
    for request in plain(claim.spec).get("devices", {}).get("requests") or ():
        exact = request.get("exactly") or request
        class_name = exact.get("deviceClassName", "")
        count = exact.get("count") or 1
        is_missing = class_name and model.get(DEVICE_CLASS, "", class_name) is None
        note = ", which does not exist" if is_missing else ""
        yield f"{where} requests {count} of DeviceClass {class_name}{note}"
    slices = [plain(each) for each in model.objects(RESOURCE_SLICE)]
    devices = sum(len((each.get("spec") or {}).get("devices") or ()) for each in slices)
    yield f"the cluster offers {devices} devices in {len(slices)} ResourceSlices"
