"""What only a manifest must have, as kube-apiserver checks it, in its words.

An object of a test may be without it, so the API server in memory does not ask for it. A manifest
of a file is one for `kubectl create`: what kube-apiserver refuses there is refused here. All values
must have the type of their field. The fields of pods are checked by `container_fields`, and values
that a scheduler reads by `api_validation` and `controller_validation`.

Upstream: pkg/apis/core/validation, ValidatePersistentVolumeClaimSpec and
ValidatePersistentVolumeSpec; pkg/apis/batch/validation; apimachinery, pkg/api/validation.
"""

from collections.abc import Iterable, Iterator, Mapping

from bayplan.adapters.embedded.api_validation import claim_spec_problems
from bayplan.adapters.embedded.field_errors import (
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from bayplan.adapters.embedded.pod_validation import choice
from bayplan.api.field_tables import typed_structs
from bayplan.api.objects import STATEFUL_SET
from bayplan.api.storage_objects import STORAGE
from bayplan.problems import Problem
from bayplan.sim.input.container_fields import RULES, SIMPLE, Rule, simple_rules
from bayplan.sim.input.workload import Content

#: The types of volumes, in upstream's order. A field of a volume is one of these, or no type.
_TYPES = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "local",
    "csi",
    "ephemeral",
    "image",
]
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def manifest_problems(kind: str, content: Content) -> Iterator[Problem]:
    """Problems of a new object of a file. ``content``: the values that a scheduler reads are
    valid."""
    structs, unfit = typed_structs(kind, content)
    yield from unfit
    for name, path, fields in structs:
        if name == "core.v1.PodSpec" and kind == STATEFUL_SET:
            # Upstream does not check the names of hosts of its pods.
            fields.pop("hostname", None)
            fields.pop("subdomain", None)
        problems = [*simple_rules(name, fields, path)] if name in SIMPLE else []
        rule = RULES.get(name) or _RULES.get(name)
        if rule is not None:
            problems += rule(fields, path)
        # What lacks a value only because the value is of the wrong type is not reported twice.
        yield from (p for p in problems if not any(_is_within(each.path, p.path) for each in unfit))


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _meta(fields: Content, path: str) -> Iterator[Problem]:
    if path != "metadata":
        return
    owners, controllers = fields.get("ownerReferences", ()), list[str]()
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"{path}.ownerReferences[{index}].{field}", "must not be empty")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind', '')}/{owner.get('name', '')}")
    for other in controllers[1:]:
        detail = 'Only one reference can have Controller set to true. Found "true" in references'
        detail = f"{detail} for {controllers[0]} and {other}"
        yield invalid(f"{path}.ownerReferences", owners, detail)


def _pod_volume(fields: Content, path: str) -> Iterator[Problem]:
    types = [name for name in _TYPES if name in fields]
    yield from _further_types(types, path)
    if "ephemeral" in fields and "volumeClaimTemplate" not in fields["ephemeral"]:
        yield required(f"{path}.ephemeral.volumeClaimTemplate")


def _stateful_set(fields: Content, path: str) -> Iterator[Problem]:
    for index, claim in enumerate(fields.get("volumeClaimTemplates", ())):
        # Upstream checks the volume that it becomes.
        name = claim.get("metadata", {}).get("name")
        place = f"{path}.template.spec.volumes[{index}].name"
        yield from dns_label(name, place) if name else (required(place),)
    if fields.get("serviceName"):
        yield from dns_label(fields["serviceName"], f"{path}.serviceName")


def _runtime_class(fields: Content, path: str) -> Iterator[Problem]:
    if fields.get("handler"):
        yield from dns_label(fields["handler"], "handler")


# ---- Jobs -----------------------------------------------------------------------------------


def _failure_rule(fields: Content, path: str) -> Iterator[Problem]:
    has_codes, has_conditions = "onExitCodes" in fields, bool(fields.get("onPodConditions"))
    if has_codes == has_conditions:
        words = "both OnExitCodes and OnPodConditions is not supported"
        words = words if has_codes else "one of OnExitCodes and OnPodConditions is required"
        yield Problem(path, f"Invalid value: specifying {words}")


def _exit_codes(fields: Content, path: str) -> Iterator[Problem]:
    codes, place = fields.get("values", []), f"{path}.values"
    if not codes:
        yield invalid(place, codes, "at least one value is required")
    for index, code in enumerate(codes):
        if code == 0 and fields.get("operator") == "In":
            yield invalid(f"{place}[{index}]", code, "must not be 0 for the In operator")
        if code in codes[:index]:
            yield duplicate(f"{place}[{index}]", code)
    if codes != sorted(codes):
        yield invalid(place, codes, "must be ordered")


# ---- claims and volumes ---------------------------------------------------------------------


def _claim(fields: Content, path: str) -> Iterator[Problem]:
    # The values of a claim itself are known to be valid; those of a template are not.
    problems = claim_spec_problems(fields, path) if path != "spec" else []
    yield from problems
    if problems:
        return
    if not fields.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    if STORAGE not in fields.get("resources", {}).get("requests", {}):
        yield required(f"{path}.resources[{STORAGE}]")
    if fields.get("volumeAttributesClassName"):
        name = fields["volumeAttributesClassName"]
        yield from dns_subdomain(name, f"{path}.volumeAttributesClassName")


def _sorted(capacity: Content | None) -> Content | None:
    """As Go prints a map."""
    return dict(sorted(capacity.items())) if capacity else capacity


def _further_types(types: Iterable[str], path: str) -> Iterator[Problem]:
    for name in [*types][1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")


def _volume(spec: Content, _: str) -> Iterator[Problem]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    capacity = spec.get("capacity")
    if not capacity:
        yield required("spec.capacity")
    if not capacity or list(capacity) != [STORAGE]:
        yield not_supported("spec.capacity", _sorted(capacity), (STORAGE,))
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from choice(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICIES)
    types = [name for name in _TYPES if name in spec]
    if not types:
        yield required("spec", "must specify a volume type")
    yield from _further_types(types, "spec")
    if "required" not in spec.get("nodeAffinity", {"required": None}):
        detail = "must specify required node constraints"
        yield required("spec.nodeAffinity.required", detail)


_RULES: Mapping[str, Rule] = {
    "apps.v1.StatefulSetSpec": _stateful_set,
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": _exit_codes,
    "batch.v1.PodFailurePolicyRule": _failure_rule,
    "core.v1.PersistentVolumeClaimSpec": _claim,
    "core.v1.PersistentVolumeSpec": _volume,
    "core.v1.Volume": _pod_volume,
    "meta.v1.ObjectMeta": _meta,
    "node.v1.RuntimeClass": _runtime_class,
}
