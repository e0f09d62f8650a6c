"""NamespaceLifecycle: nothing new is created in a namespace that is being deleted.

A namespace that does not exist is made by the simulation, so none is missing here. Upstream:
k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
"""

from typing import final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import NAMESPACE, ApiObject
from bayplan.objects.keys import Content, ObjectKey


@final
class NamespaceLifecycle(AdmissionPlugin):
    """See the module."""

    name = "NamespaceLifecycle"
    refused_kinds = None
    read_kinds = (NAMESPACE,)

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        stored = self._store.get(ObjectKey(NAMESPACE, "", key.namespace)) if key.namespace else None
        if stored is not None and stored.object.metadata.deletion_timestamp is not None:
            raise ForbiddenError(
                key,
                f"unable to create new content in namespace {key.namespace} because it is being"
                " terminated",
            )
