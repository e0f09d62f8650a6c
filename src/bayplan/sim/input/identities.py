"""Names and uids of the objects of an input, and the references that name them.

An object without a name gets one from its ``generateName``, as the API server makes it: before the
simulation, because the pods of a controller refer to its name. A uid belongs to one object. If the
input has it twice (a pod that was copied from `kubectl get -o yaml` and renamed), the first object
keeps it, and each further one gets a uid of its own. Then the references that mean this object get
the new uid, too.

An owner reference means the object that it names, whatever its uid: an owner that was written by
hand has no uid, or another one than in the cluster from which its pods came. A reference whose name
no object has stays as it is.

Each replacement is a remark for the reader, except the uid of an object that has none: the server
makes it, as usual.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, final

from bayplan.adapters.embedded.field_validation import generated_name, stable_uid
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME, ApiObject
from bayplan.objects.keys import ObjectKey, is_namespaced, key_of, kind_of
from bayplan.objects.object_store import ObjectStore
from bayplan.sim.input.errors import LINES_MAX
from bayplan.sim.input.object_checks import ObjectIndex
from bayplan.sim.input.workload import Content


@final
class Identities:
    """The names and uids of one input."""

    def __init__(self, index: ObjectIndex, present: ObjectStore[ApiObject]) -> None:
        """``present``: objects that exist besides the input."""
        self._index = index
        self._present = present
        #: Uids of the input.
        self._keys: dict[str, ObjectKey] = {}
        #: Objects whose uid was replaced, each with the uid in the input.
        self._replaced: dict[ObjectKey, str] = {}
        #: The number of generated names by kind and namespace.
        self._generated: Counter[tuple[str, str]] = Counter()
        self._repeated: list[str] = []
        #: Owners to which objects refer with another uid, and these objects.
        self._misnamed: dict[ObjectKey, list[ObjectKey]] = {}

    def with_name(self, content: Content) -> Content:
        """The object with a name, which may follow from generateName."""
        meta = content["metadata"]
        prefix = meta.get("generateName")
        if meta.get("name") or not prefix:
            return content
        key = key_of(content)
        while True:
            self._generated[key.kind, key.namespace] += 1
            name = generated_name(key, prefix, self._generated[key.kind, key.namespace])
            if not self._is_taken(key._replace(name=name)):
                return {**content, "metadata": {**meta, "name": name}}

    def _is_taken(self, key: ObjectKey) -> bool:
        bare_kind = key.kind.rpartition(" ")[2]
        return key in self._present or self._index.was_named(bare_kind, key.namespace, key.name)

    def uid_in_input(self, key: ObjectKey) -> str | None:
        """The uid that an object of the index had in the input."""
        return self._replaced.get(key) or self._index[key]["metadata"].get("uid")

    def with_own_uid(self, content: Content) -> Content:
        """The object, with a new uid if another object has its uid."""
        meta = content["metadata"]
        uid = meta.get("uid")
        if not uid:
            return content
        key = key_of(content)
        first = self._present.key_of_uid(uid) or self._keys.setdefault(uid, key)
        if first == key:
            return content
        self._replaced[key] = uid
        self._repeated.append(f"{key} has the uid of {first}, so it got a new one")
        return {**content, "metadata": {**meta, "uid": self._new_uid(key)}}

    def _new_uid(self, key: ObjectKey) -> str:
        number = 0
        while (uid := stable_uid(key, number)) in self._keys or self._present.key_of_uid(uid):
            number += 1
        self._keys[uid] = key
        return uid

    # ---- references -------------------------------------------------------------------------

    def mend_all(self) -> None:
        """Mend the references of all objects of the index."""
        for key, content in list(self._index.objects.items()):
            if not self._replaced and "ownerReferences" not in content["metadata"]:
                continue
            mended = self.with_references(key, content)
            if mended is not content:
                self._index.replace(key, mended)

    def with_references(self, key: ObjectKey, content: Content) -> Content:
        """The object, with references that have the uids of the objects that they name."""
        owners = content["metadata"].get("ownerReferences")
        if owners:
            mended = [self._owner(key, one) for one in owners]
            if mended != owners:
                meta = {**content["metadata"], "ownerReferences": mended}
                content = {**content, "metadata": meta}
        if not self._replaced:
            return content
        if key.kind == RESOURCE_CLAIM:
            return self._with_consumers(key, content)
        return self._with_claim(content) if key.kind == PERSISTENT_VOLUME else content

    def _owner(self, dependent: ObjectKey, reference: Content) -> Content:
        """An owner reference with the uid of the object that it names."""
        uid = reference.get("uid")
        owner = self._named(reference, dependent.namespace)
        if not uid or owner is None:
            return reference
        own_uid = self._index[owner]["metadata"].get("uid")
        if not own_uid or own_uid == uid:
            return reference
        if self._replaced.get(owner) != uid:
            self._misnamed.setdefault(owner, []).append(dependent)
        return {**reference, "uid": own_uid}

    def _named(self, reference: Content, namespace: str) -> ObjectKey | None:
        """The object that an owner reference names; None: there is none, or there are several."""
        kind, name = reference.get("kind"), reference.get("name")
        if not isinstance(kind, str) or not isinstance(name, str):
            return None
        named = self._index.named(kind, namespace if is_namespaced(kind) else "", name)
        if len(named) > 1:
            named = [one for one in named if one.kind == kind_of(reference)]
        return named[0] if len(named) == 1 else None

    def _with_consumers(self, key: ObjectKey, claim: Content) -> Content:
        """A resource claim that is reserved for pods with replaced uids."""
        status = claim.get("status") or {}
        consumers: list[Content] = status.get("reservedFor") or []
        mended = [
            self._with_new_uid(one, ObjectKey("v1 Pod", key.namespace, one.get("name", "")))
            for one in consumers
        ]
        if mended == consumers:
            return claim
        return {**claim, "status": {**status, "reservedFor": mended}}

    def _with_claim(self, volume: Content) -> Content:
        """A PersistentVolume that is bound to a claim with a replaced uid."""
        spec: Content = volume.get("spec") or {}
        claim: Any = spec.get("claimRef") or {}
        namespace, name = claim.get("namespace", ""), claim.get("name", "")
        mended = self._with_new_uid(claim, ObjectKey("v1 PersistentVolumeClaim", namespace, name))
        return volume if mended is claim else {**volume, "spec": {**spec, "claimRef": mended}}

    def _with_new_uid(self, reference: Content, key: ObjectKey) -> Content:
        old = self._replaced.get(key)
        if old is None or reference.get("uid") != old or key not in self._index:
            return reference
        return {**reference, "uid": self._index[key]["metadata"]["uid"]}

    # ---- remarks ----------------------------------------------------------------------------

    def notes(self) -> list[str]:
        """Notes for the reader about what was replaced."""
        lines = [*self._repeated, *self._references()]
        more = len(lines) - LINES_MAX
        return [*lines[:LINES_MAX], *([f"and {more:,} more uids were replaced"] * (more > 0))]

    def _references(self) -> Iterator[str]:
        for owner, dependents in self._misnamed.items():
            count = len(dependents)
            more = f" and {count - 1:,} more refer" if count > 1 else " refers"
            yield f"{dependents[0]}{more} to {owner} with another uid: the name counts"
