"""Pods of one template: what their creation has in common is computed once.

Pods of one template differ in their name, uid, version and annotations only. Whether the rest is
valid, and what defaults and admission add to it, follows from the rest and from the objects that
admission reads, such as priority classes and limit ranges; only quotas are checked for each pod. So
the server keeps the first pod as it was stored, and each further pod shares its spec and its
status, as plain values and decoded. Annotations do not count, because the pods of a trace have
annotations of their own, such as how long the pod runs. No default depends on them.

Pods that come with a node or with a deletion time are not shared: they depend on other objects and
on the time.
"""

from typing import Any, NamedTuple, final

import msgspec

from bayplan.adapters.embedded.admission.plugin import is_admitted
from bayplan.adapters.embedded.field_validation import is_dns_subdomain
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import POD, Pod
from bayplan.objects.keys import Content

#: When there are more templates, all are dropped.
TEMPLATES_MAX = 1000

_VERSION, _KIND = POD.split()
#: Metadata that pods of one template may differ in, besides their name and their annotations.
_OWN = ("uid", "creationTimestamp", "resourceVersion")


_encode = msgspec.msgpack.Encoder().encode


def template_key(content: Any) -> bytes | None:
    """The parts that a pod shares with the other pods of its template, as a key.

    None: the content is no pod, or its other parts are not valid.
    """
    if type(content) is not dict:
        return None
    # Without methods of the dictionaries, because each pod of an input passes here twice.
    pod: Content = content
    try:
        if pod["kind"] != _KIND or pod["apiVersion"] != _VERSION:
            return None
        meta: Content = {**pod["metadata"]}
        name: Any = meta["name"]
        del meta["name"]
        may_be_admitted = "status" in pod or "nodeName" in pod["spec"]
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
        was_admitted = may_be_admitted and is_admitted(pod)
        key = _encode((bool(annotations), was_admitted, meta, {**pod, "metadata": None}))
    except Exception:  # noqa: BLE001 - this is no pod; validation reports the problem
        return None
    return key if type(name) is str and is_dns_subdomain(name) else None


def _are_texts(annotations: dict[Any, Any]) -> bool:
    """Whether these are valid annotations."""
    return all(type(text) is str for text in (*annotations, *annotations.values()))


class PodTemplate(NamedTuple):
    """The first pod of a template, as it was stored."""

    content: Content
    pod: Pod
    namespace: str
    #: Whether the pods were admitted by a server before; see `admission.is_admitted`.
    was_admitted: bool
    #: Annotations that admission adds.
    annotations: Content


@final
class PodTemplates:
    """Templates of the pods that one server has created, by everything but what is a pod's own."""

    def __init__(self) -> None:
        self._templates: dict[bytes, PodTemplate] = {}
        #: The key and the content of the last pod that `find` did not find; None: it cannot be
        #: shared.
        self._missed: tuple[bytes, Content] | None = None

    def find(self, content: Content) -> PodTemplate | None:
        """The template of a new pod. None: there is none, or the content is no valid pod."""
        key = template_key(content)
        template = None if key is None else self._templates.get(key)
        self._missed = None if key is None or template is not None else (key, content)
        return template

    def learn(self, stored: StoredObject) -> None:
        """Keep the pod that was created from the content that `find` did not find."""
        pod = stored.object
        if self._missed is None or not isinstance(pod, Pod):
            return
        key, content = self._missed
        if pod.spec.node_name or pod.metadata.deletion_timestamp:
            return
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        own = content["metadata"].get("annotations") or {}
        annotations = pod.metadata.annotations or {}
        self._templates[key] = PodTemplate(
            stored.content,
            pod,
            stored.key.namespace,
            is_admitted(content),
            {name: text for name, text in annotations.items() if name not in own},
        )

    def forget(self, *_: Any) -> None:
        """An object changed that admission reads: new pods may get other defaults."""
        self._templates.clear()
