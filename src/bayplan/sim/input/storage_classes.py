"""Storage classes for inputs without any: manifests written by hand rarely contain them.

An input with storage classes, such as a captured cluster, is used as it is: a claim whose class is
missing waits, as it would in the cluster. For an input without a storage class, this module creates
each class that a claim names or uses as the default. Volumes of such a class are provisioned on the
node of their pod. A class that is only a label shared by claims and volumes needs no object.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bayplan.adapters.embedded.admission.default_storage_class import DEFAULT_CLASS_ANNOTATION
from bayplan.answers.amounts import counted
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from bayplan.api.storage_objects import BETA_STORAGE_CLASS, WAIT_FOR_FIRST_CONSUMER
from bayplan.objects.keys import Content, kind_of
from bayplan.sim.input.workload import claim_templates, is_pod

#: The name of a default class that this module creates.
DEFAULT_CLASS = "standard"
PROVISIONER = "bayplan.dev/simulated"


class MissingClasses(NamedTuple):
    """Classes to create before everything else, and notes for the reader."""

    classes: list[Content]
    notes: list[str]


def missing_storage_classes(contents: Iterable[Content]) -> MissingClasses:
    """``contents``: all objects of the input, at the beginning and later."""
    classes: set[str] = set()
    of_volumes: set[str] = set()
    claim_counts: dict[str | None, int] = {}
    for content in contents:
        if content["kind"] == "Pod" and not (content.get("spec") or {}).get("volumes"):
            continue
        kind = kind_of(content)
        if kind == STORAGE_CLASS:
            classes.add(content["metadata"].get("name") or "")
        elif kind == PERSISTENT_VOLUME:
            of_volumes.add(class_name_of(content) or "")
        else:
            for claim in _claims(content):
                name = class_name_of(claim)
                claim_counts[name] = claim_counts.get(name, 0) + 1
    claim_counts.pop("", None)  # "" means no class, not even the default one
    if "" in of_volumes or classes:
        claim_counts.pop(None, None)
    missing = {
        name: count for name, count in claim_counts.items() if name not in classes | of_volumes
    }
    return _left_alone(missing) if classes else _made_up(missing)


def class_name_of(content: Content) -> str | None:
    """The class that a claim or a volume names; None: it names none. The beta annotation comes
    first."""
    annotations = (content.get("metadata") or {}).get("annotations") or {}
    named: str | None = annotations.get(BETA_STORAGE_CLASS)
    return (content.get("spec") or {}).get("storageClassName") if named is None else named


def _claims(content: Content) -> Iterator[Content]:
    """The object if it is a claim without a volume, or the claims that a pod creates."""
    if is_pod(content):
        for _, template in claim_templates(content):
            yield template
    elif kind_of(content) == PERSISTENT_VOLUME_CLAIM and not _volume_name(content):
        yield content


def _volume_name(claim: Content) -> str:
    return (claim.get("spec") or {}).get("volumeName") or ""


def _left_alone(missing: dict[str | None, int]) -> MissingClasses:
    notes = [
        f"StorageClass {name} is not in the input: nothing provisions volumes for "
        f"{counted(count, 'claim')}"
        for name, count in missing.items()
    ]
    return MissingClasses([], notes)


def _made_up(missing: dict[str | None, int]) -> MissingClasses:
    counts: dict[str, int] = {}
    for name, count in missing.items():
        called = name or DEFAULT_CLASS
        counts[called] = counts.get(called, 0) + count
    default = DEFAULT_CLASS if None in missing else None
    classes = [_class(name, is_default=name == default) for name in counts]
    notes = [
        f"the input has no StorageClass: {name} was added for {counted(count, 'claim')};"
        " its volumes are provisioned on the node of their pod"
        for name, count in counts.items()
    ]
    return MissingClasses(classes, notes)


def _class(name: str, *, is_default: bool) -> Content:
    meta: Content = {"name": name}
    if is_default:
        meta["annotations"] = {DEFAULT_CLASS_ANNOTATION: "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": PROVISIONER,
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
    }
