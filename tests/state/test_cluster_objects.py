"""Objects by kind, as listers read them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import NAMESPACE, SERVICE, decode
from bayplan.state.cluster_objects import ClusterObjects, KindObjects, UndeclaredKind


def service(name: str, namespace: str = "a", **labels: str) -> Any:
    return decode(SERVICE, {"metadata": {"name": name, "namespace": namespace, "labels": labels}})


def names(service_object: Any) -> list[str]:
    return [f"{each.metadata.namespace}/{each.metadata.name}" for each in service_object]


def test_lists_are_in_the_order_of_keys() -> None:
    store = KindObjects()
    for service_object in (service("z"), service("m", "b"), service("a")):
        store.put(service_object)
    assert names(store.list()) == ["a/a", "a/z", "b/m"]
    assert names(store.list("a")) == ["a/a", "a/z"]
    assert store.list("nowhere") == ()
    assert len(store) == 3


def test_an_empty_store_lists_nothing() -> None:
    assert KindObjects().list() == ()
    assert KindObjects().list("a") == ()


def test_storing_a_newer_version_returns_the_older_one() -> None:
    store = KindObjects()
    old, new = service("s"), service("s", colour="blue")
    assert store.put(old) is None
    assert store.list() == (old,)
    assert store.put(new) is old
    assert store.list() == (new,)
    assert store.get("s", "a") is new


def test_removing_any_version_returns_the_stored_one() -> None:
    store = KindObjects()
    old = service("s")
    store.put(old)
    assert store.remove(service("s", colour="blue")) is old
    assert store.remove(old) is None
    assert (store.list(), store.get("s", "a")) == ((), None)


def test_objects_without_a_namespace_are_looked_up_by_name() -> None:
    store = KindObjects()
    decoded = decode(NAMESPACE, {"metadata": {"name": "default"}})
    store.put(decoded)
    assert store.get("default") is decoded
    assert store.list() == (decoded,)


def test_a_returned_list_does_not_change() -> None:
    store = KindObjects()
    store.put(service("s"))
    before = store.list()
    store.put(service("t"))
    assert len(before) == 1


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from("xyz")), max_size=20)
)
def test_a_store_behaves_like_a_sorted_dictionary(steps: list[tuple[bool, str, str]]) -> None:
    store, model = KindObjects(), dict[tuple[str, str], Any]()
    for is_put, namespace, name in steps:
        new_service = service(name, namespace)
        if is_put:
            assert store.put(new_service) is model.get((namespace, name))
            model[namespace, name] = new_service
        else:
            assert store.remove(new_service) is model.pop((namespace, name), None)
        assert list(store.list()) == [model[key] for key in sorted(model)]
        for each in "ab":
            assert list(store.list(each)) == [model[key] for key in sorted(model) if key[0] == each]


def test_kinds_are_separate() -> None:
    store = ClusterObjects()
    store.of(SERVICE).put(service("s"))
    assert store.of(SERVICE).get("s", "a") is not None
    assert store.of("v1 Other").list() == ()


def test_an_undeclared_kind_is_refused_with_a_fix() -> None:
    with pytest.raises(UndeclaredKind, match=r"plugin X asks for .*v1 Service.*`kinds`"):
        raise UndeclaredKind(SERVICE, "X")
