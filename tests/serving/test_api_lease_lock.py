"""The lease at an API server: what is sent."""

import json
from typing import Any

from bayplan.adapters.live.rate_limit import Lane
from bayplan.clock import ManualClock
from bayplan.serving.api_lease_lock import ApiLeaseLock
from bayplan.serving.lease import new_lease
from bayplan.sim.loop import run


class Client:
    """Notes requests; answers with what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Lane]] = []

    async def request(self, method: str, path: str, content: Any = None, *, lane: Lane) -> bytes:
        self.sent.append((method, path, lane))
        return json.dumps(content or {"kind": "Lease"}).encode()


def test_each_request_has_its_path_and_a_rate_limit_of_its_own() -> None:
    client = Client()
    lock = ApiLeaseLock(client, "schedulers", "bayplan")  # pyright: ignore[reportArgumentType]
    lease = new_lease(lock.namespace, lock.name)

    async def script() -> None:
        assert await lock.get() == {"kind": "Lease"}
        assert await lock.create(lease) == lease
        assert await lock.update(lease) == lease

    run(script(), ManualClock())
    leases = "/apis/coordination.k8s.io/v1/namespaces/schedulers/leases"
    assert client.sent == [
        ("GET", f"{leases}/bayplan", Lane.LEASES),
        ("POST", leases, Lane.LEASES),
        ("PUT", f"{leases}/bayplan", Lane.LEASES),
    ]
