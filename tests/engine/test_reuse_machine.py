"""Reuse on and off give equal decisions after any events; the machine finds planted faults.

Each seed is a number of event sequences. A failure prints the shortest sequence that shows it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis.errors import FlakyFailure

from bayplan.engine.ranking.evaluation_plan import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
)
from bayplan.engine.reuse.cache import OBJECT_CHANGED
from bayplan.state.cache import Cache
from tests.engine.reuse_faults import (
    FAULTS,
    Plant,
    a_domain_count_is_stale,
    a_total_stays_as_it_was,
    an_extreme_does_not_move,
)
from tests.engine.reuse_kinds import CHANGES, KINDS
from tests.engine.reuse_machine import WITH_PINS, ReuseMachine
from tests.engine.reuse_pair import INITIAL_CAPACITY, Fault, no_fault
from tests.seeded import IS_DEEP, Play, depth, machine_seeds, replayable, table_of

#: Seeds in one test. Deep runs have at least STEPS_MIN steps, of which the events are counted.
SEEDS_PER_TEST = depth(1, 2)
STEPS_MIN = 20_000
COUNT_MIN = 40
#: Reasons why rankings and results are dropped, except for those that need a plugin with a wrong
#: signature, and for a full table. Single tests cover these.
REASONS = (
    NODES_CAME_OR_WENT,
    TOO_MUCH_CHANGED,
    EXTREME_MOVED,
    PLUGIN_FAILED,
    OBJECT_CHANGED,
)
PLAY = Play(ReuseMachine, sequences=depth(20, 95), steps_per_sequence=50)
#: Planted faults are looked for in as many sequences as it takes.
SEARCH = Play(ReuseMachine, sequences=95, steps_per_sequence=50)
SEARCHED_SEEDS = 4


#: Faults that only some kinds of pods can show.
POOLS: Mapping[Plant, Sequence[str]] = {
    a_domain_count_is_stale: ("web", "apart", "together", "likes company", "spread hard"),
    a_total_stays_as_it_was: ("looks", "across", "unsigned", "web", "spread soft", "prefers"),
    an_extreme_does_not_move: ("all normalisers", "most", "fewest", "between", "prefers rank"),
}

#: Events that each must occur at least COUNT_MIN times.
EVENTS = (
    "pods came",
    "a run of pods came",
    "pods of a DaemonSet came",
    "attempts of runs",
    "a second profile's pod came",
    "another's pod came",
    "a group came",
    "a pod went",
    "a pod was nominated",
    "a pod changed",
    "a pod was evicted",
    "a binding was confirmed by the watch",
    "a binding failed",
    "a wait at Permit ended",
    "turned down by Reserve or Permit",
    "time passed",
    "a node came",
    "a node went",
    "a node came back",
    "a node was replaced",
    "many nodes changed",
    "the table grew",
    "a service came or went",
    "storage and devices changed",
    *(f"a node changed: {facet}" for facet in CHANGES),
    "partial refreshes",
    "nothing evaluated",
    "an extender answered: filter",
    "an extender answered: prioritize",
    "rankings used",
    "preparations reused",
    "totals used",
    *(f"dropped: {reason}" for reason in REASONS),
)


#: The seed for a cache that steps aside.
ASIDE_SEED = 4


def blocks() -> list[list[int]]:
    """The seeds in groups, one group per test."""
    numbers = machine_seeds(SEEDS_PER_TEST)
    return [numbers[at : at + SEEDS_PER_TEST] for at in range(0, len(numbers), SEEDS_PER_TEST)]


@pytest.fixture(autouse=True)
def _small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables grow, and small samples leave nodes out."""
    monkeypatch.setattr(Cache.__init__, "__defaults__", (INITIAL_CAPACITY,))
    monkeypatch.setattr("bayplan.engine.schedule_one.SAMPLED_NODES_MIN", 3)
    monkeypatch.setattr("bayplan.engine.pinned_node._SINGLE_MAX", 2)


def play(
    number: int,
    tally: Counter[str],
    fault: Fault = no_fault,
    pool: Sequence[str] = tuple(sorted(KINDS)),
    machine: Play = PLAY,
) -> None:
    """Run one seed. Raises AssertionError if the two schedulers differ."""
    members = {"tally": tally, "fault": staticmethod(fault), "pool": pool}
    machine.run(number, members, is_shrunk=machine is PLAY)


@pytest.fixture(autouse=True)
def caching_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are few pods of many kinds on few nodes; everything is cached anyway."""
    monkeypatch.setattr("bayplan.engine.reuse.cache._BALANCE_MAX", 10**9)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("numbers", blocks(), ids=str)
def test_reuse_changes_no_decision(numbers: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    tally = Counter[str]()
    for number in numbers:
        with replayable(number):
            play(number, tally)
    with capsys.disabled():
        print("\n" + table_of(tally))
    if len(numbers) == SEEDS_PER_TEST and IS_DEEP:
        assert tally["steps"] >= STEPS_MIN
        rare = {event: tally[event] for event in EVENTS if tally[event] < COUNT_MIN}
        assert not rare, "the machine tests too little of events that are rare"


@pytest.mark.timeout(900)
def test_a_cache_that_steps_aside_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache soon steps aside, and soon resumes."""
    monkeypatch.setattr("bayplan.engine.reuse.cache._BALANCE_MAX", 2)
    tally = Counter[str]()
    with replayable(ASIDE_SEED):
        play(ASIDE_SEED, tally)
    assert tally["rankings used"] >= depth(1, COUNT_MIN)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = plant(monkeypatch)
    pool = POOLS.get(plant, tuple(sorted(KINDS)))
    # A fault may also cause an impossible state. If caches outlive a scheduler, the
    # same events need not fail again: Hypothesis then raises the failure in a FlakyFailure.
    with pytest.raises((AssertionError, IndexError, KeyError, FlakyFailure)):
        look_for(fault, pool)


def test_pods_that_a_plugin_tells_apart_by_their_node_form_no_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play_daemon_set()
    monkeypatch.setattr("bayplan.engine.pinned_node.ignores_pin", lambda *_: True)
    with pytest.raises(AssertionError, match="with reuse and without"):
        play_daemon_set()


def play_daemon_set() -> None:
    """Equal pods name one node each, and a plugin rejects some of them by this name."""
    machine = ReuseMachine()
    try:
        machine.begin(flavour=WITH_PINS, kinds=[0, 1], node_kinds=[1, 2, 3, 4, 5, 6])
        machine.pods_of_a_daemon_set_come("tolerant", 12, "labels", 3)
    finally:
        machine.teardown()


def look_for(fault: Fault, pool: Sequence[str]) -> None:
    """Run seed after seed, because not every seed shows every fault."""
    for number in range(SEARCHED_SEEDS):
        play(number, Counter[str](), fault, pool, SEARCH)
