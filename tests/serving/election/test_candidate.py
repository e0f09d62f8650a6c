"""Candidates on one lease, under virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.ports import ApiError, ConflictError, OutcomeUnknownError
from bayplan.rng import stream
from bayplan.serving.election.candidate import Candidate
from bayplan.serving.election.election import Election, ElectionSettings
from bayplan.serving.election.lease import LeaseChange
from bayplan.sim.loop import run
from tests.kit.scenes import scene_of
from tests.serving.leases import BUSY, WATCH_DELAY_SECONDS, MemoryLock, RecordedElection


class Replica:
    """A candidate with its election, lease lock and log."""

    def __init__(self, name: str, store: dict[str, Any], clock: ManualClock) -> None:
        self.election = Election(name, ElectionSettings())
        self.lock = MemoryLock(store)
        #: The lease, which both replicas share.
        self.store = store
        self.log = RecordedElection()
        self.clock = clock
        self.candidate = Candidate(
            self.election, self.lock, clock, stream(1, f"election/{name}"), log=self.log
        )

    @property
    def leads(self) -> bool:
        return self.election.is_leader(self.clock.now())


Play = Callable[[Replica, Replica, ManualClock], Coroutine[Any, Any, None]]


def run_election(script: Play) -> None:
    """Run a script with two replicas and one lease."""
    clock, store = ManualClock(), dict[str, Any]()
    run(script(Replica("a", store, clock), Replica("b", store, clock), clock), clock)


def begin(work: Any) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(work)


@scene_of(run_election, 3)
async def test_the_first_of_two_leads_at_once_and_the_other_waits(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    assert (a.leads, clock.now()) == (True, 0.0)
    holding, waiting = begin(a.candidate.hold()), begin(b.candidate.win())
    await asyncio.sleep(100)
    assert (a.leads, b.leads, waiting.done()) == (True, False, False)
    assert (a.log.leaders, b.log.leaders) == (["a"], ["a"])
    holding.cancel()
    waiting.cancel()


@scene_of(run_election, 3)
async def test_a_renewal_is_one_request(a: Replica, b: Replica, clock: ManualClock) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(7)
    assert a.lock.requests == ["get", "create", "update", "update", "update"]
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_dead_leader_is_replaced_within_its_lease_and_one_retry(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding, waiting = begin(a.candidate.hold()), begin(b.candidate.win())
    await asyncio.sleep(30)
    holding.cancel()
    died_seconds = clock.now()
    await waiting
    assert 13 <= clock.now() - died_seconds <= 15 + 2 * 1.2
    assert b.leads
    assert b.log.leaders == ["a", "b"]


@scene_of(run_election, 3)
async def test_a_leader_that_cannot_renew_stops_before_another_leads(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding, waiting = begin(a.candidate.hold()), begin(b.candidate.win())
    await asyncio.sleep(10)
    a.lock.problem = BUSY
    reason = await holding
    assert reason == "the API server is busy"
    assert 8 <= clock.now() - 10 <= 10
    assert not a.leads
    assert not b.leads
    await waiting
    assert clock.now() - 10 >= 13


@scene_of(run_election, 3)
async def test_a_hanging_request_does_not_extend_leadership_beyond_the_deadline(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    a.lock.delay_seconds = 1000.0
    reason = await a.candidate.hold()
    assert clock.now() == pytest.approx(10.0)
    assert "no answer within" in reason


@scene_of(run_election, 3)
async def test_a_leader_that_was_suspended_does_not_lead_when_it_resumes(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(1)
    clock.advance_to(40.0)
    assert not a.leads
    assert "stood still" in await holding


@scene_of(run_election, 3)
async def test_failures_that_end_before_the_deadline_have_no_effect(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    a.lock.problem = BUSY
    await asyncio.sleep(7)
    a.lock.problem = None
    await asyncio.sleep(60)
    assert a.leads
    assert len(a.log.troubles) > 2
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_lost_answer_does_not_lose_the_lease(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    a.lock.problem, a.lock.answers_get_lost = OutcomeUnknownError("cut off"), True
    await asyncio.sleep(5)
    a.lock.problem = None
    await asyncio.sleep(30)
    assert a.leads
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_lease_taken_by_another_ends_leadership_and_names_the_holder(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    lease = await b.lock.get()
    lease["spec"] = {**lease["spec"], "holderIdentity": "thief"}
    await b.lock.update(lease)
    assert await holding == "thief holds the lease"
    assert clock.now() <= 2.0


@scene_of(run_election, 3)
async def test_a_released_lease_is_taken_at_the_next_retry(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    waiting = begin(b.candidate.win())
    await asyncio.sleep(1)
    await a.candidate.release(3.0)
    assert not a.leads
    await waiting
    assert clock.now() <= 2 * 1.2
    assert b.leads


@scene_of(run_election, 3)
async def test_a_cancelled_renewal_does_not_prevent_the_release(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(1)
    # The update was carried out, and its answer was lost.
    a.store["metadata"] = {**a.store["metadata"], "resourceVersion": "77"}
    holding.cancel()
    await a.candidate.release(3.0)
    assert a.store["spec"]["holderIdentity"] == ""


@scene_of(run_election, 3)
async def test_only_a_leader_releases(a: Replica, b: Replica, clock: ManualClock) -> None:
    await a.candidate.win()
    await b.candidate.release(3.0)
    assert b.lock.requests == []
    assert (await a.lock.get())["spec"]["holderIdentity"] == "a"


@scene_of(run_election, 3)
async def test_a_deleted_lease_is_created_again(a: Replica, b: Replica, clock: ManualClock) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    a.store.clear()
    await asyncio.sleep(20)
    assert a.leads
    assert a.store["spec"]["holderIdentity"] == "a"
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_leader_whose_lease_is_gone_acts_again_only_when_it_has_created_it(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(0.5)
    a.lock.delay_seconds = 1.0
    a.store.clear()
    await asyncio.sleep(2 * WATCH_DELAY_SECONDS)
    assert not a.leads
    await asyncio.sleep(1.5)
    assert not a.leads
    await asyncio.sleep(0.5)
    assert a.leads
    assert a.store["spec"]["holderIdentity"] == "a"
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_leader_whose_lease_is_gone_stops_for_a_replica_that_never_saw_it(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(0.5)
    a.store.clear()
    await b.candidate.win()  # it has never seen a holder, so it creates the lease at once
    assert b.leads
    assert clock.now() == pytest.approx(0.5)
    await asyncio.sleep(2 * WATCH_DELAY_SECONDS)
    assert not a.leads
    assert await holding == "b holds the lease"
    assert clock.now() < 1.0


@scene_of(run_election, 3)
@pytest.mark.parametrize("is_watched", [True, False])
async def test_a_standby_waits_before_it_creates_a_lease_that_was_deleted(
    a: Replica, b: Replica, clock: ManualClock, *, is_watched: bool
) -> None:
    await a.candidate.win()
    a.lock.is_watched = is_watched
    holding, waiting = begin(a.candidate.hold()), begin(b.candidate.win())
    await asyncio.sleep(7)
    a.lock.problem = BUSY  # the leader can neither renew nor create
    a.store.clear()
    gone_seconds = clock.now()
    await holding
    assert not a.leads
    await waiting
    assert 15 <= clock.now() - gone_seconds <= 15 + 2 * 2.4
    assert b.leads


@scene_of(run_election, 3)
async def test_a_late_event_about_a_lease_that_was_created_again_changes_nothing(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    a.lock.is_watched = False
    holding = begin(a.candidate.hold())
    a.store.clear()
    await asyncio.sleep(5)  # a renewal has created the lease again
    requests = len(a.lock.requests)
    a.candidate._see(LeaseChange(version=1, lease=None))
    await asyncio.sleep(0.5)
    assert a.leads
    assert len(a.lock.requests) - requests <= 1
    holding.cancel()


@scene_of(run_election, 3)
async def test_a_renewal_that_was_accepted_before_the_deletion_does_not_count(
    a: Replica, b: Replica, clock: ManualClock
) -> None:
    await a.candidate.win()
    holding = begin(a.candidate.hold())
    await asyncio.sleep(2.0)
    # The answer of the renewal is on its way while the event about the deletion arrives.
    a.lock.answer_seconds = 0.5
    await asyncio.sleep(0.1)
    a.store.clear()
    await asyncio.sleep(2 * WATCH_DELAY_SECONDS)
    assert not a.leads
    a.lock.problem = BUSY
    await asyncio.sleep(0.6)
    assert not a.leads
    await holding


def test_fields_of_other_writers_in_the_lease_stay():
    store: dict[str, Any] = {
        "metadata": {"resourceVersion": "7", "name": "bayplan", "labels": {"team": "x"}},
        "spec": {"strategy": "OldestEmulationVersion"},
    }

    async def script(a: Replica) -> None:
        await a.candidate.win()

    clock = ManualClock()
    run(script(Replica("a", store, clock)), clock)
    assert store["metadata"]["labels"] == {"team": "x"}
    assert store["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_with_failures_there_are_never_two_leaders_and_afterwards_there_is_one(
    seed: int, *, deletes: bool
):
    """``deletes``: the lease is deleted, too."""
    clock, store, chance = ManualClock(), dict[str, Any](), stream(seed, f"lease faults {deletes}")
    replicas = [Replica(name, store, clock) for name in "abc"]
    problems = [None, None, BUSY, OutcomeUnknownError("cut")]
    problems += [] if deletes else [ConflictError("x"), ApiError(500, "", "")]

    async def live(replica: Replica) -> None:
        while True:
            await replica.candidate.win()
            await replica.candidate.hold()

    async def disturb() -> None:
        await asyncio.sleep(5)  # each replica has seen the holder
        for _ in range(80 if deletes else 60):
            lock = chance.choice(replicas).lock
            lock.problem = chance.choice(problems)
            lock.answers_get_lost = chance.random() < 0.5
            lock.delay_seconds = chance.choice([0.0, 0.1, 3.0, 20.0])
            if deletes and chance.random() < 0.7:
                store.clear()
            await asyncio.sleep(chance.uniform(0.0, 6.0 if deletes else 12.0))
        for replica in replicas:
            replica.lock.problem, replica.lock.delay_seconds = None, 0.0

    async def watch() -> None:
        while True:
            assert sum(replica.leads for replica in replicas) <= 1, f"seed {seed}"
            await asyncio.sleep(0.1)

    async def main() -> None:
        tasks = [begin(live(replica)) for replica in replicas]
        tasks.append(begin(watch()))
        await disturb()
        await asyncio.sleep(60)
        assert sum(replica.leads for replica in replicas) == 1, f"seed {seed}"
        for task in tasks:
            task.cancel()

    run(main(), clock)
