"""Validation of volumes, claims and storage classes.

Fields that are present must be valid. Missing fields are accepted, for objects in tests and
scenarios contain only the fields that matter there.
"""

from collections.abc import Iterator

from bayplan.adapters.embedded import field_validation as selectors
from bayplan.adapters.embedded.field_validation import (
    DNS_SUBDOMAIN,
    is_dns_label,
    is_dns_subdomain,
    one_of,
)
from bayplan.adapters.embedded.pod_validation import choice, quantities
from bayplan.api.storage_objects import (
    FILESYSTEM,
    READ_WRITE_ONCE_POD,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.problems import Problem, joined, wrong

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", READ_WRITE_ONCE_POD)
VOLUME_MODES = (FILESYSTEM, "Block")
BINDING_MODES = ("Immediate", WAIT_FOR_FIRST_CONSUMER)


def volume_claim(claim: PersistentVolumeClaim) -> Iterator[Problem]:
    spec = claim.spec
    yield from _access_modes(spec.access_modes)
    yield from selectors.label_selector(spec.selector, "spec.selector")
    yield from _storage(spec.resources.requests, "spec.resources.requests")
    yield from _storage_name(spec.storage_class_name, "spec.storageClassName")
    yield from _storage_name(spec.volume_name, "spec.volumeName")
    yield from choice(spec.volume_mode, "spec.volumeMode", VOLUME_MODES)


def volume(volume: PersistentVolume) -> Iterator[Problem]:
    spec = volume.spec
    yield from _access_modes(spec.access_modes)
    yield from _storage(spec.capacity, "spec.capacity")
    yield from _storage_name(spec.storage_class_name, "spec.storageClassName")
    yield from choice(spec.volume_mode, "spec.volumeMode", VOLUME_MODES)
    if spec.node_affinity is not None:
        path = "spec.nodeAffinity.required"
        yield from selectors.node_selector(spec.node_affinity.required, path)
    if spec.claim_ref is not None:
        yield from _claim_ref(spec.claim_ref)


def storage_class(storage_class: StorageClass) -> Iterator[Problem]:
    yield from choice(storage_class.volume_binding_mode, "volumeBindingMode", BINDING_MODES)


def _access_modes(modes: tuple[str, ...] | None) -> Iterator[Problem]:
    for index, mode in enumerate(modes or ()):
        if mode not in ACCESS_MODES:
            path = f"spec.accessModes[{index}]"
            yield wrong(path, mode, one_of(ACCESS_MODES), ACCESS_MODES)
    if len(modes or ()) > 1 and READ_WRITE_ONCE_POD in (modes or ()):
        yield wrong("spec.accessModes", list(modes or ()), f"{READ_WRITE_ONCE_POD} alone")


def _storage(amounts: dict[str, str | int | float] | None, path: str) -> Iterator[Problem]:
    problems = list(quantities(amounts, path))
    yield from problems
    if not problems and amounts and str(amounts.get(STORAGE, "1")) in ("0", "0.0"):
        yield wrong(joined(path, STORAGE), amounts[STORAGE], "more than nothing")


def _storage_name(name: str | None, path: str) -> Iterator[Problem]:
    if name and not is_dns_subdomain(name):
        yield wrong(path, name, DNS_SUBDOMAIN)


def _claim_ref(reference: ObjectReference) -> Iterator[Problem]:
    yield from _storage_name(reference.name, "spec.claimRef.name")
    if reference.namespace and not is_dns_label(reference.namespace):
        yield wrong("spec.claimRef.namespace", reference.namespace, selectors.DNS_LABEL)
