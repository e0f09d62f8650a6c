"""Events about pods are aggregated, limited and dropped; they never block."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bayplan.adapters.live import event_writer
from bayplan.adapters.live.event_writer import (
    SERIES_ENDS_SECONDS,
    SERIES_REFRESH_SECONDS,
    WORKERS,
    EventWriter,
    event_object,
)
from bayplan.clock import ManualClock
from bayplan.ports import EmitEvent, ObjectReference
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import FakeApiServer, silent, status

GROUP = ObjectReference("scheduling.k8s.io/v1beta1 PodGroup", "ns", "g", "uid-g", "3")


def failed(
    name: str = "p",
    note: str = "no room",
    reason: str = "FailedScheduling",
    version: str = "7",
    related: ObjectReference | None = None,
) -> EmitEvent:
    regarding = ObjectReference("v1 Pod", "ns", name, f"uid-{name}", version)
    return EmitEvent(regarding, "Warning", reason, "Scheduling", note, "bayplan", related)


def events_of(server: FakeApiServer) -> list[dict[str, Any]]:
    return sorted(server.objects.values(), key=lambda event: str(event["regarding"]))


def counts_of(server: FakeApiServer) -> list[int]:
    return [event.get("series", {}).get("count", 1) for event in server.objects.values()]


Scene = Callable[[EventWriter, ManualClock], Awaitable[None]]


def written(server: FakeApiServer, scene: Scene) -> int:
    """Run a scene with a writer; returns how many events the writer dropped."""

    async def main() -> int:
        async with talking_to(server) as client:
            clock = ManualClock()
            writer = EventWriter(client, clock)
            writer.start()
            await scene(writer, clock)
            await writer.flush()
            await writer.stop()
            return writer.dropped_count

    return asyncio.run(main())


def test_an_event_has_the_form_of_the_api() -> None:
    content = event_object(failed(), "p.1", ManualClock.EPOCH_SECONDS + 0.5, "host")
    assert content == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.500000Z",
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "no room",
        "reportingController": "bayplan",
        "reportingInstance": "bayplan-host",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "p",
            "uid": "uid-p",
            "resourceVersion": "7",
        },
    }


def test_an_event_may_have_a_related_object() -> None:
    content = event_object(failed(related=GROUP), "p.1", ManualClock.EPOCH_SECONDS, "host")
    assert content["related"] == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "namespace": "ns",
        "name": "g",
        "uid": "uid-g",
        "resourceVersion": "3",
    }


def test_each_event_has_a_unique_short_name() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for reason in ("A", "B"):
            writer.put(failed("p" * 253, reason=reason))

    server = FakeApiServer()
    written(server, scene)
    assert len(server.objects) == 2
    assert all(len(event["metadata"]["name"]) == 253 for event in events_of(server))


def test_events_that_a_silent_server_does_not_accept_are_dropped() -> None:
    async def main() -> int:
        async with talking_to(silent) as client:
            writer = EventWriter(client, ManualClock())
            writer.start()
            for number in range(100):
                writer.put(failed(f"p{number}"))
            await writer.flush(0.05)
            await writer.flush(0.05)
            await writer.stop()
            return writer.dropped_count

    assert asyncio.run(main()) == 100 - WORKERS


def test_repetitions_form_one_series() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for number in range(5):
            writer.put(failed(note=f"no room, attempt {number}"))
            await writer.flush()

    server = FakeApiServer()
    written(server, scene)
    assert [method for method, *_ in server.calls] == ["POST", "PATCH"]
    assert counts_of(server) == [2]


def test_a_changed_pod_starts_a_new_series_with_the_new_note() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed(note="0/1 nodes are available: 1 Insufficient cpu."))
        for _ in range(2):
            writer.put(failed(note="0/2 nodes are available: 2 Insufficient cpu.", version="8"))
            await writer.flush()

    server = FakeApiServer()
    written(server, scene)
    assert [
        (event["regarding"]["resourceVersion"], event["note"]) for event in events_of(server)
    ] == [
        ("7", "0/1 nodes are available: 1 Insufficient cpu."),
        ("8", "0/2 nodes are available: 2 Insufficient cpu."),
    ]
    assert counts_of(server) == [1, 2]


def test_events_with_different_related_objects_form_different_series() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed())
        writer.put(failed(related=GROUP))

    server = FakeApiServer()
    written(server, scene)
    assert counts_of(server) == [1, 1]


def test_a_finished_series_is_written_with_its_count() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for _ in range(5):
            writer.put(failed())
            await writer.flush()
        clock.advance_to(SERIES_ENDS_SECONDS + 1)
        writer.tend()
        await writer.flush()
        assert counts_of(server) == [5]
        writer.put(failed())

    server = FakeApiServer()
    written(server, scene)
    assert counts_of(server) == [5, 1]


def test_a_running_series_is_written_every_half_hour() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed())
        await writer.flush()
        for minute in range(1, 33):
            clock.advance_to(60.0 * minute)
            writer.put(failed())
            writer.tend()
            await writer.flush()

    server = FakeApiServer()
    written(server, scene)
    assert [method for method, *_ in server.calls] == ["POST", "PATCH", "PATCH"]
    assert counts_of(server) == [3 + SERIES_REFRESH_SECONDS // 60]


def test_events_of_different_pods_and_reasons_form_different_series() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for event in (failed("a"), failed("b"), failed("a", reason="Scheduled")):
            writer.put(event)

    server = FakeApiServer()
    written(server, scene)
    assert counts_of(server) == [1, 1, 1]


def test_a_series_whose_event_expired_starts_again() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed())
        await writer.flush()
        server.objects.clear()
        writer.put(failed())

    server = FakeApiServer()
    written(server, scene)
    assert counts_of(server) == [2]


def test_an_event_stored_by_an_earlier_attempt_is_not_dropped() -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed())

    assert written(FakeApiServer(status(409, "AlreadyExists", "events p.1 exists")), scene) == 0


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_refused_event_is_dropped_and_the_next_one_written(code: int) -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        writer.put(failed("a"))
        await writer.flush()
        writer.put(failed("b"))

    server = FakeApiServer(status(code, "Whatever", "no"))
    assert written(server, scene) == 1
    assert [event["regarding"]["name"] for event in server.objects.values()] == ["b"]


def test_the_newest_events_are_dropped_when_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for number in range(5):
            writer.put(failed(f"p{number}"))

    monkeypatch.setattr(event_writer, "WAITING_MAX", 3)
    server = FakeApiServer()
    assert written(server, scene) == 2
    assert len(server.objects) == 3


def test_the_number_of_remembered_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(writer: EventWriter, clock: ManualClock) -> None:
        for _ in range(3):
            writer.put(failed("old"))
            await writer.flush()
        for name in ("a", "b", "old"):
            writer.put(failed(name))

    monkeypatch.setattr(event_writer, "REMEMBERED_MAX", 2)
    server = FakeApiServer()
    written(server, scene)
    # The first series was written with its count and removed; its next event starts a new one.
    assert sorted(counts_of(server)) == [1, 1, 1, 3]
