"""What an admission plugin is.

A plugin may change a new object (`admit`) and may refuse it (`validate`); both raise
ForbiddenError. The server calls `admit` of all plugins in their order, then validates the object,
then calls `validate` of all plugins. An object that went through the admission of a server already
(`is_admitted`) is stored as it is: only plugins with ``fills_stored`` see it.

Upstream: k8s.io/apiserver/pkg/admission/interfaces.go.
"""

from typing import ClassVar

from bayplan.adapters.embedded.field_validation import stable_uid
from bayplan.api.objects import ApiObject
from bayplan.objects.keys import Content, ObjectKey, key_of


def is_stored(content: Content) -> bool:
    """Whether an API server has stored an object: its metadata has what only a server writes.

    The uid that a simulation gives to a controller of a manifest, so that pods can refer to it,
    does not count, nor does the null that `kubectl create --dry-run` prints.
    """
    meta: Content = content["metadata"]
    if meta.get("creationTimestamp") or meta.get("resourceVersion") or meta.get("managedFields"):
        return True
    uid = meta.get("uid")
    return bool(uid) and uid != stable_uid(key_of(content), 0)


def is_admitted(content: Content) -> bool:
    """Whether an object is one that admission has seen: a server has stored it, or it has a status,
    or it is a pod on a node. A manifest for `kubectl create` has none of these."""
    if content.get("status") or is_stored(content):
        return True
    spec = content.get("spec")
    return isinstance(spec, dict) and bool(spec.get("nodeName"))


class AdmissionPlugin:
    """The base of all plugins: changes nothing and refuses nothing."""

    #: The name in `--enable-admission-plugins`.
    name: ClassVar[str]
    #: The kinds whose objects the plugin may change.
    changed_kinds: ClassVar[tuple[str, ...]] = ()
    #: The kinds whose objects the plugin may refuse; None: all kinds.
    refused_kinds: ClassVar[tuple[str, ...] | None] = ()
    #: Whether `admit` is called for objects that were admitted before: the plugin only fills in
    #: what such an object lacks.
    fills_stored: ClassVar[bool] = False
    #: Whether `validate` depends on more than the object and objects of ``read_kinds``.
    counts_usage: ClassVar[bool] = False
    #: The kinds whose objects decide what the plugin does.
    read_kinds: ClassVar[tuple[str, ...]] = ()

    def admit(self, key: ObjectKey, content: Content) -> Content:
        """The new object with the plugin's changes; ``content`` does not change.

        Raises ForbiddenError.
        """
        return content

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        """Raises ForbiddenError if the object may not be created."""
