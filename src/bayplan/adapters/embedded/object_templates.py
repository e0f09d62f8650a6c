"""Pods and nodes of one template: what their creation has in common is computed once.

Pods of one template differ in their name, uid, version and annotations only. Whether the rest is
valid, and what defaults and admission add to it, follows from the rest and from the objects that
admission reads, such as priority classes and limit ranges; only quotas are checked for each pod. So
the server keeps the first pod as it was stored, and each further pod shares its spec and its
status, as plain values and decoded. Annotations do not count, because the pods of a trace have
annotations of their own, such as how long the pod runs. No default depends on them.

The same holds for nodes. Nodes of one template also differ in the label with their own name.

Pods that come with a node or with a deletion time are not shared: they depend on other objects and
on the time.
"""

from typing import Any, NamedTuple, final

import msgspec

from bayplan.adapters.embedded.admission.plugin import is_admitted
from bayplan.adapters.embedded.field_validation import is_dns_subdomain
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import HOSTNAME_LABEL, NODE, POD, Node, Pod
from bayplan.api.selectors import is_label_value
from bayplan.objects.keys import Content

#: When there are more templates, all are dropped.
TEMPLATES_MAX = 1000

_VERSION, _POD = POD.split()
_NODE = NODE.split()[1]
#: Metadata that objects of one template may differ in, besides their name and their annotations.
_OWN = ("uid", "creationTimestamp", "resourceVersion")


_encode = msgspec.msgpack.Encoder().encode


def template_key(content: Any) -> bytes | None:
    """The parts that an object shares with the other objects of its template, as a key.

    None: the content is no pod and no node, or its other parts are not valid.
    """
    if type(content) is not dict:
        return None
    # Without methods of the dictionaries, because each pod of an input passes here twice.
    whole: Content = content
    try:
        kind = whole["kind"]
        if (kind != _POD and kind != _NODE) or whole["apiVersion"] != _VERSION:
            return None
        meta: Content = {**whole["metadata"]}
        name: Any = meta["name"]
        del meta["name"]
        may_be_admitted = (
            "status" in whole or "managedFields" in meta or "nodeName" in whole["spec"]
        )
        for member in _OWN:
            if member in meta:
                own = meta[member]
                if own is not None:
                    if not (isinstance(own, str) and own):
                        return None
                    may_be_admitted = True
                del meta[member]
        annotations: Any = meta["annotations"] if "annotations" in meta else None  # noqa: SIM401
        if annotations:
            if not _are_texts(annotations):
                return None
            del meta["annotations"]
        names_itself = kind == _NODE and _names_itself(meta, name)
        if names_itself:
            meta["labels"] = {**meta["labels"]}
            del meta["labels"][HOSTNAME_LABEL]
        was_admitted = may_be_admitted and is_admitted(whole)
        parts = (bool(annotations), was_admitted, names_itself)
        key = _encode((parts, meta, {**whole, "metadata": None}))
    except Exception:  # noqa: BLE001 - this is neither; validation reports the problem
        return None
    return key if type(name) is str and is_dns_subdomain(name) else None


def _are_texts(annotations: dict[Any, Any]) -> bool:
    """Whether these are valid annotations."""
    return all(type(text) is str for text in (*annotations, *annotations.values()))


def _names_itself(meta: Content, name: Any) -> bool:
    """Whether a node has the label with its own name, and the name is a valid label."""
    labels = meta.get("labels")
    return bool(labels) and labels.get(HOSTNAME_LABEL) == name and is_label_value(name)


class ObjectTemplate(NamedTuple):
    """The first object of a template, as it was stored."""

    content: Content
    object: Pod | Node
    kind: str
    namespace: str
    #: Whether the objects were admitted by a server before; see `admission.is_admitted`.
    was_admitted: bool
    #: Annotations that admission adds.
    annotations: Content
    #: Whether the objects are nodes with the label that has their own name.
    names_itself: bool


@final
class ObjectTemplates:
    """Templates of what one server has created, by everything but what is an object's own."""

    def __init__(self) -> None:
        self._templates: dict[bytes, ObjectTemplate] = {}
        #: The key and the content of the last object that `find` did not find; None: it cannot be
        #: shared.
        self._missed: tuple[bytes, Content] | None = None

    def find(self, content: Content) -> ObjectTemplate | None:
        """The template of a new object. None: there is none, or the content is not valid."""
        key = template_key(content)
        template = None if key is None else self._templates.get(key)
        self._missed = None if key is None or template is not None else (key, content)
        return template

    def learn(self, stored: StoredObject) -> None:
        """Keep the object that was created from the content that `find` did not find."""
        created = stored.object
        if self._missed is None or not isinstance(created, Pod | Node):
            return
        key, content = self._missed
        if created.metadata.deletion_timestamp:
            return
        if isinstance(created, Pod) and created.spec.node_name:
            return
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        own = content["metadata"].get("annotations") or {}
        annotations = created.metadata.annotations or {}
        self._templates[key] = ObjectTemplate(
            stored.content,
            created,
            stored.key.kind,
            stored.key.namespace,
            is_admitted(content),
            {name: text for name, text in annotations.items() if name not in own},
            isinstance(created, Node) and _names_itself(content["metadata"], stored.key.name),
        )

    def forget(self, *_: Any) -> None:
        """An object changed that admission reads: new objects may get other defaults."""
        self._templates.clear()
