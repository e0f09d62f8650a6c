"""Pods of one template: what their creation has in common is computed once.

Pods of one template differ in their name, uid and version only. Whether the rest is valid, and what
defaults and admission add to it, follows from the rest and from the priority classes. So the server
keeps the first pod as it was stored, and each further pod shares its spec and its status, as plain
values and decoded.

Pods that come with a node or with a deletion time are not shared: they depend on other objects and
on the time.
"""

from typing import Any, NamedTuple, final

import msgspec

from bayplan.adapters.embedded.field_validation import Content, is_dns_subdomain
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import POD, Pod

#: When there are more templates, all are dropped.
TEMPLATES_MAX = 1000

_VERSION, _KIND = POD.split()
#: Metadata that pods of one template may differ in, besides their name.
_OWN = ("uid", "creationTimestamp", "resourceVersion")


class PodTemplate(NamedTuple):
    """The first pod of a template, as it was stored."""

    content: Content
    pod: Pod
    namespace: str


@final
class PodTemplates:
    """Templates of the pods that one server has created, by everything but name and uid."""

    def __init__(self) -> None:
        self._templates: dict[bytes, PodTemplate] = {}
        self._encode = msgspec.msgpack.Encoder().encode
        #: The key of the last content that `find` did not find; b"": it cannot be shared.
        self._missed = b""

    def find(self, content: Content) -> PodTemplate | None:
        """The template of a new pod. None: there is none, or the content is no valid pod."""
        self._missed = b""
        if content.get("kind") != _KIND or content.get("apiVersion") != _VERSION:
            return None
        try:
            meta = content["metadata"].copy()
            name, own = meta.pop("name"), [meta.pop(member, "-") for member in _OWN]
            key = self._encode((meta, {**content, "metadata": None}))
        except Exception:  # noqa: BLE001 - no pod at all: validation says what is wrong
            return None
        if not isinstance(name, str) or not all(isinstance(one, str) and one for one in own):
            return None
        template = self._templates.get(key)
        if template is None:
            self._missed = key
        elif is_dns_subdomain(name):
            return template
        return None

    def learn(self, stored: Stored) -> None:
        """Keep the pod that was created from the content that `find` did not find."""
        pod, key = stored.object, self._missed
        if not key or not isinstance(pod, Pod):
            return
        if pod.spec.node_name or pod.metadata.deletion_timestamp:
            return
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        self._templates[key] = PodTemplate(stored.content, pod, stored.key.namespace)

    def forget(self, *_: Any) -> None:
        """A priority class changed: new pods may get another priority."""
        self._templates.clear()
