"""The resource claim controller for simulations, with its garbage collection.

The controller creates claims from templates and writes their names to the pods. It removes pods
that have ended or are gone from the users of a claim, and deallocates the devices with the last
user. It deletes claims that were created for a pod that no longer needs them. It acts right after
the change that causes the work, at the same moment. Upstream: pkg/controller/resourceclaim.

A pod that came with its node becomes a user of its claims that have devices.

Under the gate DRAWorkloadResourceClaims, an entry of a pod that equals an entry of its PodGroup
names a claim of the group: it is created for the group, and each pod reports its name, too. A
group is a user until it is gone, which `group_protection` defers. Without the gate, an API server
drops the claims of PodGroups, so that each pod gets claims of its own.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, cast, final

from bayplan.adapters.embedded.api_server import ApiServer, Soon
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject, VersionedStore
from bayplan.api.device_objects import (
    POD_CLAIM_NAME_ANNOTATION,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    ResourceClaim,
)
from bayplan.api.finalizers import CLAIM_PROTECTION
from bayplan.api.object_meta import controller_of
from bayplan.api.objects import POD, Pod, PodResourceClaim, is_terminal
from bayplan.api.pod_groups import (
    UPSTREAM_GROUP,
    UPSTREAM_KINDS,
    PodGroupResourceClaim,
    UpstreamPodGroup,
    group_entry,
)
from bayplan.objects.keys import Content, ObjectKey, object_key
from bayplan.ports import ApiError

#: The longest prefix of a generated name.
_PREFIX_LENGTH_MAX = 57


@final
class ClaimController:
    """Follows pods, groups, claims and templates of one store."""

    def __init__(
        self, server: ApiServer, store: VersionedStore, soon: Soon, *, has_group_claims: bool
    ) -> None:
        """``has_group_claims``: whether the gate DRAWorkloadResourceClaims is on."""
        self._server = server
        self._store = store
        self._soon = soon
        self._group_kinds = UPSTREAM_KINDS if has_group_claims else ()
        #: Pods, groups and claims to look at, in order, each once.
        self.waiting: deque[ObjectKey] = deque()
        #: Claim → the pods on nodes that become its users when it has devices.
        self._future_users: dict[ObjectKey, list[ObjectKey]] = {}
        store.observe(
            self._observe,
            (POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, *self._group_kinds),
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
        elif kind == RESOURCE_CLAIM:
            users = self._future_users.pop(changed.key, ())
            keys = [changed.key, *users] if after is not None else self._group_of(changed)
        elif kind == RESOURCE_CLAIM_TEMPLATE and after is not None:
            keys = [
                one.key
                for kind in (*self._group_kinds, POD)
                for one in self._store.all(kind)
                if self._lacks_claims(one)
            ]
        elif kind in self._group_kinds:
            keys = self._after_group(before, after)
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
        changed = after or before
        assert changed is not None
        if after is None or _is_done(cast(Pod, after.object)):
            return self._claims_that_concern(changed)
        has_work = self._lacks_claims(after) or any(self._unused_claims(after))
        return [after.key] if has_work else []

    def _after_group(
        self, before: StoredObject | None, after: StoredObject | None
    ) -> list[ObjectKey]:
        if after is None:
            assert before is not None
            return self._claims_that_concern(before)
        group = cast(UpstreamPodGroup, after.object)
        if before is not None and not group.spec.resource_claims:
            return []
        members = [
            one.key
            for one in self._store.all(POD)
            if self._lacks_claims(one) and self._is_member(one, after.key)
        ]
        return [after.key, *members] if self._lacks_claims(after) else members

    def _claims_that_concern(self, gone: StoredObject) -> list[ObjectKey]:
        """The claims that an object uses or owns."""
        uid = gone.object.metadata.uid or ""
        return [
            one.key
            for one in self._store.all(RESOURCE_CLAIM)
            if one.key.namespace == gone.key.namespace and _concerns(one, uid)
        ]

    def _group_of(self, claim: StoredObject) -> list[ObjectKey]:
        """The group that a deleted claim was made for."""
        owner = controller_of(claim.object.metadata)
        if owner is None or owner.kind != "PodGroup":
            return []
        group = self._group(claim.key.namespace, owner.name)
        return [] if group is None else [group.key]

    def _work(self) -> None:
        while self.waiting:
            key = self.waiting.popleft()
            stored = self._store.get(key)
            if stored is None:
                continue
            try:
                if key.kind == RESOURCE_CLAIM:
                    self._clean_claim(stored)
                    continue
                self._make_claims(stored)
                if key.kind == POD:
                    self._use_claims(self._server.get(key))
            except ApiError:
                continue  # another change will follow, and it causes another try

    # ---- claims from templates --------------------------------------------------------------

    def _make_claims(self, stored: StoredObject) -> None:
        """Create the claims that a pod or a group lacks. Raises ApiError."""
        owner = cast(Pod | UpstreamPodGroup, stored.object)
        if not self._lacks_claims(stored) or (isinstance(owner, Pod) and _is_done(owner)):
            return
        shared = self._shared_claims(stored)
        if shared is None:
            return  # the creation of the group causes another try
        claim_names = self._made(stored)
        for named in owner.spec.resource_claims or ():
            if named.resource_claim_template_name is not None and named.name not in claim_names:
                entry = group_entry(named)
                is_shared = entry in shared
                made = shared[entry] if is_shared else self._claim_for(stored, entry)
                if made is not None:
                    claim_names[named.name] = made
        statuses = [
            {"name": name, "resourceClaimName": claim}
            for name, claim in sorted(claim_names.items())
        ]
        self._server.patch(stored.key, {"status": {"resourceClaimStatuses": statuses}})

    def _made(self, stored: StoredObject) -> dict[str, str | None]:
        """The names of the claims that were made, by entry; None: the entry needs no claim. Only a
        group notices that one of them is gone: kube-controller-manager remembers for an hour which
        claims it has made."""
        owner = cast(Pod | UpstreamPodGroup, stored.object)
        is_pod = isinstance(owner, Pod)
        return {
            each.name: each.resource_claim_name
            for each in owner.status.resource_claim_statuses or ()
            if is_pod
            or each.resource_claim_name is None
            or self._store.get(self._claim_key(stored, each.resource_claim_name)) is not None
        }

    @staticmethod
    def _claim_key(owner: StoredObject, name: str) -> ObjectKey:
        return object_key(RESOURCE_CLAIM, owner.key.namespace, name)

    def _lacks_claims(self, stored: StoredObject) -> bool:
        owner = cast(Pod | UpstreamPodGroup, stored.object)
        if not owner.spec.resource_claims or owner.metadata.deletion_timestamp is not None:
            return False
        claim_names = self._made(stored)
        return any(
            named.resource_claim_template_name is not None and named.name not in claim_names
            for named in owner.spec.resource_claims
        )

    def _shared_claims(
        self, stored: StoredObject
    ) -> dict[PodGroupResourceClaim, str | None] | None:
        """The entries of a pod's group, with the names of the claims that exist. None: the group
        does not exist, or its entries are not understood."""
        pod = stored.object
        name = self._group_name(pod) if isinstance(pod, Pod) else ""
        if not name:
            return {}
        found = self._group(stored.key.namespace, name)
        if found is None:
            return None
        group, made = cast(UpstreamPodGroup, found.object), self._made(found)
        entries = group.spec.resource_claims or ()
        if any(e.resource_claim_name is e.resource_claim_template_name is None for e in entries):
            return None
        return {each: made.get(each.name) for each in entries}

    def _claim_for(self, stored: StoredObject, named: PodGroupResourceClaim) -> str | None:
        """The name of a new claim; None: the template does not exist yet. Raises ApiError."""
        namespace, owner = stored.key.namespace, stored.object
        template_name = named.resource_claim_template_name or ""
        template = self._store.get(object_key(RESOURCE_CLAIM_TEMPLATE, namespace, template_name))
        if template is None:
            return None
        spec: Content = template.content.get("spec") or {}
        template_meta: Content = spec.get("metadata") or {}
        owner_version, _, owner_kind = stored.key.kind.partition(" ")
        reference = {
            "apiVersion": owner_version,
            "kind": owner_kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": True,
        }
        labels = template_meta.get("labels")
        meta = {
            "generateName": _prefix(owner.metadata.name, named.name),
            "namespace": namespace,
            **({"labels": labels} if labels else {}),
            "annotations": {
                **(template_meta.get("annotations") or {}),
                POD_CLAIM_NAME_ANNOTATION: named.name,
            },
            "ownerReferences": [reference],
        }
        api_version, _, kind = RESOURCE_CLAIM.partition(" ")
        content = {"apiVersion": api_version, "kind": kind, "metadata": meta}
        return self._server.create({**content, "spec": spec.get("spec") or {}}).key.name

    # ---- pods on nodes that do not use their claims yet ---------------------------------------

    def _unused_claims(self, stored: StoredObject) -> Iterator[tuple[PodResourceClaim, ObjectKey]]:
        """The entries of a pod on a node whose claims, which need not exist, have neither the pod
        nor its group as a user."""
        pod = stored.placed_pod
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        made = self._made(stored)
        for named in pod.spec.resource_claims or ():
            name = named.resource_claim_name or made.get(named.name)
            if name is not None:
                key = self._claim_key(stored, name)
                found = self._store.get(key)
                if found is None or not self._is_user(pod, cast(ResourceClaim, found.object)):
                    yield named, key

    def _is_user(self, pod: Pod, claim: ResourceClaim) -> bool:
        name = self._group_name(pod)
        is_of_group = bool(name) and claim.is_reserved_for_group(name)
        return is_of_group or claim.is_reserved_for(pod.metadata.uid or "")

    def _use_claims(self, stored: StoredObject) -> None:
        """Make a pod on a node a user of its claims that have devices. Raises ApiError."""
        for named, key in self._unused_claims(stored):
            found = self._store.get(key)
            if found is None or cast(ResourceClaim, found.object).allocation is None:
                self._future_users.setdefault(key, []).append(stored.key)
                continue
            shared = self._shared_claims(stored)
            if shared is None or (
                named.resource_claim_template_name and not self._is_made_for(stored, found)
            ):
                return
            user = self._as_user(stored, of_group=group_entry(named) in shared)
            users: list[Content] = found.content["status"].get("reservedFor") or []
            self._server.patch(key, {"status": {"reservedFor": [*users, user]}})

    def _as_user(self, stored: StoredObject, *, of_group: bool) -> Content:
        """The pod, or its group, as claims name it."""
        pod = cast(Pod, stored.object)
        if not of_group:
            return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        group = self._group(stored.key.namespace, self._group_name(pod))
        assert group is not None, "the claims of a group are shared"
        meta = group.object.metadata
        return {
            "apiGroup": UPSTREAM_GROUP,
            "resource": "podgroups",
            "name": meta.name,
            "uid": meta.uid,
        }

    def _is_made_for(self, stored: StoredObject, claim: StoredObject) -> bool:
        """Whether a claim was made for the pod or for its group."""
        pod = cast(Pod, stored.object)
        group = ("PodGroup", self._group_name(pod))
        owner = controller_of(claim.object.metadata)
        if owner is None:
            return False
        return owner.uid == pod.metadata.uid or (owner.kind, owner.name) == group

    # ---- claims that are no longer needed ---------------------------------------------------

    def _clean_claim(self, stored: StoredObject) -> None:
        """Raises ApiError."""
        claim = cast(ResourceClaim, stored.object)
        users: list[Content] = (stored.content.get("status") or {}).get("reservedFor") or []
        remaining = [user for user in users if self._still_uses(stored.key.namespace, user)]
        has_finalizer = CLAIM_PROTECTION in (claim.metadata.finalizers or ())
        is_leaving = claim.metadata.deletion_timestamp is not None
        if len(remaining) < len(users) or (is_leaving and has_finalizer and not remaining):
            self._server.patch(stored.key, _released(claim, remaining))
        if not remaining and not is_leaving and self._owner_is_gone(stored):
            self._server.delete(stored.key)

    def _still_uses(self, namespace: str, user: Content) -> bool:
        """Whether the user still needs the claim. Users other than pods and groups are assumed to
        need it."""
        name, uid = user.get("name") or "", user.get("uid") or ""
        match (user.get("apiGroup") or "", user.get("resource")):
            case ("", "pods"):
                return self._needs_claims(namespace, name, uid)
            case (api_group, "podgroups") if api_group == UPSTREAM_GROUP and self._group_kinds:
                return self._is_group(namespace, name, uid)
            case _:
                return True

    def _owner_is_gone(self, stored: StoredObject) -> bool:
        owner, namespace = controller_of(stored.object.metadata), stored.key.namespace
        if owner is None:
            return False
        if owner.kind == "Pod":
            return not self._needs_claims(namespace, owner.name, owner.uid)
        if owner.kind == "PodGroup" and self._group_kinds:
            return not self._is_group(namespace, owner.name, owner.uid)
        return False

    def _needs_claims(self, namespace: str, name: str, uid: str) -> bool:
        stored = self._store.get(object_key(POD, namespace, name))
        if stored is None:
            return False
        pod = cast(Pod, stored.object)
        return pod.metadata.uid == uid and not _is_done(pod)

    # ---- groups -----------------------------------------------------------------------------

    def _is_group(self, namespace: str, name: str, uid: str) -> bool:
        """Whether the group of this name has the uid."""
        group = self._group(namespace, name)
        return group is not None and group.object.metadata.uid == uid

    def _group(self, namespace: str, name: str) -> StoredObject | None:
        """The PodGroup of this name, in whatever version the store has it."""
        for kind in self._group_kinds:
            stored = self._store.get(object_key(kind, namespace, name))
            if stored is not None:
                return stored
        return None

    def _group_name(self, pod: Pod) -> str:
        """The PodGroup that a pod names; "": none, or it has no claims."""
        group = pod.spec.scheduling_group if self._group_kinds else None
        return "" if group is None else group.pod_group_name or ""

    def _is_member(self, stored: StoredObject, group: ObjectKey) -> bool:
        is_near = stored.key.namespace == group.namespace
        return is_near and self._group_name(cast(Pod, stored.object)) == group.name


def _released(claim: ResourceClaim, remaining: list[Content]) -> Content:
    """A claim without further users loses its devices."""
    status: dict[str, Any] = {"reservedFor": remaining or None}
    if remaining:
        return {"status": status}
    finalizers = [f for f in claim.metadata.finalizers or () if f != CLAIM_PROTECTION]
    cleared = {**status, "allocation": None, "devices": None}
    return {"metadata": {"finalizers": finalizers or None}, "status": cleared}


def _concerns(stored: StoredObject, uid: str) -> bool:
    """Whether the object of this uid uses the claim or owns it."""
    claim = cast(ResourceClaim, stored.object)
    owners = claim.metadata.owner_references or ()
    return claim.is_reserved_for(uid) or any(owner.uid == uid for owner in owners)


def _is_done(pod: Pod) -> bool:
    """Whether the pod has ended, or was deleted before it was placed."""
    is_deleted = pod.metadata.deletion_timestamp is not None
    return is_terminal(pod) or (is_deleted and not pod.spec.node_name)


def _prefix(owner_name: str, claim_name: str) -> str:
    """A prefix from both names, shortened in proportion to the maximum length."""
    whole = f"{owner_name}-{claim_name}-"
    if len(whole) <= _PREFIX_LENGTH_MAX:
        return whole
    parts = (
        name[: len(name) * _PREFIX_LENGTH_MAX // len(whole)] for name in (owner_name, claim_name)
    )
    return "-".join(parts)
