"""Volumes, claims and devices: create what a pod refers to and the cluster lacks, make a volume
available again, let a class bind late, request another class of devices or fewer devices."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from bayplan.answers.names import in_natural_order
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import (
    HOSTNAME_LABEL,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ApiObject,
)
from bayplan.api.storage_objects import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.explain.diagnosis import NodeDiagnosis
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.commands import (
    creation_command,
    optional,
    patch_command,
    replacement_command,
)
from bayplan.explain.fixes.edits import Harm, ObjectEdit, Patch, change_of, patched, plain
from bayplan.explain.fixes.rule_edits import nodes_of
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey, key_of_metadata, kind_of
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.printable import printable

#: The number of classes, drivers or nodes that are tried for one object.
_NODES_MAX = 4
#: The number of lower counts of devices that are tried.
_COUNTS_MAX = 8
_NEW_CLASS = "on-demand"


def missing_objects(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    pod = diagnosis.pod
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if claim is None:
            yield from _missing_claim(model, namespace, name)
        elif isinstance(claim, PersistentVolumeClaim):
            yield from _released_volumes(model, claim)
            yield from _late_binding(model, claim)
            yield from _missing_class(model, claim)
            yield from _missing_volume(model, diagnosis, claim)
    for claim in pod.spec.resource_claims or ():
        name = claim.resource_claim_name
        if not name:
            continue
        present = model.get(RESOURCE_CLAIM, pod.namespace, name)
        if present is None:
            yield from _device_claim(model, pod.namespace, name)
        else:
            yield from _other_device_classes(model, present)
            yield from _missing_device_classes(model, present)
            yield from _fewer_devices(present)
    yield from _missing_group(model, diagnosis)


def _creation(*contents: dict[str, Any], harm: Harm = Harm.NONE, note: str = "") -> ObjectEdit:
    changes = [change_of(kind_of(content), content) for content in contents]
    names = [
        f"{each.kind.rpartition(' ')[2]} {each.namespace}{'/' if each.namespace else ''}{each.name}"
        for each in changes
    ]
    text = printable(f"create the missing {' and the missing '.join(names)}")
    return ObjectEdit(text, tuple(changes), (creation_command(contents),), harm=harm, note=note)


def _missing_claim(model: ClusterModel, namespace: str, name: str) -> Iterator[ObjectEdit]:
    """A claim of a class that binds when its pod has a node. If there is no such class, a new one
    is created."""
    classes = [each for each in model.objects(STORAGE_CLASS) if isinstance(each, StorageClass)]
    late = [each for each in classes if each.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER]
    for each in late[:_NODES_MAX]:
        yield _creation(_claim(namespace, name, each.metadata.name))
    if not late:
        yield _creation(
            _storage_class(_NEW_CLASS, _provisioner(model)), _claim(namespace, name, _NEW_CLASS)
        )


def _claim(namespace: str, name: str, class_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": class_name,
        },
    }


def _storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    }


def _provisioner(model: ClusterModel) -> str:
    """A provisioner that another class has."""
    classes = [each for each in model.objects(STORAGE_CLASS) if isinstance(each, StorageClass)]
    usable = [c.provisioner for c in classes if not c.provisioner.endswith("no-provisioner")]
    return min(usable, default="example.com/provisioner")


def _released_volumes(model: ClusterModel, claim: PersistentVolumeClaim) -> Iterator[ObjectEdit]:
    """Volumes of the claim's class that belong to a claim that is gone."""
    if claim.spec.volume_name:
        return
    for volume in model.objects(PERSISTENT_VOLUME):
        if not isinstance(volume, PersistentVolume) or volume.spec.claim_ref is None:
            continue
        reference = volume.spec.claim_ref
        owner = model.get(PERSISTENT_VOLUME_CLAIM, reference.namespace or "", reference.name)
        is_gone = owner is None or (reference.uid and owner.metadata.uid != reference.uid)
        if not is_gone or volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
            continue
        key = ObjectKey(PERSISTENT_VOLUME, "", volume.metadata.name)
        patch = ({"op": "remove", "path": "/spec/claimRef"},)
        former = printable(f"{reference.namespace}/{reference.name}")
        yield ObjectEdit(
            f"make PersistentVolume {printable(key.name)} available again: remove its claimRef to "
            f"{former}, a claim that is gone",
            (Change(verb="patch", kind=key.kind, name=key.name, patch=patch),),
            optional(lambda key=key, patch=patch: patch_command(key, patch)),
            note=f"the volume still holds the data of {former}",
        )


def _late_binding(model: ClusterModel, claim: PersistentVolumeClaim) -> Iterator[ObjectEdit]:
    """A class that makes the volume when the pod has a node, and where that node is."""
    name = claim.spec.storage_class_name or ""
    present = model.get(STORAGE_CLASS, "", name)
    if claim.spec.volume_name or not isinstance(present, StorageClass):
        return
    if present.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return
    key = ObjectKey(STORAGE_CLASS, "", name)
    content = model.source.content(key) or plain(present)
    op = "replace" if "volumeBindingMode" in content else "add"
    patch = ({"op": op, "path": "/volumeBindingMode", "value": WAIT_FOR_FIRST_CONSUMER},)
    version, _, kind = STORAGE_CLASS.partition(" ")
    manifest = {
        field: value
        for field, value in patched(content, patch).items()
        if field not in ("metadata", "status")
    }
    meta = {
        field: content["metadata"][field]
        for field in ("name", "labels", "annotations")
        if content["metadata"].get(field)
    }
    yield ObjectEdit(
        f"let StorageClass {printable(name)} bind late: volumeBindingMode "
        f"{WAIT_FOR_FIRST_CONSUMER} in place of {present.volume_binding_mode or 'Immediate'}",
        (
            Change(
                verb="replace",
                kind=STORAGE_CLASS,
                name=name,
                content={"apiVersion": version, "kind": kind, "metadata": meta, **manifest},
            ),
        ),
        optional(lambda: replacement_command(key, patch)),
        note="the class is created again; claims of it that are bound stay bound",
    )


def _missing_class(model: ClusterModel, claim: PersistentVolumeClaim) -> Iterator[ObjectEdit]:
    name = claim.spec.storage_class_name
    if name and not claim.spec.volume_name and model.get(STORAGE_CLASS, "", name) is None:
        yield _creation(_storage_class(name, _provisioner(model)))


def _missing_volume(
    model: ClusterModel, diagnosis: NodeDiagnosis, claim: PersistentVolumeClaim
) -> Iterator[ObjectEdit]:
    """The volume that a claim is bound to; or, if nothing provisions volumes, a volume that the
    claim can be bound to."""
    name = claim.spec.volume_name
    if name:
        if model.get(PERSISTENT_VOLUME, "", name) is None:
            yield _creation(_volume(claim, name), harm=Harm.OBJECT)
        return
    storage_class = model.get(STORAGE_CLASS, "", claim.spec.storage_class_name or "")
    if (
        not isinstance(storage_class, StorageClass)
        or storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER
    ):
        return
    if not storage_class.provisioner.endswith("no-provisioner"):
        return
    nodes = nodes_of(model, diagnosis.nodes_rejected_by(VolumeBinding.name))
    for node in nodes[:_NODES_MAX]:
        hostname = (node.metadata.labels or {}).get(HOSTNAME_LABEL)
        if hostname:
            volume = _volume(claim, f"{claim.metadata.name}-{hostname}", hostname)
            where = f"a disk at {volume['spec']['local']['path']} of node {node.metadata.name}"
            note = printable(f"the volume needs {where}")
            yield _creation(volume, harm=Harm.OBJECT, note=note)


def _volume(claim: PersistentVolumeClaim, name: str, hostname: str = "") -> dict[str, Any]:
    """A volume as a claim requests it. ``hostname``: the node to which it is local; "": the volume
    is reserved for this claim."""
    meta, spec = claim.metadata, claim.spec
    volume: dict[str, Any] = {
        "capacity": dict(spec.resources.requests or {}),
        "accessModes": list(spec.access_modes or ()),
        "storageClassName": spec.storage_class_name or "",
        "volumeMode": spec.volume_mode or "Filesystem",
    }
    if hostname:
        expression = {"key": HOSTNAME_LABEL, "operator": "In", "values": [hostname]}
        terms = [{"matchExpressions": [expression]}]
        volume["local"] = {"path": f"/mnt/disks/{name}"}
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    else:
        reference = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        volume["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
        volume["hostPath"] = {"path": f"/mnt/{name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": volume,
        # The controller of volumes writes it in this form.
        "status": {"phase": "Available" if hostname else "Bound"},
    }


def _missing_device_classes(model: ClusterModel, claim: ApiObject) -> Iterator[ObjectEdit]:
    """Classes that a claim names: of the devices of one driver."""
    requests = plain(claim)["spec"].get("devices", {}).get("requests") or ()
    exact = [each.get("exactly") or {} for each in requests]
    alternatives = [sub for each in requests for sub in each.get("firstAvailable") or ()]
    names = {each.get("deviceClassName", "") for each in (*exact, *alternatives)} - {""}
    missing = in_natural_order(name for name in names if model.get(DEVICE_CLASS, "", name) is None)
    slices = [plain(each)["spec"] for each in model.objects(RESOURCE_SLICE)]
    for driver in sorted({each["driver"] for each in slices})[:_NODES_MAX] if missing else ():
        yield _creation(*(_device_class(name, driver) for name in missing))


def _device_class(name: str, driver: str) -> dict[str, Any]:
    return {
        "apiVersion": DEVICE_CLASS.partition(" ")[0],
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]},
    }


def _other_device_classes(model: ClusterModel, claim: ApiObject) -> Iterator[ObjectEdit]:
    """Another existing class; the one with the nearest name comes first."""
    content = plain(claim)
    if (content.get("status") or {}).get("allocation"):
        return
    classes = sorted(each.metadata.name for each in model.objects(DEVICE_CLASS))
    for index, request in enumerate(content["spec"].get("devices", {}).get("requests") or ()):
        wanted = (request.get("exactly") or {}).get("deviceClassName", "")
        if not wanted:
            continue
        nearest = get_close_matches(wanted, classes, n=len(classes) or 1, cutoff=0.0)
        for name in [each for each in nearest if each != wanted][:_NODES_MAX]:
            path = f"/spec/devices/requests/{index}/exactly/deviceClassName"
            patch = ({"op": "replace", "path": path, "value": name},)
            is_missing = model.get(DEVICE_CLASS, "", wanted) is None
            yield _changed_claim(
                claim,
                patch,
                f"let the request {printable(request['name'])} of ResourceClaim "
                f"{_name(claim)} name the class {printable(name)} in place of {printable(wanted)}",
                harm=Harm.NONE if is_missing else Harm.RULE,
                family=f"device class {index}",
            )


def _fewer_devices(claim: ApiObject) -> Iterator[ObjectEdit]:
    """Lower the count of a request."""
    content = plain(claim)
    if (content.get("status") or {}).get("allocation"):
        return
    for index, request in enumerate(content["spec"].get("devices", {}).get("requests") or ()):
        present = (request.get("exactly") or {}).get("count", 1)
        for fewer in range(present - 1, max(present - 1 - _COUNTS_MAX, 0), -1):
            path = f"/spec/devices/requests/{index}/exactly/count"
            yield _changed_claim(
                claim,
                ({"op": "replace", "path": path, "value": fewer},),
                f"lower the request {printable(request['name'])} of ResourceClaim {_name(claim)}"
                f" from {present} to {fewer} devices",
                harm=Harm.RULE,
                family=f"device count {index}",
            )


def _name(claim: ApiObject) -> str:
    return printable(f"{claim.metadata.namespace}/{claim.metadata.name}")


def _changed_claim(
    claim: ApiObject, patch: Patch, text: str, *, harm: Harm, family: str
) -> ObjectEdit:
    """The replacement of a claim, because the API server refuses changes of one."""
    key = key_of_metadata(RESOURCE_CLAIM, claim.metadata)
    whole = patched(plain(claim), patch)
    manifest = {
        "apiVersion": RESOURCE_CLAIM.partition(" ")[0],
        "kind": "ResourceClaim",
        "metadata": {
            name: part
            for name, part in whole["metadata"].items()
            if name in ("name", "namespace", "labels", "annotations")
        },
        "spec": whole["spec"],
    }
    change = Change(
        verb="replace", kind=key.kind, name=key.name, namespace=key.namespace, content=manifest
    )
    return ObjectEdit(
        text,
        (change,),
        optional(lambda: replacement_command(key, patch)),
        harm=harm,
        family=family,
    )


def _device_claim(model: ClusterModel, namespace: str, name: str) -> Iterator[ObjectEdit]:
    classes = in_natural_order(
        each.metadata.name for key, each in model.all() if key.kind.endswith(" DeviceClass")
    )
    version = RESOURCE_CLAIM.partition(" ")[0]
    for device_class in classes[:_NODES_MAX]:
        content = {
            "apiVersion": version,
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "devices": {
                    "requests": [{"name": "device", "exactly": {"deviceClassName": device_class}}]
                }
            },
        }
        yield _creation(content)


def _missing_group(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[ObjectEdit]:
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    if state is None or state.group is not None:
        return
    kinds = [k for k in model.scheduler.group_kinds if k.startswith(f"{state.key.api_group}/")]
    if not kinds:
        return
    version, _, kind = kinds[-1].partition(" ")
    count = state.here_count
    spec: dict[str, Any] = {"minMember": count}
    if state.is_upstream or state.key.api_group == "scheduling.k8s.io":
        spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    content = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": state.key.name, "namespace": state.key.namespace},
        "spec": spec,
    }
    yield _creation(content)
