"""Drawn groups that wait long: their nodes are reserved, and pods that fill the gaps delay nobody.

All pods end when their duration is over. The naive deadline of a group is the first moment at which
it would fit if no pod were added after its reservation. Planted faults show that the checks see.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from bayplan.api.pod_groups import EXCLUSIVE_TOPOLOGY, REQUIRED_TOPOLOGY
from bayplan.engine.podgroups import attempts, backfill
from bayplan.engine.reservations import Reservation
from tests.scenarios.gangs import FIT, add_members, put_group
from tests.scenarios.world import World, play

CPU = 4
RACKS = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1"}
RESERVE_SECONDS = 10
#: The longest delay after failures, with its jitter, and a second of this test's clock.
DELAY_SECONDS = 16
#: The end of the longest world: durations, and the longest chain of pods that fill gaps.
END_SECONDS = 400
ANNOTATIONS = {
    "none": {},
    "rack": {REQUIRED_TOPOLOGY: "rack"},
    "alone": {REQUIRED_TOPOLOGY: "rack", EXCLUSIVE_TOPOLOGY: "rack"},
}


@dataclass(frozen=True)
class Drawn:
    """A cluster: pods that run, a group, and pods that come while it waits."""

    #: (node, cpu, duration).
    running: list[tuple[str, int, int]]
    level: str
    member_count: int
    member_cpu: int
    #: (second, cpu, duration; None: unknown).
    later: list[tuple[int, int, int | None]]


cpus, durations = st.integers(1, CPU), st.integers(15, 60)
drawn_worlds = st.builds(
    Drawn,
    running=st.lists(
        st.tuples(st.sampled_from(sorted(RACKS)), cpus, durations), min_size=3, max_size=8
    ),
    level=st.sampled_from(sorted(ANNOTATIONS)),
    member_count=st.integers(2, 4),
    member_cpu=st.integers(2, CPU),
    later=st.lists(
        st.tuples(st.integers(11, 50), cpus, st.none() | st.integers(5, 60)), max_size=10
    ),
)


@dataclass
class Watched:
    """A world while it runs."""

    world: World
    drawn: Drawn
    #: Pod → (node, cpu, the second in which it ends; None: unknown).
    there: dict[str, tuple[str, int, int | None]] = field(
        default_factory=dict[str, tuple[str, int, "int | None"]]
    )
    #: Pod that waits → (cpu, duration).
    waiting: dict[str, tuple[int, int | None]] = field(
        default_factory=dict[str, tuple[int, "int | None"]]
    )
    deadline: int | None = None

    @property
    def members(self) -> list[str]:
        return [f"m{number}" for number in range(self.drawn.member_count)]

    def reservation(self) -> Reservation | None:
        controller: Any = self.world.scheduler._group_controller
        return controller._reservations.current

    def first_fit(self) -> int:
        """The first second in which the group fits if no pod is added."""
        ends = sorted({end for _, _, end in self.there.values() if end is not None})
        now = int(self.world.now)
        return next(second for second in (now, *ends) if self._fits_at(second))

    def _fits_at(self, second: int) -> bool:
        left = [(n, c) for n, c, end in self.there.values() if end is None or end > second]
        used = Counter[str]()
        for name, cpu in left:
            used[name] += cpu
        count = {name: (CPU - used[name]) // self.drawn.member_cpu for name in RACKS}
        if self.drawn.level == "none":
            return sum(count.values()) >= self.drawn.member_count
        busy = {RACKS[name] for name, _ in left} if self.drawn.level == "alone" else set[str]()
        racks = Counter[str]()
        for name, rack in RACKS.items():
            racks[rack] += 0 if rack in busy else count[name]
        return max(racks.values()) >= self.drawn.member_count

    def look(self) -> None:
        """Follow new bindings, and check those on reserved nodes."""
        now, current = int(self.world.now), self.reservation()
        for name in list(self.waiting):
            found = self.world.bound(name)
            if found is None:
                continue
            cpu, duration = self.waiting.pop(name)
            end = None if duration is None else int(found[0]) + duration
            self.there[name] = (found[1], cpu, end)
            if current is not None and found[1] in current.nodes:
                assert end is not None and end <= current.start_seconds, f"{name} delays the group"
        for name, (_, _, end) in list(self.there.items()):
            if end is not None and end <= now:
                del self.there[name]
                self.world.end_pod(name)
        if self.deadline is None and current is not None:
            self.deadline = self.first_fit()
            racks = {RACKS[name] for name in current.nodes}
            assert self.drawn.level == "none" or len(racks) == 1
            if self.drawn.level == "alone":
                assert current.nodes == {n for n, rack in RACKS.items() if rack in racks}


async def watch(world: World, drawn: Drawn, tally: Counter[str]) -> None:
    watched = Watched(world, drawn)
    for name, rack in RACKS.items():
        world.add_node(name, cpu=CPU, labels={"rack": rack})
    room = dict.fromkeys(RACKS, CPU)
    for number, (node_name, cpu, duration) in enumerate(drawn.running):
        if cpu > room[node_name]:
            continue
        room[node_name] -= cpu
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        add(world, f"old{number}", cpu, duration, node=node_name, status=status)
        watched.there[f"old{number}"] = (node_name, cpu, duration)
    put_group(world, "g", drawn.member_count, annotations=ANNOTATIONS[drawn.level])
    add_members(world, watched.members, "g", cpu=drawn.member_cpu)
    later = sorted(drawn.later, key=lambda each: each[0])
    places: list[tuple[float, str] | None] = []
    while world.now < END_SECONDS:
        while later and later[0][0] <= world.now:
            _, cpu, duration = later.pop(0)
            name = f"later{len(later)}"
            add(world, name, cpu, duration)
            watched.waiting[name] = (cpu, duration)
        await world.until(world.now + 1)
        watched.look()
        places = [world.bound(name) for name in watched.members]
        if all(places):
            break
        if watched.deadline is not None:
            assert world.now <= watched.deadline + DELAY_SECONDS, "the group starts too late"
    nodes = {place[1] for place in places if place is not None}
    assert drawn.level == "none" or len({RACKS[name] for name in nodes}) <= 1
    tally["groups that waited for reserved nodes"] += watched.deadline is not None


def add(world: World, name: str, cpu: int, duration: int | None, **options: Any) -> None:
    metadata = {} if duration is None else {"annotations": {"bayplan.dev/duration": f"{duration}s"}}
    world.add_pod(name, metadata, cpu=cpu, **options)


def explore(tally: Counter[str], examples: int, phases: tuple[Phase, ...]) -> None:
    @settings(max_examples=examples, deadline=None, phases=phases, derandomize=True, database=None)
    @given(drawn_worlds)
    def attempt(drawn: Drawn) -> None:
        config = {"podGroups": {"reserveAfterSeconds": RESERVE_SECONDS}}
        play(lambda world: watch(world, drawn, tally), plugins=FIT, config=config)

    attempt()


def test_pods_that_fill_gaps_do_not_delay_a_group() -> None:
    tally = Counter[str]()
    explore(tally, 60, (Phase.generate, Phase.shrink))
    assert tally["groups that waited for reserved nodes"] >= 10


# ---- planted faults -------------------------------------------------------------------------


def no_pod_is_kept_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reservation, "bars", lambda *_: False)


def every_duration_is_short_enough(patch: pytest.MonkeyPatch) -> None:
    bars = Reservation.bars
    patch.setattr(Reservation, "bars", lambda self, pod, _: bars(self, pod, -1000.0))


def the_start_is_expected_too_late(patch: pytest.MonkeyPatch) -> None:
    seconds = backfill.DepartureOrder.empty_enough_seconds
    patch.setattr(
        backfill.DepartureOrder, "empty_enough_seconds", lambda *args: seconds(*args) + 60
    )


def one_node_is_reserved(patch: pytest.MonkeyPatch) -> None:
    find = attempts.find_reservation

    def found(*args: Any, **options: Any) -> Reservation | None:
        whole = find(*args, **options)
        if whole is None:
            return None
        nodes = frozenset(sorted(whole.nodes)[:1])
        return Reservation(whole.key, whole.priority, nodes, whole.start_seconds)

    patch.setattr(attempts, "find_reservation", found)


def an_exclusive_domain_is_reserved_in_part(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "domain_nodes", lambda *_: frozenset())


FAULTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    no_pod_is_kept_off,
    every_duration_is_short_enough,
    the_start_is_expected_too_late,
    one_node_is_reserved,
    an_exclusive_domain_is_reserved_in_part,
)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        explore(Counter(), 400, (Phase.generate,))
