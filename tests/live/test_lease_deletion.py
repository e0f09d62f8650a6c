"""A Lease that is deleted under its leader, at a real API server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import final

import pytest

from bayplan.clock import RealClock
from bayplan.ports import ApiError, NotFoundError
from bayplan.rng import stream
from bayplan.serving.election.candidate import Candidate
from bayplan.serving.election.election import Election, ElectionSettings
from bayplan.serving.election.lease import ApiLeaseLock
from tests.live.world import World, scenario
from tests.serving.leases import RecordedElection

pytestmark = pytest.mark.timeout(400)

_NAMESPACE = "kube-system"
_SETTINGS = ElectionSettings(
    lease_duration_seconds=6.0, renew_deadline_seconds=4.0, retry_period_seconds=1.0
)


@final
class _Replica:
    """A candidate that leads as often as it can."""

    def __init__(self, world: World, lease: str, name: str) -> None:
        self._clock = RealClock()
        self._election = Election(name, _SETTINGS)
        lock = ApiLeaseLock(world.client, _NAMESPACE, lease)
        chance = stream(1, f"election/{name}")
        self._candidate = Candidate(
            self._election, lock, self._clock, chance, log=RecordedElection()
        )

    @property
    def leads(self) -> bool:
        return self._election.is_leader(self._clock.now())

    @property
    def holder(self) -> str:
        return self._election.holder

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async def live() -> None:
            await self._candidate.win()
            await self._candidate.hold()

        task = asyncio.get_running_loop().create_task(live())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def _delete(world: World, lease: str) -> None:
    """Delete the Lease as soon as it is there."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{_NAMESPACE}/leases/{lease}"
    while True:
        try:
            await world.client.request("DELETE", path)
        except NotFoundError:
            await asyncio.sleep(0.01)
        else:
            return


@scenario()
async def test_deletions_of_the_lease_never_lead_to_two_leaders(world: World) -> None:
    one, other = (_Replica(world, "deleted-often", name) for name in ("one", "other"))
    both = 0

    async def count() -> None:
        nonlocal both
        while True:
            both += one.leads and other.leads
            await asyncio.sleep(0.002)

    counting = asyncio.get_running_loop().create_task(count())
    async with one.running():
        await _until(lambda: one.leads)
        async with other.running():
            await _until(lambda: other.holder == "one")
            for _ in range(12):
                await _delete(world, "deleted-often")
            await _until(lambda: one.leads or other.leads)
    counting.cancel()
    assert both == 0


@scenario()
async def test_the_leader_stops_for_a_replica_that_takes_a_deleted_lease_at_once(
    world: World,
) -> None:
    one = _Replica(world, "taken", "one")
    lock = ApiLeaseLock(world.client, _NAMESPACE, "taken")
    async with one.running():
        await _until(lambda: one.leads)
        taken = {**await lock.get()}
        taken["metadata"] = {"name": "taken", "namespace": _NAMESPACE}
        taken["spec"] = {**taken["spec"], "holderIdentity": "another program"}
        await _delete(world, "taken")
        # The leader or the other program creates the Lease: one of them is refused.
        with contextlib.suppress(ApiError):
            await lock.create(taken)
        holder = (await lock.get())["spec"]["holderIdentity"]
        await _until(lambda: one.leads == (holder == "one"))
