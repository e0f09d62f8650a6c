"""What the quotas of a namespace leave for further copies of a pod.

A copy of a pod has the spec of a pod that passed admission. Only a plugin that counts can refuse
the copy although it did not refuse the first pod. ResourceQuota is the only such plugin.
"""

from collections.abc import Iterable
from typing import cast, final

from bayplan.adapters.embedded.admission.resource_quota import ResourceQuotaAdmission
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.admission_objects import RESOURCE_QUOTA
from bayplan.api.device_objects import DEVICE_CLASS
from bayplan.api.objects import POD, ApiObject, Pod
from bayplan.clock import ManualClock
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import plain, with_kind
from bayplan.objects.keys import key_of_metadata


@final
class QuotaCheck:
    """The quotas of some namespaces of a model, and what is charged to them."""

    def __init__(self, model: ClusterModel, namespaces: Iterable[str]) -> None:
        """The present objects of the model are charged to the quotas."""
        names = frozenset(namespaces)
        self._store = VersionedStore()
        self._plugin: ResourceQuotaAdmission | None = None
        quotas = [q for q in model.objects(RESOURCE_QUOTA) if q.metadata.namespace in names]
        if not quotas or ResourceQuotaAdmission.name not in model.source.admission.names:
            return
        pods = [p for p in model.objects(POD) if p.metadata.namespace in names]
        plugin = ResourceQuotaAdmission(
            self._store, ManualClock(), [cast(Pod, pod) for pod in pods]
        )
        self._plugin = plugin
        for key, each in model.all():
            is_counted = key.namespace in names and key.kind not in (POD, RESOURCE_QUOTA)
            if is_counted or key.kind == DEVICE_CLASS:
                self._put(key.kind, each)
        for quota in quotas:
            self._put(RESOURCE_QUOTA, quota)

    def _put(self, kind: str, each: ApiObject) -> None:
        key = key_of_metadata(kind, each.metadata)
        self._store.put_versioned(key, with_kind(kind, plain(each)), each)

    def refusal(self, kind: str, each: ApiObject) -> str:
        """Why the API server refuses a new object; "": it accepts the object, which is then
        charged."""
        if self._plugin is None:
            return ""
        key = key_of_metadata(kind, each.metadata)
        try:
            self._plugin.validate(key, with_kind(kind, plain(each)), each)
        except ForbiddenError as problem:
            return str(problem)
        self._put(kind, each)
        return ""
