"""The resource claim controller for simulations, with its garbage collection.

The controller creates claims from templates and writes their names to the pods. It removes pods
that have ended or are gone from the users of a claim, and deallocates the devices with the last
user. It deletes claims that were created for a pod that no longer needs them. It acts right after
the change that causes the work, at the same moment. Upstream: pkg/controller/resourceclaim.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, cast, final

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject, VersionedStore
from bayplan.api.device_objects import (
    CLAIM_FINALIZER,
    POD_CLAIM_NAME_ANNOTATION,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    ResourceClaim,
)
from bayplan.api.objects import POD, Pod, PodResourceClaim, is_terminal
from bayplan.objects.keys import Content, ObjectKey, object_key
from bayplan.ports import ApiError

#: The longest prefix of a generated name.
_PREFIX_LENGTH_MAX = 57

#: Calls a function after the present change.
Soon = Callable[[Callable[[], None]], object]


@final
class ClaimController:
    """Follows pods, claims and templates of one store."""

    def __init__(self, server: ApiServer, store: VersionedStore, soon: Soon) -> None:
        self._server = server
        self._store = store
        self._soon = soon
        #: Pods and claims to look at, in order, each once.
        self.waiting: deque[ObjectKey] = deque()
        store.observe(
            self._observe,
            (POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE),
            ignored_changes=(PodChange.ARRIVES, PodChange.IS_BOUND),
        )

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        kind, keys = changed.key.kind, list[ObjectKey]()
        if kind == POD:
            pod = changed.object
            assert isinstance(pod, Pod)
            is_alive = (
                after is not None and after.is_visible and not pod.metadata.deletion_timestamp
            )
            if is_alive and not pod.spec.resource_claims and not self.waiting:
                return
            keys = self._after_pod(before, after)
        elif kind == RESOURCE_CLAIM and after is not None:
            keys = [changed.key]
        elif kind == RESOURCE_CLAIM_TEMPLATE and after is not None:
            keys = [one.key for one in self._store.all(POD) if _lacks_claims(one)]
        for key in keys:
            if key not in self.waiting:
                self.waiting.append(key)
        if self.waiting:
            self.work_soon()

    def work_soon(self) -> None:
        """Do the work that waits. Without a running loop, nothing starts it."""
        self._soon(self._work)

    def _after_pod(
        self, before: StoredObject | None, after: StoredObject | None
    ) -> list[ObjectKey]:
        if after is not None and not _is_done(cast(Pod, after.object)):
            return [after.key] if _lacks_claims(after) else []
        gone = after or before
        assert gone is not None
        pod = cast(Pod, gone.object)
        uid = pod.metadata.uid or ""
        return [
            one.key
            for one in self._store.all(RESOURCE_CLAIM)
            if one.key.namespace == gone.key.namespace and _concerns(one, uid)
        ]

    def _work(self) -> None:
        while self.waiting:
            key = self.waiting.popleft()
            stored = self._store.get(key)
            if stored is None:
                continue
            try:
                if key.kind == POD:
                    self._make_claims(stored)
                else:
                    self._clean_claim(stored)
            except ApiError:
                continue  # another change will follow, and it causes another try

    # ---- claims for pods --------------------------------------------------------------------

    def _make_claims(self, stored: StoredObject) -> None:
        """Create the claims that a pod lacks. Raises ApiError."""
        pod = cast(Pod, stored.object)
        if not _lacks_claims(stored) or _is_done(pod):
            return
        claim_names = {
            each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
        }
        for named in pod.spec.resource_claims or ():
            if named.resource_claim_template_name is not None and named.name not in claim_names:
                made = self._claim_for(stored, pod, named)
                if made is not None:
                    claim_names[named.name] = made
        statuses = [
            {"name": name, "resourceClaimName": claim}
            for name, claim in sorted(claim_names.items())
        ]
        self._server.patch(stored.key, {"status": {"resourceClaimStatuses": statuses}})

    def _claim_for(self, stored: StoredObject, pod: Pod, named: PodResourceClaim) -> str | None:
        """The name of a new claim; None: the template does not exist yet. Raises ApiError."""
        namespace = stored.key.namespace
        template_name = named.resource_claim_template_name or ""
        template = self._store.get(object_key(RESOURCE_CLAIM_TEMPLATE, namespace, template_name))
        if template is None:
            return None
        spec: Content = template.content.get("spec") or {}
        template_meta: Content = spec.get("metadata") or {}
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
            "controller": True,
        }
        meta = {
            "generateName": _prefix(pod.metadata.name, named.name),
            "namespace": namespace,
            "labels": template_meta.get("labels") or {},
            "annotations": {
                **(template_meta.get("annotations") or {}),
                POD_CLAIM_NAME_ANNOTATION: named.name,
            },
            "ownerReferences": [owner],
        }
        api_version, _, kind = RESOURCE_CLAIM.partition(" ")
        content = {"apiVersion": api_version, "kind": kind, "metadata": meta}
        return self._server.create({**content, "spec": spec.get("spec") or {}}).key.name

    # ---- claims that are no longer needed ---------------------------------------------------

    def _clean_claim(self, stored: StoredObject) -> None:
        """Raises ApiError."""
        claim = cast(ResourceClaim, stored.object)
        users: list[Content] = (stored.content.get("status") or {}).get("reservedFor") or []
        remaining = [user for user in users if self._still_uses(stored.key.namespace, user)]
        has_finalizer = CLAIM_FINALIZER in (claim.metadata.finalizers or ())
        is_leaving = claim.metadata.deletion_timestamp is not None
        if len(remaining) < len(users) or (is_leaving and has_finalizer and not remaining):
            self._server.patch(stored.key, _released(claim, remaining))
        if not remaining and not is_leaving and self._owner_is_gone(stored):
            self._server.delete(stored.key)

    def _still_uses(self, namespace: str, user: Content) -> bool:
        """Whether the user still needs the claim. Users other than pods are assumed to need it."""
        if user.get("resource") != "pods" or user.get("apiGroup"):
            return True
        pod = self._pod(namespace, user.get("name") or "")
        return pod is not None and pod.metadata.uid == user.get("uid") and not _is_done(pod)

    def _owner_is_gone(self, stored: StoredObject) -> bool:
        owners = cast(ResourceClaim, stored.object).metadata.owner_references or ()
        for owner in owners:
            if owner.controller and owner.kind == "Pod":
                pod = self._pod(stored.key.namespace, owner.name)
                return pod is None or pod.metadata.uid != owner.uid or _is_done(pod)
        return False

    def _pod(self, namespace: str, name: str) -> Pod | None:
        stored = self._store.get(object_key(POD, namespace, name))
        return None if stored is None else cast(Pod, stored.object)


def _released(claim: ResourceClaim, remaining: list[Content]) -> Content:
    """A claim without further users loses its devices."""
    status: dict[str, Any] = {"reservedFor": remaining or None}
    if remaining:
        return {"status": status}
    finalizers = [f for f in claim.metadata.finalizers or () if f != CLAIM_FINALIZER]
    cleared = {**status, "allocation": None, "devices": None}
    return {"metadata": {"finalizers": finalizers or None}, "status": cleared}


def _concerns(stored: StoredObject, uid: str) -> bool:
    """Whether the pod of this uid uses the claim or owns it."""
    claim = cast(ResourceClaim, stored.object)
    owners = claim.metadata.owner_references or ()
    return claim.is_reserved_for(uid) or any(owner.uid == uid for owner in owners)


def _lacks_claims(stored: StoredObject) -> bool:
    pod = cast(Pod, stored.object)
    if not pod.spec.resource_claims:
        return False
    claim_names = {each.name for each in pod.status.resource_claim_statuses or ()}
    return pod.metadata.deletion_timestamp is None and any(
        named.resource_claim_template_name is not None and named.name not in claim_names
        for named in pod.spec.resource_claims or ()
    )


def _is_done(pod: Pod) -> bool:
    """Whether the pod has ended, or was deleted before it was placed."""
    is_deleted = pod.metadata.deletion_timestamp is not None
    return is_terminal(pod) or (is_deleted and not pod.spec.node_name)


def _prefix(pod_name: str, claim_name: str) -> str:
    """A prefix from both names, shortened in proportion to the maximum length."""
    whole = f"{pod_name}-{claim_name}-"
    if len(whole) <= _PREFIX_LENGTH_MAX:
        return whole
    of_pod = pod_name[: len(pod_name) * _PREFIX_LENGTH_MAX // len(whole)]
    shortened = f"{of_pod}-{claim_name}"
    return of_pod + "-" + claim_name[: len(claim_name) * _PREFIX_LENGTH_MAX // len(shortened)]
