"""The common parts of the structs of all API kinds: decoding, metadata, selectors."""

from typing import Annotated, dataclass_transform

import msgspec
from msgspec import Struct, field

#: As wide as the widest integer of the API: what is beyond decodes to an error, here already.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Quantities = dict[str, str | Int64 | float]
Strings = dict[str, str]


def resource_of(kind: str) -> str:
    """The plural that API messages use: "pods" for "v1 Pod"."""
    singular = kind.rpartition(" ")[2].lower()
    if singular.endswith(("s", "x", "ch")):
        return singular + "es"
    if singular.endswith("y"):
        return singular[:-1] + "ies"
    return singular + "s"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Api(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of all API structs: frozen, camelCase on the wire."""


class OwnerReference(Api):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Api):
    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class Condition(Api):
    """An entry of the status of a pod or of a pod group."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that controls an object. Upstream: metav1.GetControllerOf."""
    return next((owner for owner in meta.owner_references or () if owner.controller), None)


def is_controlled_by(meta: ObjectMeta, uid: str) -> bool:
    """Whether the owner that controls an object has a uid. Upstream: metav1.IsControlledBy."""
    controller = controller_of(meta)
    return controller is not None and controller.uid == uid


# ---- selectors -----------------------------------------------------------------------------


class LabelSelectorRequirement(Api):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(Api):
    match_labels: Strings | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorTerm(Api):
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    match_fields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(Api):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class Toleration(Api):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None
