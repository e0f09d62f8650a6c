"""DefaultStorageClass: a claim that names no class gets the default class.

Upstream: plugin/pkg/admission/storage/storageclass/setdefault, pkg/volume/util/storageclass.go.
"""

from collections.abc import Iterable
from typing import final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from bayplan.api.storage_objects import BETA_STORAGE_CLASS
from bayplan.objects.keys import Content, ObjectKey

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


@final
class DefaultStorageClass(AdmissionPlugin):
    """See the module."""

    name = "DefaultStorageClass"
    changed_kinds = (PERSISTENT_VOLUME_CLAIM,)

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def admit(self, key: ObjectKey, content: Content) -> Content:
        spec = content.get("spec") or {}
        annotations = content["metadata"].get("annotations") or {}
        if BETA_STORAGE_CLASS in annotations or spec.get("storageClassName") is not None:
            return content
        name = default_class(self._store.all(STORAGE_CLASS))
        return content if name is None else {**content, "spec": {**spec, "storageClassName": name}}


def default_class(classes: Iterable[StoredObject]) -> str | None:
    """The newest default class; among classes of the same age, the first by name."""
    marked = sorted((one for one in classes if _is_default(one)), key=lambda one: one.key.name)
    marked.sort(key=lambda one: one.content["metadata"]["creationTimestamp"], reverse=True)
    return marked[0].key.name if marked else None


def _is_default(stored: StoredObject) -> bool:
    annotations = stored.content["metadata"].get("annotations") or {}
    names = (DEFAULT_CLASS_ANNOTATION, _BETA_DEFAULT_CLASS)
    return any(annotations.get(name) == "true" for name in names)
