"""Versions, logs and watches of bounded memory, and trimmed objects."""

import asyncio
import json
from typing import Any

import pytest

from bayplan.adapters.embedded.versioned_store import (
    PodChange,
    StoredObject,
    VersionedStore,
    Watch,
    trimmed,
)
from bayplan.api.objects import DecodeError, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import key_of
from bayplan.ports import EventType, GoneError, WatchEvent
from bayplan.sim.loop import run, settled
from tests.kit.manifests import node, pod

# ---- object store ---------------------------------------------------------------------------


POD = "v1 Pod"


def put(store: VersionedStore, content: dict[str, Any]) -> StoredObject:
    return store.put(key_of(content), content)


def available_events(watch: Watch) -> list[tuple[EventType, str, str]]:
    """The events that a watch delivers now: (type, name, version)."""
    events: list[tuple[EventType, str, str]] = []
    while (event := watch.take()) is not None:
        events.append((event.type, event.object.metadata.name, event.resource_version))
    return events


def test_one_counter_numbers_the_changes_of_all_kinds() -> None:
    store = VersionedStore()
    put(store, pod("a"))
    put(store, node("n"))
    stored = put(store, pod("a", priority=1))
    assert (stored.version, store.version) == (3, 3)
    assert stored.content["metadata"]["resourceVersion"] == "3"
    assert stored.object.metadata.resource_version == "3"


def test_a_watch_returns_later_events_in_order() -> None:
    store = VersionedStore()
    put(store, pod("a"))
    watch = store.watch(POD, "1")
    put(store, pod("a", priority=1))
    put(store, node("n"))
    put(store, pod("b"))
    store.remove(key_of(pod("a")))
    assert available_events(watch) == [
        (EventType.MODIFIED, "a", "2"),
        (EventType.ADDED, "b", "4"),
        (EventType.DELETED, "a", "5"),
    ]


def test_a_deletion_has_the_last_state_with_its_own_version() -> None:
    store = VersionedStore()
    put(store, pod("a", priority=7))
    watch = store.watch(POD, "1")
    store.remove(key_of(pod("a")))
    event = watch.take()
    assert event is not None
    assert isinstance(event.object, Pod)
    assert (event.object.spec.priority, event.object.metadata.resource_version) == (7, "2")


def test_a_finished_pod_is_deleted_for_watchers_and_stays_stored() -> None:
    store = VersionedStore()
    put(store, pod("a"))
    watch = store.watch(POD, "1")
    put(store, pod("a", status={"phase": "Succeeded"}))
    put(store, pod("a", status={"phase": "Succeeded"}, priority=1))
    store.remove(key_of(pod("a")))
    assert available_events(watch) == [(EventType.DELETED, "a", "2")]


def test_list_hides_finished_pods_and_all_returns_them() -> None:
    store = VersionedStore()
    put(store, pod("a", status={"phase": "Failed"}))
    put(store, pod("b"))
    listing = store.list(POD)
    assert [one.metadata.name for one in listing.objects] == ["b"]
    assert listing.resource_version == "2"
    assert [stored.key.name for stored in store.all(POD)] == ["a", "b"]


def test_watchers_share_one_decoded_object() -> None:
    store = VersionedStore()
    first, second = store.watch(POD, ""), store.watch(POD, "0")
    stored = put(store, pod("a"))
    one, other = first.take(), second.take()
    assert one is not None
    assert other is not None
    assert one.object is other.object is stored.object


def test_declared_fields_are_stored() -> None:
    store = VersionedStore(declared={POD: ("spec.hostname",)})
    stored = put(store, pod("a", hostname="h"))
    assert isinstance(stored.object, Pod)
    assert stored.object.declared == {"spec.hostname": "h"}


def test_an_object_that_does_not_decode_changes_nothing() -> None:
    store = VersionedStore()
    with pytest.raises(DecodeError):
        put(store, pod("a", priority="high"))
    assert (store.version, store.all(POD)) == (0, [])


def test_a_watch_from_an_expired_version_has_to_list_again() -> None:
    store = VersionedStore(history_length=3)
    for number in range(10):
        put(store, pod(f"p{number}"))
    with pytest.raises(GoneError):
        store.watch(POD, "1").take()
    assert [name for _, name, _ in available_events(store.watch(POD, "7"))] == ["p7", "p8", "p9"]


def test_a_watch_that_falls_behind_expires() -> None:
    store = VersionedStore(history_length=2)
    watch = store.watch(POD, "0")
    put(store, pod("p0"))
    assert available_events(watch) == [(EventType.ADDED, "p0", "1")]
    for number in range(1, 8):
        put(store, pod(f"p{number}"))
    with pytest.raises(GoneError):
        watch.take()


def test_trimming_the_history_keeps_watches_that_are_up_to_date() -> None:
    store = VersionedStore()
    put(store, pod("a"))
    current, behind = store.watch(POD, "1"), store.watch(POD, "0")
    assert current.take() is None
    store.forget_history()
    put(store, pod("b"))
    assert [name for _, name, _ in available_events(current)] == ["b"]
    with pytest.raises(GoneError):
        behind.take()


def test_a_watch_waits_for_the_next_change() -> None:
    store = VersionedStore()
    names: list[str] = []

    async def follow() -> None:
        async for event in store.watch(POD, "0"):
            names.append(event.object.metadata.name)  # noqa: PERF401 - it has no end

    async def main() -> None:
        tasks = [asyncio.create_task(follow()) for _ in range(2)]
        await settled()
        put(store, pod("a"))
        await settled()
        assert names == ["a", "a"]
        tasks[0].cancel()
        put(store, pod("b"))
        await settled()

    run(main(), ManualClock())
    assert names == ["a", "a", "b"]


def test_observers_see_every_change_before_and_after() -> None:
    store = VersionedStore()
    changes: list[tuple[str | None, str | None]] = []

    def note(before: StoredObject | None, after: StoredObject | None) -> None:
        changes.append((before and before.key.name, after and after.key.name))

    store.observe(note)
    put(store, pod("a", status={"phase": "Succeeded"}))
    put(store, pod("a"))
    store.remove(key_of(pod("a")))
    assert changes == [(None, "a"), ("a", "a"), ("a", None)]


def test_an_observer_may_ignore_arrivals_and_bindings_of_pods() -> None:
    store = VersionedStore()
    seen: dict[PodChange, list[int]] = {change: [] for change in PodChange}

    def observe(ignored: PodChange) -> None:
        store.observe(
            lambda before, after: seen[ignored].append(store.version), ignored_changes=(ignored,)
        )

    for change in PodChange:
        observe(change)
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    metadata = pod("a")["metadata"]
    put(store, pod("a"))  # 1 arrives
    put(store, pod("a", priority=1))
    put(store, pod("a", nodeName="n"))  # 3 is bound
    put(store, pod("a", nodeName="m"))
    put(store, pod("b", nodeName="n"))
    put(store, pod("c", status={"phase": "Failed"}))
    put(store, {**pod("a"), "metadata": {**metadata, "name": "d", **terminating}})
    put(store, node("n"))
    store.remove(key_of(pod("a")))
    assert seen == {
        PodChange.ARRIVES: [2, 3, 4, 5, 6, 7, 8, 9],
        PodChange.IS_BOUND: [1, 2, 4, 5, 6, 7, 8, 9],
    }


def test_an_event_names_its_kind() -> None:
    store = VersionedStore()
    put(store, node("n"))
    event = store.watch("v1 Node", "").take()
    assert isinstance(event, WatchEvent)
    assert (event.kind, event.type) == ("v1 Node", EventType.ADDED)


# ---- trimmed objects ------------------------------------------------------------------------


@pytest.mark.parametrize("type_", [{}, {"apiVersion": "v1", "kind": "Pod"}])
def test_kind_and_managed_fields_are_trimmed(type_: dict[str, str]) -> None:
    meta = {"name": "p", "managedFields": [{"manager": "kubectl"}], "labels": {"kind": "web"}}
    content = {**type_, "metadata": meta, "spec": {"kind": "of its own"}}
    assert json.loads(trimmed(content)) == {
        "metadata": {"name": "p", "labels": {"kind": "web"}},
        "spec": {"kind": "of its own"},
    }
    assert "managedFields" in meta  # the shared content is unchanged


def test_an_object_without_metadata_is_sent_unchanged() -> None:
    assert json.loads(trimmed({"spec": {}})) == {"spec": {}}
