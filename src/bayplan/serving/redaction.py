"""Redaction: captured objects without names and without the programs of their pods.

Only the fields that a scheduler reads are decoded, so environment, commands and mounts of pods are
dropped. The template of a controller is redacted like a pod, so that a simulation can create its
pods. `_PRESERVED_FIELDS` lists the decoded fields whose text stays. `_LABELS` lists maps of
labels, whose keys stay. All other text is replaced by a numbered name. The same text gets the same
name in the whole file, so objects still refer to each other and labels still match selectors. A
field that is added to an API struct is replaced until it is listed.
"""

# pyright: standard
# (Structs of any type, plain values of any shape.)
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast, final

import msgspec

from bayplan.api import (
    admission_objects,
    composite_pod_groups,
    device_objects,
    disruption_objects,
    object_meta,
    objects,
    pod_groups,
    storage_objects,
)
from bayplan.api.device_selectors import CEL_TEXT
from bayplan.api.finalizers import FINALIZERS
from bayplan.api.object_meta import Api, ObjectMeta
from bayplan.api.objects import (
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Unstructured,
    Workload,
    at_path,
    decode,
)
from bayplan.objects.keys import kind_of

Content = dict[str, Any]

#: The text for the user: what the file still shows.
PRESERVED = (
    "label keys, label values that are no names of objects, and selectors on them",
    "taints, tolerations, topology keys, affinities and spread constraints",
    "resource names and amounts, host ports, image sizes, priorities, schedulerName",
    "names of provisioners and drivers, volume types, names of device attributes",
    "uids, time stamps, kinds of owners, phases and condition types",
    "CEL selectors of devices, without their string literals and comments",
    "annotations that the scheduler reads, and bayplan.dev/ annotations",
)

# ---- what stays -----------------------------------------------------------------------------

#: By struct, the fields whose text stays: words of the API, amounts, times, keys of labels.
_PRESERVED_FIELDS: Final[dict[type[Api], frozenset[str]]] = {
    struct: frozenset(names.split())
    for struct, names in {
        object_meta.OwnerReference: "api_version kind uid",
        object_meta.ObjectMeta: "uid resource_version creation_timestamp deletion_timestamp",
        object_meta.LabelSelectorRequirement: "key operator",
        objects.ResourceRequirements: "requests limits",
        objects.ContainerPort: "protocol",
        objects.Container: "restart_policy",
        objects.ContainerRestartRule: "action",
        objects.PodAffinityTerm: "topology_key match_label_keys mismatch_label_keys",
        objects.TopologySpreadConstraint: "topology_key when_unsatisfiable node_affinity_policy "
        "node_taints_policy match_label_keys",
        objects.Toleration: "key operator value effect",
        objects.PodSpec: "scheduler_name overhead preemption_policy restart_policy",
        objects.Condition: "type status last_transition_time",
        objects.ContainerStatus: "allocated_resources",
        objects.ContainerExtendedResourceRequest: "resource_name",
        objects.PodStatus: "phase start_time resize allocated_resources",
        objects.Taint: "key value effect",
        objects.NodePodPreemptionPolicy: "disable_resize_preemption",
        objects.NodeCondition: "type status",
        objects.NodeStatus: "allocatable capacity declared_features",
        objects.PriorityClass: "preemption_policy",
        storage_objects.CSISource: "driver",
        storage_objects.AzureDisk: "kind",
        storage_objects.ObjectReference: "api_version kind uid resource_version",
        storage_objects.PersistentVolumeSpec: "capacity access_modes volume_mode",
        storage_objects.VolumePhase: "phase",
        storage_objects.VolumeResources: "requests",
        storage_objects.PersistentVolumeClaimSpec: "access_modes volume_mode",
        storage_objects.StorageClass: "provisioner volume_binding_mode reclaim_policy",
        storage_objects.TopologySelectorRequirement: "key",
        storage_objects.CSINodeDriver: "name topology_keys",
        storage_objects.CSIStorageCapacity: "capacity maximum_volume_size",
        storage_objects.VolumeAttachmentSpec: "attacher",
        pod_groups.TopologyConstraint: "key",
        pod_groups.PodGroupStatus: "phase schedule_start_time",
        pod_groups.CoschedulingSpec: "min_resources",
        pod_groups.UpstreamPodGroupSpec: "preemption_policy",
        composite_pod_groups.CompositePodGroupSpec: "preemption_policy",
        admission_objects.RuntimeOverhead: "pod_fixed",
        admission_objects.LimitRangeItem: "type min max default default_request "
        "max_limit_request_ratio",
        admission_objects.ScopeRequirement: "scope_name operator",
        admission_objects.ResourceQuotaSpec: "hard scopes",
        admission_objects.ResourceQuotaStatus: "hard used",
        disruption_objects.PodDisruptionBudgetSpec: "min_available max_unavailable",
        device_objects.ExactDeviceRequest: "allocation_mode",
        device_objects.DeviceSubRequest: "allocation_mode",
        device_objects.DeviceToleration: "key operator value effect",
        device_objects.CapacityRequirements: "requests",
        device_objects.DeviceConstraint: "match_attribute distinct_attribute",
        device_objects.DeviceRequestAllocationResult: "driver share_id consumed_capacity",
        device_objects.AllocationResult: "allocation_timestamp",
        device_objects.ConsumerReference: "api_group resource uid",
        device_objects.AllocatedDeviceStatus: "driver share_id",
        device_objects.DeviceCondition: "type status",
        device_objects.ResourceSliceSpec: "driver skip_node_operations",
        device_objects.DeviceAttribute: "version_value version_values",
        device_objects.DeviceDerivedAttribute: "name",
        device_objects.DeviceCapacity: "value",
        device_objects.CapacityRequestPolicy: "default valid_values",
        device_objects.CapacityRange: "minimum maximum step",
        device_objects.Counter: "value",
        device_objects.DeviceTaint: "key value effect time_added",
        device_objects.DeviceClassSpec: "extended_resource_name",
        device_objects.DeviceTaintSelector: "driver",
    }.items()
}
#: Controllers that a scheduler reads and a simulation runs.
_CONTROLLERS: Final = (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
#: What follows the name of a class in a resource of a quota, and the kind of the class.
_CLASS_SUFFIXES: Final = {
    ".storageclass.storage.k8s.io/": "StorageClass",
    ".deviceclass.resource.k8s.io/": "DeviceClass",
}
#: Structs that select labels.
_REQUIREMENTS: Final = (
    object_meta.LabelSelectorRequirement,
    storage_objects.TopologySelectorRequirement,
)
#: Maps of labels.
_LABELS: Final = frozenset(("labels", "match_labels", "node_selector", "selector"))
#: Maps whose keys are names of device attributes and capacities, as drivers document them.
_ATTRIBUTES: Final = frozenset(("attributes", "capacity"))
#: Fields that are not needed to place a pod and may contain any text.
_DROPPED: Final = frozenset(
    ("generate_name", "message", "reason", "parameters", "opaque", "declared", "config")
)
_IMAGES: Final = frozenset(("image", "names", "reference"))
#: A request of a claim, or "request/alternative".
_REQUESTS: Final = frozenset(("request", "requests"))

#: The object that a label with such a key names; the key's part after the last slash.
_NAMING_LABELS: Final = {
    "hostname": "Node",
    "node": "Node",
    "node-name": "Node",
    "metadata.name": "Namespace",
    "namespace": "Namespace",
    "pod-name": "Pod",
    "job-name": "Job",
    "pod-group": "PodGroup",
    "controller-revision-hash": "Revision",
}
#: Annotations that a scheduler or a simulation reads; the kind of object that the value names.
_ANNOTATIONS: Final = {
    storage_objects.BIND_COMPLETED: None,
    storage_objects.BOUND_BY_CONTROLLER: None,
    storage_objects.SELECTED_NODE: "Node",
    storage_objects.BETA_STORAGE_CLASS: "StorageClass",
    storage_objects.MIGRATED_PLUGINS: None,
    "pv.kubernetes.io/provisioned-by": None,
    "storageclass.kubernetes.io/is-default-class": None,
    "storageclass.beta.kubernetes.io/is-default-class": None,
    "batch.kubernetes.io/job-completion-index": None,
    device_objects.EXTENDED_RESOURCE_CLAIM_ANNOTATION: None,
    device_objects.POD_CLAIM_NAME_ANNOTATION: "ResourceClaim",
}
_OWN_ANNOTATIONS: Final = "bayplan.dev/"

#: Names that exist in every cluster stay.
_BUILT_IN_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_BUILT_IN_CLASSES = frozenset(("system-cluster-critical", "system-node-critical"))
_BUILT_IN = _BUILT_IN_NAMESPACES | _BUILT_IN_CLASSES
#: Addresses that identify no machine stay.
_WILDCARD_ADDRESSES = frozenset(("0.0.0.0", "::", "127.0.0.1", "::1"))

#: A label value of this form may be compared as a number.
_NUMBER = re.compile(r"[0-9.]*")
#: Versions and amounts in CEL literals, which functions parse, stay.
_CEL_AMOUNT = re.compile(r"v?[0-9][0-9.]*[A-Za-z]{0,2}")


# ---- redacting -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RedactedObjects:
    """The redacted objects."""

    objects: list[Content]
    #: Kinds that were left out, because only their plugins know what to hide, with the number of
    #: objects.
    left_out: dict[str, int]


def redacted(contents: Iterable[Content]) -> RedactedObjects:
    """Copies of the objects without names, environment and texts, except those that `PRESERVED`
    lists.

    Raises DecodeError for an object that does not fit its kind.
    """
    decoded: list[tuple[str, Any]] = []
    added: list[_WorkloadFields] = []
    left_out: dict[str, int] = {}
    for content in contents:
        kind = kind_of(content)
        value = decode(kind, content)
        if isinstance(value, Unstructured):
            left_out[kind] = left_out.get(kind, 0) + 1
        else:
            decoded.append((kind, value))
            added.append(_added(kind, content))
    names = _Names()
    # A CSINode has the name of its node, the pod of a StatefulSet that of its controller, and the
    # claim of an ephemeral volume that of its pod.
    order = {objects.NODE: 0, STATEFUL_SET: 1, objects.POD: 2}
    for kind, value in sorted(decoded, key=lambda pair: order.get(pair[0], 3)):
        _learn(names, kind, value)
    texts = _Texts(names, _drivers(value for _, value in decoded))
    pairs = zip(decoded, added, strict=True)
    return RedactedObjects([texts.content(*pair, more) for pair, more in pairs], left_out)


@dataclass(frozen=True, slots=True)
class _WorkloadFields:
    """What a simulation reads of a controller and a scheduler does not."""

    template: objects.Pod | None = None
    replicas: int | None = None
    #: The claims that a StatefulSet makes for each pod.
    claims: tuple[storage_objects.PersistentVolumeClaim, ...] = ()


def _added(kind: str, content: Content) -> _WorkloadFields:
    """Raises DecodeError."""
    template = at_path(content, "spec.template") if kind in _CONTROLLERS else None
    if not isinstance(template, dict):
        return _WorkloadFields()
    replicas = at_path(content, "spec.replicas")
    pod: Any = decode(objects.POD, template)
    claims: Any = at_path(content, "spec.volumeClaimTemplates")
    return _WorkloadFields(
        pod,
        replicas if isinstance(replicas, int) else None,
        tuple(
            cast(storage_objects.PersistentVolumeClaim, decode(PERSISTENT_VOLUME_CLAIM, one))
            for one in claims or ()
        ),
    )


def _learn(names: "_Names", kind: str, value: Any) -> None:
    """Choose new names after the kinds of the objects, before other fields refer to them."""
    short, meta = kind.rpartition(" ")[2], value.metadata
    if kind == objects.POD:
        _learn_ordinal(names, value)
    if kind != objects.CSI_DRIVER and not _is_built_in(kind, meta.name):
        names.of(meta.name, short)
    if meta.namespace is not None and meta.namespace not in _BUILT_IN_NAMESPACES:
        names.of(meta.namespace, "Namespace")
    if kind == objects.POD:
        for volume in value.spec.volumes or ():
            volume_name = names.of(volume.name, "Volume")
            # Upstream: component-helpers/storage/ephemeral, VolumeClaimName.
            if volume.ephemeral is not None:
                claim = f"{names.of(meta.name, short)}-{volume_name}"
                names.set(f"{meta.name}-{volume.name}", claim)


def _learn_ordinal(names: "_Names", pod: objects.Pod) -> None:
    """The pod of a StatefulSet and its claims keep the ordinal, by which the controller knows them.
    Upstream: pkg/controller/statefulset, getPersistentVolumeClaimName."""
    name, owners = pod.metadata.name, pod.metadata.owner_references or ()
    controller, _, ordinal = name.rpartition("-")
    if not ordinal.isdigit() or not any(
        (owner.kind, owner.name) == ("StatefulSet", controller) for owner in owners
    ):
        return
    hidden = f"{names.of(controller, 'StatefulSet')}-{ordinal}"
    names.set(name, hidden)
    for volume in pod.spec.volumes or ():
        names.set(f"{volume.name}-{name}", f"{names.of(volume.name, 'Volume')}-{hidden}")


def _is_built_in(kind: str, name: str) -> bool:
    if kind == NAMESPACE:
        return name in _BUILT_IN_NAMESPACES
    return kind == PRIORITY_CLASS and name in _BUILT_IN_CLASSES


def _drivers(values: Iterable[Any]) -> frozenset[str]:
    """Names of drivers, which stay in CEL expressions, too."""
    slices = (value for value in values if isinstance(value, device_objects.ResourceSlice))
    return frozenset(value.spec.driver for value in slices)


@final
class _Names:
    """Old text → new name, for the whole file."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, text: str, kind: str) -> str:
        """The new name; ``kind`` names it if the text is new."""
        if text and text not in self._new:
            self._new[text] = f"{kind.lower()}-{self._next(kind)}"
        return self._new.get(text, text)

    def set(self, text: str, name: str) -> None:
        """Choose a name for a text, unless it has one."""
        self._new.setdefault(text, name)

    def get(self, text: str) -> str:
        """The new name of a text that has one; other texts as they are."""
        return self._new.get(text, text)

    def image(self, image: str) -> str:
        """Upstream (ImageLocality) takes an image without a tag for its latest."""
        whole = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        if whole not in self._new:
            self._new[whole] = f"image-{self._next('Image')}:latest"
        return self._new[whole]

    def address(self, address: str) -> str:
        """An address of the private range 10.0.0.0/8."""
        if address in _WILDCARD_ADDRESSES:
            return address
        if address not in self._new:
            first = int(ipaddress.IPv4Address("10.0.0.0"))
            self._new[address] = str(ipaddress.IPv4Address(first + self._next("Address")))
        return self._new[address]

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]


@final
class _Texts:
    """Replaces the texts of one object after the other."""

    def __init__(self, names: _Names, drivers: frozenset[str]) -> None:
        self._names = names
        self._drivers = drivers

    def content(self, kind: str, value: Any, added: _WorkloadFields) -> Content:
        """The redacted object as plain values."""
        version, _, name = kind.partition(" ")
        hidden = self._struct(value)
        if kind == objects.CSI_DRIVER:
            meta = msgspec.structs.replace(hidden.metadata, name=value.metadata.name)
            hidden = msgspec.structs.replace(hidden, metadata=meta)
        plain: Content = msgspec.json.decode(msgspec.json.encode(hidden))
        if added.template is not None:
            spec = {**(plain.get("spec") or {}), "template": self._template(added.template)}
            if added.claims:
                spec["volumeClaimTemplates"] = [self._template(each) for each in added.claims]
            if added.replicas is not None:
                spec["replicas"] = added.replicas
            plain["spec"] = spec
        return {"apiVersion": version, "kind": name, **plain}

    def _template(self, value: Any) -> Content:
        plain = msgspec.to_builtins(self._struct(value))
        return {part: plain[part] for part in ("metadata", "spec") if part in plain}

    def _struct(self, value: Any) -> Any:
        changes: dict[str, Any] = {}
        if isinstance(value, _REQUIREMENTS):
            changes["values"] = self._values(value.key, value.values)
        preserved = _PRESERVED_FIELDS.get(type(value), frozenset())
        for field in value.__struct_fields__:
            part = getattr(value, field)
            if field in changes or part is None:
                continue
            changes[field] = self._field(value, field, part, is_preserved=field in preserved)
        return msgspec.structs.replace(value, **changes)

    def _field(self, owner: Any, field: str, part: Any, *, is_preserved: bool) -> Any:
        if is_preserved:
            return _with_class_names(part, self._names) if isinstance(part, dict) else part
        if isinstance(owner, ObjectMeta) and field in ("annotations", "finalizers"):
            return self._annotations(part) if field == "annotations" else _finalizers(part)
        if field in _DROPPED:
            return {} if field == "declared" else None if _is_optional(owner, field) else ""
        if field in _LABELS and isinstance(part, dict):
            return {key: self._label(key, text) for key, text in part.items()}
        if field in _REQUESTS and not isinstance(part, dict):
            return _each(part, self._request)
        if field == "expression" and isinstance(part, str):
            return CEL_TEXT.sub(self._cel_literal, part)
        if field in _IMAGES and not isinstance(owner, storage_objects.RBDSource):
            return _each(part, self._image)
        if field == "host_ip" and isinstance(part, str):
            return self._names.address(part)
        kind = _name_kind(owner, field)
        return self._any(part, kind, keeps_keys=field in _ATTRIBUTES)

    def _any(self, part: Any, kind: str, *, keeps_keys: bool = False) -> Any:
        if isinstance(part, Api):
            return self._struct(part)
        if isinstance(part, str):
            return part if part in _BUILT_IN else self._names.of(part, kind)
        if isinstance(part, list | tuple):
            return type(part)(self._any(item, kind) for item in part)
        if isinstance(part, dict):
            return {
                key if keeps_keys else self._names.of(key, kind): self._any(item, kind)
                for key, item in part.items()
            }
        return part

    def _image(self, part: Any) -> Any:
        return self._names.image(part) if isinstance(part, str) else self._any(part, "Image")

    def _request(self, text: Any) -> Any:
        if not isinstance(text, str):
            return self._any(text, "Request")
        return "/".join(self._names.of(name, "Request") for name in text.split("/"))

    def _values(self, key: str, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The values of a selector: label values, or names of nodes (metadata.name)."""
        if values is None:
            return None
        if key == "metadata.name":
            return tuple(self._names.of(name, "Node") for name in values)
        return tuple(self._label(key, value) for value in values)

    def _label(self, key: str, value: str) -> str:
        """A label value, replaced if its key says that it names an object, or if an object has that
        name."""
        kind = _NAMING_LABELS.get(key.rpartition("/")[2])
        if kind is not None and value not in _BUILT_IN:
            return self._names.of(value, kind)
        return value if _NUMBER.fullmatch(value) else self._names.get(value)

    def _annotations(self, annotations: dict[str, str]) -> dict[str, str] | None:
        preserved: dict[str, str] = {}
        for key, value in annotations.items():
            if key in _ANNOTATIONS:
                kind = _ANNOTATIONS[key]
                preserved[key] = value if kind is None else self._names.of(value, kind)
            elif key.startswith(_OWN_ANNOTATIONS):
                preserved[key] = value
        return preserved or None

    def _cel_literal(self, match: re.Match[str]) -> str:
        """A literal is replaced like the attribute that it is compared with; a comment is
        removed."""
        if match["literal"] is None:
            return ""
        text = next(match[name] for name in "abcd" if match[name] is not None)
        if text in self._drivers or _CEL_AMOUNT.fullmatch(text):
            return match["literal"]
        return f'"{self._names.of(text, "String")}"'


def _finalizers(finalizers: tuple[str, ...]) -> tuple[str, ...] | None:
    return tuple(name for name in finalizers if name in FINALIZERS) or None


def _with_class_names(amounts: dict[str, Any], names: _Names) -> dict[str, Any]:
    """Amounts by resource, with new names of classes in the resources of these classes."""
    return {_with_class_name(key, names): amount for key, amount in amounts.items()}


def _with_class_name(resource: str, names: _Names) -> str:
    before, prefix, name = resource.partition(device_objects.DEVICE_CLASS_RESOURCE_PREFIX)
    if prefix:
        return before + prefix + names.of(name, "DeviceClass")
    for suffix, kind in _CLASS_SUFFIXES.items():
        name, mark, after = resource.partition(suffix)
        if mark:
            return names.of(name, kind) + suffix + after
    return resource


def _each(part: Any, change: Any) -> Any:
    return type(part)(change(item) for item in part) if isinstance(part, tuple) else change(part)


def _is_optional(owner: Any, field: str) -> bool:
    """Whether None means that the field is absent."""
    fields = msgspec.structs.fields(type(owner))
    return next(row for row in fields if row.name == field).default is None


#: The kind that a field names, if the field's own name does not say it. "name" of a struct names an
#: object of the struct.
_FIELD_KINDS: Final = {
    "claim_name": "PersistentVolumeClaim",
    "device": "Device",
    "device_class_name": "DeviceClass",
    "disrupted_pods": "Pod",
    "namespaces": "Namespace",
    "nominated_node_name": "Node",
    "node_name": "Node",
    "parent_composite_pod_group_name": "CompositePodGroup",
    "persistent_volume_name": "PersistentVolume",
    "pod_group_name": "PodGroup",
    "pool": "Pool",
    "priority_class_name": "PriorityClass",
    "resource_claim_name": "ResourceClaim",
    "runtime_class_name": "RuntimeClass",
    "storage_class_name": "StorageClass",
    "string_value": "String",
    "volume_name": "PersistentVolume",
}


def _name_kind(owner: Any, field: str) -> str:
    if field in _FIELD_KINDS:
        return _FIELD_KINDS[field]
    if field == "name":
        kind = getattr(owner, "kind", None)
        if isinstance(owner, ObjectMeta | Workload) or not kind:
            return type(owner).__name__
        return kind
    return field.replace("_", "").removesuffix("s")
