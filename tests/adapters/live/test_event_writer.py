"""Events about pods are aggregated, limited and dropped; they never block."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def writing(server: FakeApiServer) -> AsyncGenerator[tuple[EventWriter, ManualClock]]:
    """A writer, which has written or dropped each event at the end."""
    async with talking_to(server) as client:
        clock = ManualClock()
        writer = EventWriter(client, clock)
        writer.start()
        yield writer, clock
        await writer.flush()
        await writer.stop()


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


async def test_each_event_has_a_unique_short_name() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        for reason in ("A", "B"):
            writer.put(failed("p" * 253, reason=reason))
    assert len(server.objects) == 2
    assert all(len(event["metadata"]["name"]) == 253 for event in events_of(server))


async def test_events_that_a_silent_server_does_not_accept_are_dropped() -> None:
    async with talking_to(silent) as client:
        writer = EventWriter(client, ManualClock())
        writer.start()
        for number in range(100):
            writer.put(failed(f"p{number}"))
        await writer.flush(0.05)
        await writer.flush(0.05)
        await writer.stop()
        assert writer.dropped_count == 100 - WORKERS


async def test_repetitions_form_one_series() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        for number in range(5):
            writer.put(failed(note=f"no room, attempt {number}"))
            await writer.flush()
    assert [method for method, *_ in server.calls] == ["POST", "PATCH"]
    assert counts_of(server) == [2]


async def test_a_changed_pod_starts_a_new_series_with_the_new_note() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        writer.put(failed(note="0/1 nodes are available: 1 Insufficient cpu."))
        for _ in range(2):
            writer.put(failed(note="0/2 nodes are available: 2 Insufficient cpu.", version="8"))
            await writer.flush()
    assert [
        (event["regarding"]["resourceVersion"], event["note"]) for event in events_of(server)
    ] == [
        ("7", "0/1 nodes are available: 1 Insufficient cpu."),
        ("8", "0/2 nodes are available: 2 Insufficient cpu."),
    ]
    assert counts_of(server) == [1, 2]


async def test_a_finished_series_is_written_with_its_count() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, clock):
        for _ in range(5):
            writer.put(failed())
            await writer.flush()
        clock.advance_to(SERIES_ENDS_SECONDS + 1)
        writer.tend()
        await writer.flush()
        assert counts_of(server) == [5]
        writer.put(failed())
    assert counts_of(server) == [5, 1]


async def test_a_running_series_is_written_every_half_hour() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, clock):
        writer.put(failed())
        await writer.flush()
        for minute in range(1, 33):
            clock.advance_to(60.0 * minute)
            writer.put(failed())
            writer.tend()
            await writer.flush()
    assert [method for method, *_ in server.calls] == ["POST", "PATCH", "PATCH"]
    assert counts_of(server) == [3 + SERIES_REFRESH_SECONDS // 60]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([failed("b"), failed(reason="Scheduled")], id="pods and reasons"),
        pytest.param([failed(related=GROUP)], id="related objects"),
    ],
)
async def test_events_that_differ_form_different_series(others: list[EmitEvent]) -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        for event in (failed(), *others):
            writer.put(event)
    assert counts_of(server) == [1] * (1 + len(others))


async def test_a_series_whose_event_expired_starts_again() -> None:
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        writer.put(failed())
        await writer.flush()
        server.objects.clear()
        writer.put(failed())
    assert counts_of(server) == [2]


async def test_an_event_stored_by_an_earlier_attempt_is_not_dropped() -> None:
    server = FakeApiServer(status(409, "AlreadyExists", "events p.1 exists"))
    async with writing(server) as (writer, _):
        writer.put(failed())
    assert writer.dropped_count == 0


@pytest.mark.parametrize("code", [403, 404, 500])
async def test_a_refused_event_is_dropped_and_the_next_one_written(code: int) -> None:
    server = FakeApiServer(status(code, "Whatever", "no"))
    async with writing(server) as (writer, _):
        writer.put(failed("a"))
        await writer.flush()
        writer.put(failed("b"))
    assert writer.dropped_count == 1
    assert [event["regarding"]["name"] for event in server.objects.values()] == ["b"]


async def test_the_newest_events_are_dropped_when_the_queue_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_writer, "WAITING_MAX", 3)
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        for number in range(5):
            writer.put(failed(f"p{number}"))
    assert writer.dropped_count == 2
    assert len(server.objects) == 3


async def test_the_number_of_remembered_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "REMEMBERED_MAX", 2)
    server = FakeApiServer()
    async with writing(server) as (writer, _):
        for _ in range(3):
            writer.put(failed("old"))
            await writer.flush()
        for name in ("a", "b", "old"):
            writer.put(failed(name))
    # The first series was written with its count and removed; its next event starts a new one.
    assert sorted(counts_of(server)) == [1, 1, 1, 3]
