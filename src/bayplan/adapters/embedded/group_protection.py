"""The controller that lets a deleted PodGroup go when its last pod has ended.

A PodGroup with the finalizer podgroup-protection stays, being deleted, as long as a pod that has
not ended names it. The finalizer proves that the cluster has the controller, so it runs whatever
the gates are. Upstream: pkg/controller/scheduling/podgroupprotection.
"""

from contextlib import suppress
from typing import cast, final

from bayplan.adapters.embedded.api_server import ApiServer, Soon
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.finalizers import POD_GROUP_PROTECTION
from bayplan.api.objects import POD, Pod, is_terminal
from bayplan.api.pod_groups import UPSTREAM_KINDS
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.ports import ApiError


@final
class GroupProtection:
    """Follows the groups of one store, and the pods while a protected group is being deleted."""

    def __init__(self, server: ApiServer, store: VersionedStore, soon: Soon) -> None:
        self._server = server
        self._store = store
        self._soon = soon
        #: Protected groups that are being deleted, and their pods that have not ended. Only read
        #: it.
        self.leaving: dict[ObjectKey, set[ObjectKey]] = {}
        store.observe(self._see_group, UPSTREAM_KINDS)
        store.observe(self._see_pod, (POD,), is_active=lambda: bool(self.leaving))

    def _see_group(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is not None and _is_leaving(after):
            if after.key not in self.leaving:
                users = (one.key for one in self._store.all(POD) if _uses(one, after.key))
                self.leaving[after.key] = set(users)
                self._store.renew_observers()
            self.work_soon()
        elif before is not None and self.leaving.pop(before.key, None) is not None:
            self._store.renew_observers()

    def _see_pod(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        name = _group_name(changed)
        for kind in UPSTREAM_KINDS if name else ():
            group = object_key(kind, changed.key.namespace, name)
            users = self.leaving.get(group)
            if users is None:
                continue
            if after is not None and _uses(after, group):
                users.add(after.key)
            else:
                users.discard(changed.key)
                self.work_soon()

    def work_soon(self) -> None:
        """Let groups without users go. Without a running loop, nothing starts it."""
        if not all(self.leaving.values()):
            self._soon(self._work)

    def _work(self) -> None:
        for key in [key for key, users in self.leaving.items() if not users]:
            stored = self._store.get(key)
            if stored is None or not _is_leaving(stored):
                continue
            finalizers = stored.object.metadata.finalizers or ()
            left = [one for one in finalizers if one != POD_GROUP_PROTECTION]
            with suppress(ApiError):
                self._server.patch(key, {"metadata": {"finalizers": left or None}})


def _is_leaving(group: StoredObject) -> bool:
    """Whether a group is being deleted, and the finalizer keeps it."""
    meta = group.object.metadata
    is_protected = POD_GROUP_PROTECTION in (meta.finalizers or ())
    return is_protected and meta.deletion_timestamp is not None


def _uses(stored: StoredObject, group: ObjectKey) -> bool:
    """Whether a pod names the group and has not ended."""
    is_member = (stored.key.namespace, _group_name(stored)) == (group.namespace, group.name)
    return is_member and not is_terminal(cast(Pod, stored.object))


def _group_name(stored: StoredObject) -> str:
    """The PodGroup that a pod names; "": none."""
    group = cast(Pod, stored.object).spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""
