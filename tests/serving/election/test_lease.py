"""Leases in the form of the API, the identity of a replica, and the requests for a lease."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.errors import UnreadableAnswerError
from bayplan.adapters.live.rate_limit import Lane
from bayplan.clock import ManualClock
from bayplan.ports import WatchDroppedError
from bayplan.serving.election.election import LeaseRecord
from bayplan.serving.election.lease import (
    ApiLeaseLock,
    LeaseChange,
    new_identity,
    new_lease,
    own_namespace,
    record_of,
    with_record,
)
from bayplan.sim.loop import run

# ---- lease ----------------------------------------------------------------------------------


RECORD = LeaseRecord("a", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 3)


def test_a_record_survives_encoding_and_decoding():
    assert record_of(with_record(new_lease("ns", "bayplan"), RECORD)) == RECORD


def test_fields_have_the_names_of_the_api():
    assert with_record(new_lease("ns", "bayplan"), RECORD) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "ns", "name": "bayplan"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:02.000000Z",
            "leaseTransitions": 3,
        },
    }


def test_an_empty_lease_has_no_holder():
    assert record_of({"spec": {"holderIdentity": None}}) == LeaseRecord()
    assert record_of(new_lease("ns", "bayplan")) == LeaseRecord()


def test_the_resource_version_is_sent_so_that_a_concurrent_change_conflicts():
    lease = new_lease("ns", "bayplan")
    lease["metadata"]["resourceVersion"] = "7"
    assert with_record(lease, RECORD)["metadata"]["resourceVersion"] == "7"


# ---- identity -------------------------------------------------------------------------------


def test_the_namespace_is_that_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    file = tmp_path / "namespace"
    assert own_namespace(file) == "kube-system"
    file.write_text("schedulers\n")
    assert own_namespace(file) == "schedulers"
    monkeypatch.setenv("POD_NAMESPACE", "elsewhere")
    assert own_namespace(file) == "elsewhere"


def test_each_process_has_its_own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "bayplan-0")
    one, other = new_identity(), new_identity()
    assert one != other
    assert one.startswith("bayplan-0_")


# ---- api lease lock -------------------------------------------------------------------------


class Client:
    """Records requests; answers with the content of the request."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Lane]] = []

    async def request(self, method: str, path: str, content: Any = None, *, lane: Lane) -> bytes:
        self.requests.append((method, path, lane))
        return json.dumps(content or {"kind": "Lease"}).encode()


def test_each_request_has_its_path_and_rate_limit() -> None:
    client = Client()
    lock = ApiLeaseLock(client, "schedulers", "bayplan")  # pyright: ignore[reportArgumentType]
    lease = new_lease(lock.namespace, lock.name)

    async def script() -> None:
        assert await lock.get() == {"kind": "Lease"}
        assert await lock.create(lease) == lease
        assert await lock.update(lease) == lease

    run(script(), ManualClock())
    leases = "/apis/coordination.k8s.io/v1/namespaces/schedulers/leases"
    assert client.requests == [
        ("GET", f"{leases}/bayplan", Lane.LEASES),
        ("POST", leases, Lane.LEASES),
        ("PUT", f"{leases}/bayplan", Lane.LEASES),
    ]


class Watched:
    """A client whose watch sends these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.paths: list[str] = []

    async def stream(self, path: str, silence_seconds_max: float) -> AsyncGenerator[bytes]:
        self.paths.append(path)
        for piece in self.pieces:
            yield piece


def test_the_watch_follows_one_lease() -> None:
    event = {"object": {"metadata": {"resourceVersion": "8"}, "spec": {"holderIdentity": "a"}}}
    lines = b"".join(
        json.dumps({"type": kind, **event}).encode() + b"\n" for kind in ("MODIFIED", "DELETED")
    )
    client = Watched(lines[:20], lines[20:])
    lock = ApiLeaseLock(client, "schedulers", "bayplan")  # pyright: ignore[reportArgumentType]

    async def script() -> list[LeaseChange]:
        return [change async for change in lock.changes("7")]

    assert run(script(), ManualClock()) == [LeaseChange(8, event["object"]), LeaseChange(8, None)]
    (path,) = client.paths
    assert path == (
        "/apis/coordination.k8s.io/v1/namespaces/schedulers/leases?watch=1&"
        "fieldSelector=metadata.name%3Dbayplan&resourceVersion=7&timeoutSeconds=300"
    )


@pytest.mark.parametrize("line", [b'{"type":"ERROR","object":{"code":410}}\n', b"garbage\n"])
def test_a_watch_that_fails_ends_with_an_error(line: bytes) -> None:
    lock = ApiLeaseLock(Watched(line), "a", "b")  # pyright: ignore[reportArgumentType]

    async def script() -> None:
        async for _ in lock.changes("7"):
            pass

    with pytest.raises((WatchDroppedError, UnreadableAnswerError)):
        run(script(), ManualClock())
