"""The store of a cluster's objects behaves as a naive one does, with its undo."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from bayplan.api.object_meta import ObjectMeta, OwnerReference
from bayplan.api.objects import NAMESPACE, SERVICE, ApiObject, decode
from bayplan.objects.keys import ObjectKey, key_of_metadata
from bayplan.objects.object_store import ObjectStore

KINDS = (SERVICE, "v1 ConfigMap")
#: Few, so that steps meet.
KEYS = [
    *(ObjectKey(SERVICE, namespace, name) for namespace, name in ("ax", "ay", "bx")),
    *(ObjectKey(KINDS[1], "a", name) for name in "xy"),
]
OWNERS = ("o", "p")


def object_of(key: ObjectKey, uid: str = "", *owners: str) -> ApiObject:
    meta = {"name": key.name, "namespace": key.namespace, "uid": uid}
    decoded: ApiObject = decode(key.kind, {"metadata": meta})
    references = tuple(OwnerReference(uid=owner) for owner in owners)
    meta = replace(decoded.metadata, owner_references=references or None)
    return replace(decoded, metadata=meta)


def service(name: str, namespace: str = "a", **labels: str) -> Any:
    return decode(SERVICE, {"metadata": {"name": name, "namespace": namespace, "labels": labels}})


def names(services: Any) -> list[str]:
    return [f"{each.metadata.namespace}/{each.metadata.name}" for each in services]


# ---- the machine ----------------------------------------------------------------------------


class StoreMachine(RuleBasedStateMachine):
    """A store beside a dictionary, which is copied at each mark."""

    def __init__(self) -> None:
        super().__init__()
        self.store = ObjectStore[ApiObject]()
        self.naive: dict[ObjectKey, ApiObject] = {}
        #: Key → the number of its addition.
        self.arrivals: dict[ObjectKey, int] = {}
        self.marks: list[tuple[int, dict[ObjectKey, ApiObject], dict[ObjectKey, int]]] = []
        self.seen: dict[ObjectKey, ApiObject] = {}
        self.number = 0
        self.was_marked = False

    @initialize(is_observed=st.booleans())
    def observe(self, is_observed: bool) -> None:
        """Without observers, a store does less."""
        self.is_observed = is_observed
        for kind in KINDS if is_observed else ():
            self.store.observe(kind, self.see)

    def see(self, before: ApiObject | None, after: ApiObject | None) -> None:
        some = before or after
        assert some is not None
        kind = SERVICE if isinstance(some, type(object_of(KEYS[0]))) else KINDS[1]
        key = key_of_metadata(kind, some.metadata)
        assert self.seen.get(key) is before
        if after is None:
            del self.seen[key]
        else:
            self.seen[key] = after

    @rule(
        key=st.sampled_from(KEYS),
        owners=st.lists(st.sampled_from(OWNERS), max_size=2, unique=True),
        has_uid=st.booleans(),
        is_same=st.booleans(),
    )
    def put(self, key: ObjectKey, owners: list[str], has_uid: bool, is_same: bool) -> None:
        self.number += 1
        before = self.naive.get(key)
        uid = f"u{self.number}" if has_uid else ""
        if before is not None and is_same:
            uid = before.metadata.uid or ""
        added = object_of(key, uid, *owners)
        assert self.store.put(key, added) is before
        self.arrivals.setdefault(key, self.number)
        self.naive[key] = added

    @rule(key=st.sampled_from(KEYS))
    def remove(self, key: ObjectKey) -> None:
        assert self.store.remove(key) is self.naive.pop(key, None)
        self.arrivals.pop(key, None)

    @rule()
    def mark(self) -> None:
        self.was_marked = True
        mark = self.store.mark()
        self.marks.append((mark, dict(self.naive), dict(self.arrivals)))

    @precondition(lambda self: self.marks)
    @rule(is_renewed=st.booleans())
    def rollback(self, is_renewed: bool) -> None:
        mark, naive, arrivals = self.marks.pop()
        now = dict(self.naive)
        renewed = renewed_in_place if is_renewed else lambda each: each
        for reversal in self.store.rollback(mark, renewed):
            assert now.get(reversal.key) is reversal.undone
            if reversal.restored is None:
                del now[reversal.key]
            else:
                now[reversal.key] = reversal.restored
        # A renewed object equals the one at the mark but for its version.
        assert {key: plain(each) for key, each in now.items()} == {
            key: plain(each) for key, each in naive.items()
        }
        self.naive, self.arrivals = now, arrivals

    @rule(keys=st.lists(st.sampled_from(KEYS), max_size=3))
    def try_without(self, keys: list[ObjectKey]) -> None:
        self.mark()
        for key in keys:
            self.remove(key)
        self.rollback(False)

    @rule(uid_number=st.integers(1, 40), owner=st.sampled_from(OWNERS))
    def look_up(self, uid_number: int, owner: str) -> None:
        uid = f"u{uid_number}"
        having = [key for key, each in self.naive.items() if each.metadata.uid == uid]
        assert self.store.key_of_uid(uid) == (having[0] if having else None)
        owned = {
            key
            for key, each in self.naive.items()
            if owner in {one.uid for one in each.metadata.owner_references or ()}
        }
        assert set(self.store.owned_by(owner)) == owned
        assert len(self.store.owned_by(owner)) == len(owned)

    @rule(kind=st.sampled_from(KINDS), namespace=st.sampled_from((None, "a", "b", "none")))
    def list(self, kind: str, namespace: str | None) -> None:
        listed = [
            each
            for key, each in sorted(self.naive.items())
            if key.kind == kind and namespace in (None, key.namespace)
        ]
        lister = self.store.of(kind)
        assert [*lister.list(namespace)] == listed
        assert len(lister) == sum(key.kind == kind for key in self.naive)

    @rule(key=st.sampled_from(KEYS))
    def change_a_copy(self, key: ObjectKey) -> None:
        copied = self.store.copy()
        assert dict(copied) == self.naive
        copied.remove(key)
        copied.put(key._replace(name="other"), object_of(key, "other"))
        copied.validate()

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        assert dict(self.store) == self.naive
        assert len(self.store) == len(self.naive)
        for key in KEYS:
            assert self.store.get(key) is self.naive.get(key)
            assert (key in self.store) == (key in self.naive)
        for kind in KINDS:
            of_kind = {key: each for key, each in self.naive.items() if key.kind == kind}
            assert dict(self.store.items(kind)) == of_kind
            assert self.store.all(kind) == [each for _, each in self.store.items(kind)]
        if self.is_observed:
            assert self.seen == self.naive
        self.store.validate()

    @precondition(lambda self: self.was_marked)
    @invariant()
    def numbers_arrivals(self) -> None:
        in_order = sorted(self.naive, key=self.store.arrival)
        # Before the first mark, objects count as added kind by kind.
        for kind in KINDS:
            of_kind = [key for key in in_order if key.kind == kind]
            assert of_kind == sorted(of_kind, key=self.arrivals.__getitem__)


def plain(each: ApiObject) -> ApiObject:
    return replace(each, metadata=replace(each.metadata, resource_version=None))


def renewed_in_place(each: ApiObject) -> ApiObject:
    return replace(each, metadata=replace(each.metadata, resource_version="renewed"))


def run_machine(*phases: Phase, examples_max: int = 80) -> None:
    steps = settings(
        max_examples=examples_max,
        stateful_step_count=40,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(StoreMachine, settings=steps)


def test_a_store_behaves_like_a_dictionary_that_is_copied_at_each_mark() -> None:
    run_machine(*Phase)


def uids_stay_in_the_index(patch: pytest.MonkeyPatch) -> None:
    def index(self: Any, by_uid: dict[str, ObjectKey], key: Any, before: Any, after: Any) -> None:
        if after is not None and after.metadata.uid:
            by_uid[after.metadata.uid] = key

    patch.setattr(ObjectStore, "_index_uid", index)


def a_rollback_forgets_replacements(patch: pytest.MonkeyPatch) -> None:
    reverse = ObjectStore._reverse

    def reverse_additions(self: Any, step: Any, renewed: Any) -> Any:
        return reverse(self, step if step.before is None else step._replace(before=None), renewed)

    patch.setattr(ObjectStore, "_reverse", reverse_additions)


def a_rollback_numbers_anew(patch: pytest.MonkeyPatch) -> None:
    reverse = ObjectStore._reverse
    patch.setattr(
        ObjectStore, "_reverse", lambda s, step, new: reverse(s, step._replace(arrival=None), new)
    )


FAULTS = (
    uids_stay_in_the_index,
    a_rollback_forgets_replacements,
    a_rollback_numbers_anew,
)


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_detected(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        # The first example that shows the fault ends the search.
        run_machine(Phase.generate, examples_max=2_000)


# ---- examples -------------------------------------------------------------------------------


def test_lists_are_in_the_order_of_keys() -> None:
    services = ObjectStore[Any]().of(SERVICE)
    for each in (service("z"), service("m", "b"), service("a")):
        services.put(each)
    assert names(services.list()) == ["a/a", "a/z", "b/m"]
    assert names(services.list("a")) == ["a/a", "a/z"]
    assert services.list("nowhere") == ()


def test_an_observer_that_lists_sees_the_change() -> None:
    services, listed = ObjectStore[Any]().of(SERVICE), list[list[str]]()
    services.observe(lambda before, after: listed.append(names(services.list())))
    services.put(service("s"))
    services.put(service("r"))
    services.remove(service("s", colour="blue"))
    assert listed == [["a/s"], ["a/r", "a/s"], ["a/r"]]


def test_a_returned_list_does_not_change() -> None:
    services = ObjectStore[Any]().of(SERVICE)
    services.put(service("s"))
    before = services.list()
    services.put(service("t"))
    assert names(before) == ["a/s"]


def test_objects_without_a_namespace_are_looked_up_by_name() -> None:
    namespaces = ObjectStore[Any]().of(NAMESPACE)
    decoded = decode(NAMESPACE, {"metadata": {"name": "default"}})
    namespaces.put(decoded)
    assert namespaces.get("default") is decoded


def test_objects_come_in_the_order_in_which_they_were_added() -> None:
    store = ObjectStore[ApiObject]()
    for key in (KEYS[2], KEYS[0], KEYS[1], KEYS[2]):
        store.put(key, object_of(key))
    assert [key for key, _ in store.items(SERVICE)] == [KEYS[2], KEYS[0], KEYS[1]]


def test_plain_values_are_stored_with_a_function_for_their_metadata() -> None:
    def metadata_of(content: dict[str, Any]) -> ObjectMeta:
        return ObjectMeta(name=content["name"], uid=content["uid"])

    store = ObjectStore[dict[str, Any]](metadata_of)
    store.of(SERVICE).put({"name": "s", "uid": "u"})
    assert store.key_of_uid("u") == ObjectKey(SERVICE, "", "s")
