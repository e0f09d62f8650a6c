"""Groups are placed as a naive scheduler would, or for its reasons not at all.

Each seed is so many sequences of events. `make sim SEEDS=80` tries that many seeds, `make sim
SEED=7` one; where something is wrong, the shortest sequence that shows it is printed.
"""

import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from bayplan.engine.group_cycle import GroupPass
from bayplan.sim.checkers import InvariantBroken
from tests.engine.gang_machine import GangMachine

SEEDS_BY_DEFAULT = 2
SEQUENCES_PER_SEED = 60
STEPS_PER_SEQUENCE = 40
UNCHECKED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def seeds() -> list[int]:
    one = os.environ.get("BAYPLAN_SIM_SEED")
    if one is not None:
        return [int(one)]
    return list(range(int(os.environ.get("BAYPLAN_SIM_SEEDS", SEEDS_BY_DEFAULT))))


def play(number: int, tally: Counter[str], *, is_shrunk: bool = True) -> None:
    """One seed. Raises where something is wrong."""
    machine = type("Machine", (GangMachine,), {"tally": tally})
    seed(number)(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=SEQUENCES_PER_SEED,
            stateful_step_count=STEPS_PER_SEQUENCE,
            database=None,
            deadline=None,
            derandomize=False,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink) if is_shrunk else (Phase.generate,),
            suppress_health_check=UNCHECKED,
        ),
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", seeds())
def test_groups_are_placed_as_a_naive_scheduler_would(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Counter[str]()
    try:
        play(number, tally)
    except BaseException as problem:
        problem.add_note(f"replay it with: make sim SEED={number}")
        raise
    with capsys.disabled():
        print("\n" + "\n".join(f"{count:8d} {what}" for what, count in sorted(tally.items())))


# ---- what it finds -------------------------------------------------------------------------


def too_few_are_enough(patch: pytest.MonkeyPatch) -> None:
    run = GroupPass.run
    patch.setattr(GroupPass, "run", lambda self, members, needed: run(self, members, needed - 1))
    best = "bayplan.engine.group_attempts.max"
    patch.setattr(best, lambda *counts: max(1, max(*counts) - 1), raising=False)


def members_are_tried_backwards(patch: pytest.MonkeyPatch) -> None:
    run = GroupPass.run
    patch.setattr(GroupPass, "run", lambda self, members, n: run(self, members[::-1], n))


def the_first_that_does_not_fit_ends_the_pass(patch: pytest.MonkeyPatch) -> None:
    def try_(self: GroupPass, queued: Any) -> None:
        if not self.unfitted:
            attempt(self, queued)

    attempt = GroupPass._try
    patch.setattr(GroupPass, "_try", try_)


FAULTS = (
    too_few_are_enough,
    members_are_tried_backwards,
    the_first_that_does_not_fit_ends_the_pass,
)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, InvariantBroken)):
        play(0, Counter[str](), is_shrunk=False)
