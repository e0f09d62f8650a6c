"""Groups are placed as a naive scheduler places them.

Each seed is a number of event sequences. A failure prints the shortest sequence that shows it.
"""

from collections import Counter
from typing import Any

import pytest

from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.sim.world.checkers import InvariantBroken
from tests.engine.gang_machine import GangMachine
from tests.seeded import Play, depth, machine_seeds, replayable, table_of

SEEDS_BY_DEFAULT = depth(1, 2)
PLAY = Play(GangMachine, sequences=depth(20, 60), steps_per_sequence=40)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", machine_seeds(SEEDS_BY_DEFAULT))
def test_groups_are_placed_as_by_a_naive_scheduler(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Counter[str]()
    with replayable(number):
        PLAY.run(number, {"tally": tally})
    with capsys.disabled():
        print("\n" + table_of(tally))


# ---- planted faults -------------------------------------------------------------------------


def too_few_are_enough(patch: pytest.MonkeyPatch) -> None:
    run = PodGroupTrial.run
    patch.setattr(
        PodGroupTrial, "run", lambda self, members, needed: run(self, members, needed - 1)
    )
    best = "bayplan.engine.podgroups.attempts.max"
    patch.setattr(best, lambda *counts: max(1, max(*counts) - 1), raising=False)


def members_are_tried_backwards(patch: pytest.MonkeyPatch) -> None:
    run = PodGroupTrial.run
    patch.setattr(PodGroupTrial, "run", lambda self, members, n: run(self, members[::-1], n))


def the_first_that_does_not_fit_ends_the_pass(patch: pytest.MonkeyPatch) -> None:
    def try_(self: PodGroupTrial, queued: Any) -> None:
        if not self.unplaced:
            attempt(self, queued)

    attempt = PodGroupTrial._try
    patch.setattr(PodGroupTrial, "_try", try_)


FAULTS = (
    too_few_are_enough,
    members_are_tried_backwards,
    the_first_that_does_not_fit_ends_the_pass,
)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, InvariantBroken)):
        PLAY.run(0, {"tally": Counter[str]()}, is_shrunk=False)
