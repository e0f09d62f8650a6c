"""Fields that a manifest must have, and names in it that decide no placement, as kube-apiserver
checks them, in its words.

An object of a test may be without them, so the API server in memory does not ask for them. A
manifest of a file is one for `kubectl create`: what kube-apiserver refuses there is refused here.
Values that a scheduler reads are checked by `api_validation` and `controller_validation`; probes,
variables and security are not checked.

Upstream: pkg/apis/core/validation, validateContainerCommon, ValidatePersistentVolumeClaimSpec and
ValidatePersistentVolumeSpec; pkg/apis/storage/validation, validateProvisioner.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bayplan.adapters.embedded.api_validation import claim_spec_problems
from bayplan.adapters.embedded.field_errors import (
    dns_label,
    dns_subdomain,
    forbidden,
    invalid,
    not_supported,
    required,
)
from bayplan.adapters.embedded.pod_validation import choice
from bayplan.api.objects import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from bayplan.api.storage_objects import STORAGE
from bayplan.problems import Problem, joined, not_a_text, wrong
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.workload import Content

#: The types of volumes. A field of a volume is one of these, or no type.
_VOLUME_TYPES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)


#: The types that only a volume of a pod may have.
_TYPES_OF_PODS = (
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "gitRepo",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def manifest_problems(kind: str, content: Content) -> Iterator[Problem]:
    """Problems of a new object of a file. ``content``: the values that a scheduler reads are
    valid."""
    spec: Content = content.get("spec") or {}
    if kind == POD:
        yield from _pod(spec, "spec", of_template=False)
    elif kind in CONTROLLERS:
        template = spec["template"]["spec"]
        if kind == STATEFUL_SET:
            # Upstream does not check the names of hosts of its pods.
            template = {**template, "hostname": None, "subdomain": None}
        yield from _pod(template, "spec.template.spec", of_template=True)
        if kind == STATEFUL_SET:
            yield from _name(spec, "serviceName", "spec", dns_label)
            for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
                path = f"spec.volumeClaimTemplates[{index}].spec"
                yield from _claim(claim.get("spec"), path, is_checked=False)
    elif kind == PERSISTENT_VOLUME_CLAIM:
        yield from _claim(spec, "spec", is_checked=True)
    elif kind == PERSISTENT_VOLUME:
        yield from _volume(spec)
    elif kind == STORAGE_CLASS and not content.get("provisioner"):
        yield required("provisioner")


def _pod(spec: Content, path: str, *, of_template: bool) -> Iterator[Problem]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        types = [name for name in (*_VOLUME_TYPES, *_TYPES_OF_PODS) if volume.get(name) is not None]
        yield from _further_types(types, f"{path}.volumes[{index}]")
        if volume.get("ephemeral") is None:
            continue
        where = f"{path}.volumes[{index}].ephemeral.volumeClaimTemplate"
        template = volume["ephemeral"].get("volumeClaimTemplate")
        if template is None:
            yield required(where)
        elif not isinstance(template, dict):
            yield wrong(where, template, "a claim")
        else:
            yield from _claim(template.get("spec"), joined(where, "spec"), is_checked=False)
    for member in ("containers", "initContainers"):
        containers = spec.get(member) or ()
        yield from _containers(containers, f"{path}.{member}", of_template=of_template)
    for field in ("hostname", "subdomain"):
        yield from _name(spec, field, path, dns_label)
    yield from _name(spec, "serviceAccountName", path, dns_subdomain)


def _name(
    spec: Content, field: str, path: str, check: Callable[[str, str], Iterator[Problem]]
) -> Iterator[Problem]:
    """Check a name that may be absent."""
    name = spec.get(field)
    if name is None or name == "":
        return
    if isinstance(name, str):
        yield from check(name, f"{path}.{field}")
    else:
        yield not_a_text(f"{path}.{field}", name)


def _containers(
    containers: Iterable[Content], path: str, *, of_template: bool
) -> Iterator[Problem]:
    """Upstream checks the spaces around the image of a pod, not of a template."""
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        if not container.get("name"):
            yield required(f"{where}.name")
        image = container.get("image")
        if not image:
            yield required(f"{where}.image")
        elif not of_template and image != image.strip():
            detail = "must not have leading or trailing whitespace"
            yield invalid(f"{where}.image", image, detail)


def _claim(spec: Any, path: str, *, is_checked: bool) -> Iterator[Problem]:
    """``is_checked``: the values that are there are known to be valid."""
    if not is_checked:
        problems = claim_spec_problems(spec or {}, path)
        yield from problems
        if problems:
            return
    members: Mapping[str, Any] = spec or {}
    if not members.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    requests: Mapping[str, Any] = (members.get("resources") or {}).get("requests") or {}
    if STORAGE not in requests:
        yield required(f"{path}.resources[{STORAGE}]")
    yield from _name({**members}, "volumeAttributesClassName", path, dns_subdomain)


def _sorted(capacity: Content | None) -> Content | None:
    """As Go prints a map."""
    return dict(sorted(capacity.items())) if capacity else capacity


def _further_types(types: Iterable[str], path: str) -> Iterator[Problem]:
    for name in [*types][1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")


def _volume(spec: Content) -> Iterator[Problem]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    capacity = spec.get("capacity")
    if not capacity:
        yield required("spec.capacity")
    if not capacity or list(capacity) != [STORAGE]:
        yield not_supported("spec.capacity", _sorted(capacity), (STORAGE,))
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from choice(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICIES)
    types = [name for name in _VOLUME_TYPES if spec.get(name) is not None]
    if not types:
        yield required("spec", "must specify a volume type")
    yield from _further_types(types, "spec")
    affinity = spec.get("nodeAffinity")
    if affinity is not None and affinity.get("required") is None:
        detail = "must specify required node constraints"
        yield required("spec.nodeAffinity.required", detail)
