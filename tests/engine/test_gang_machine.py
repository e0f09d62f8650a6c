"""Groups are placed as a naive scheduler places them.

Each seed is a number of event sequences. A failure prints the shortest sequence that shows it.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bayplan.engine import attempts, exclusive_domains
from bayplan.engine.podgroups import arranged_pass
from bayplan.engine.podgroups.topology import Domains, SliceGaps
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.sim.world.checkers import InvariantBroken
from bayplan.state.pod_groups import GroupState
from tests.engine.gang_machine import GangMachine
from tests.seeded import Play, depth, machine_seeds, replayable, table_of

SEEDS_BY_DEFAULT = depth(1, 2)
PLAY = Play(GangMachine, sequences=depth(20, 60), steps_per_sequence=40)
#: Some faults need a rare sequence: the play ends where the fault shows.
FAULT_PLAY = Play(GangMachine, sequences=300, steps_per_sequence=40)


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


def members_share_zones_with_an_exclusive_group(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exclusive_domains, "_domains_of", lambda nodes, *_: np.zeros(len(nodes), bool))


def an_exclusive_group_joins_other_pods(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exclusive_domains, "_shared_domains", lambda nodes, _: np.zeros(len(nodes), bool))


def single_pods_enter_the_zones_of_exclusive_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "restrict_to_unreserved", lambda *_: None)


def members_of_a_slice_are_placed_apart(patch: pytest.MonkeyPatch) -> None:
    of = arranged_pass._problem

    def problem(*args: Any, **options: Any) -> Any:
        whole = of(*args, **options)
        return None if whole is None else whole._replace(layers=())

    patch.setattr(arranged_pass, "_problem", problem)


def a_slice_that_lacks_a_member_does_not_get_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Domains, "lacking", lambda _self, _snapshot, _state, within=None: SliceGaps(within, ())
    )


def a_replacement_leaves_the_domain_of_its_group(patch: pytest.MonkeyPatch) -> None:
    of = Domains.of
    patch.setattr(
        Domains,
        "of",
        lambda self, snapshot, key, state: of(self, snapshot, key, GroupState(state.key)),
    )


def a_group_that_grows_needs_its_minimum_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupState, "assigned_count", property(lambda _: 0))


FAULTS = (
    too_few_are_enough,
    members_are_tried_backwards,
    the_first_that_does_not_fit_ends_the_pass,
    members_share_zones_with_an_exclusive_group,
    an_exclusive_group_joins_other_pods,
    single_pods_enter_the_zones_of_exclusive_groups,
    members_of_a_slice_are_placed_apart,
    a_slice_that_lacks_a_member_does_not_get_it,
    a_replacement_leaves_the_domain_of_its_group,
    a_group_that_grows_needs_its_minimum_again,
)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, InvariantBroken)):
        FAULT_PLAY.run(0, {"tally": Counter[str]()}, is_shrunk=False)
