"""Objects of a moment by name, and one of them as YAML. Secrets are never shown.

The text comes from the store of objects that the engine's answers use. It is the object as the
files or the API server have it, with what a run changed. For a running scheduler, it has only the
fields that a scheduler reads. ``managedFields``, which say who wrote which field, are a separate
text.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bayplan.adapters.embedded.versioned_store import MANAGED_FIELDS
from bayplan.answers.document import Value
from bayplan.answers.formats import written_document
from bayplan.answers.names import natural_key
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import plain, with_kind
from bayplan.objects.keys import ObjectKey, key_of_owner
from bayplan.problems import BadInputError
from bayplan.sim.input.inputs import moved_back
from bayplan.ui.answers import Computation
from bayplan.ui.pages import Part
from bayplan.ui.subjects import Subject

_SECRET: Final = "Secret"


class ObjectRow(Value):
    """An object by its kind, such as "Deployment", and its name, "namespace/name" or "name"."""

    kind: str
    name: str


class ObjectPage(Value):
    rows: tuple[ObjectRow, ...] = ()


class ObjectText(Value):
    #: The kind with its version, such as "apps/v1 Deployment".
    kind: str
    name: str
    yaml: str
    #: Who wrote which field, as YAML; "": unknown.
    managed_fields: str = ""
    #: Whether the text has only the fields that a scheduler reads.
    is_partial: bool = False
    #: The objects that own it.
    owners: tuple[ObjectRow, ...] = ()


OBJECT_TYPES = (Computation[ObjectPage], Computation[ObjectText])


def object_page(
    subject: Subject, change: int, search: str, part: tuple[int, int]
) -> Computation[ObjectPage]:
    """The objects with a text in their name. ``part``: offset and limit."""
    computed = subject.computations.ask(
        ("objects", change),
        lambda deadline: sorted(_rows(subject.model(change, deadline.check).model), key=_order),
    )
    if computed.value is None:
        return computed.answer()
    rows: Sequence[tuple[str, str]] = computed.value
    text = search.lower()
    listed = Part([row for row in rows if text in row[1].lower()], *part)
    page = ObjectPage(rows=tuple(ObjectRow(kind=kind, name=name) for kind, name in listed.items))
    return Computation(phase=computed.phase, value=page, total=listed.total, offset=listed.offset)


def _rows(model: ClusterModel) -> Iterator[tuple[str, str]]:
    for key, _ in model.all():
        kind = _short(key.kind)
        if kind != _SECRET:
            yield kind, _name(key)


def _order(row: tuple[str, str]) -> tuple[Any, ...]:
    return row[0], natural_key(row[1])


def object_text(subject: Subject, change: int, kind: str, name: str) -> Computation[ObjectText]:
    """One object as YAML. ``kind``: "Deployment" or "apps/v1 Deployment", for example. ``name``: as
    in `ObjectRow`."""
    computed = subject.computations.ask(
        ("object", change, kind, name),
        lambda deadline: _text(subject.model(change, deadline.check).model, kind, name),
    )
    return computed.answer()


def _text(model: ClusterModel, kind: str, name: str) -> ObjectText:
    """Raises BadInputError."""
    if _short(kind) == _SECRET:
        raise BadInputError("the page shows no Secrets")
    key = next((key for key in _keys(model, kind, name) if key in model.store), None)
    present = None if key is None else model.store.get(key)
    if key is None or present is None:
        raise BadInputError(
            f"there is no {kind or 'object'} {name} at this moment, or it was not read"
        )
    whole = model.source.manifest(key, present)
    content: dict[str, Any] = whole or with_kind(key.kind, plain(present))
    content = moved_back(content, -model.source.moved_back_seconds)
    metadata = {**content["metadata"]}
    managed = metadata.pop(MANAGED_FIELDS, None)
    return ObjectText(
        kind=key.kind,
        name=_name(key),
        yaml=_yaml({**content, "metadata": metadata}),
        managed_fields=_yaml(managed) if managed else "",
        is_partial=whole is None,
        owners=tuple(
            ObjectRow(kind=owner.kind, name=_name(key_of_owner(owner, key.namespace)))
            for owner in present.metadata.owner_references or ()
        ),
    )


def _yaml(content: Any) -> str:
    return written_document(content, "yaml").decode()


def _keys(model: ClusterModel, kind: str, name: str) -> Iterator[ObjectKey]:
    namespace, _, own = name.rpartition("/")
    for each in model.store.kinds():
        if kind in (each, _short(each)):
            yield ObjectKey(each, namespace, own)


def _name(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def _short(kind: str) -> str:
    return kind.rpartition(" ")[2]
