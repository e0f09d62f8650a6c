"""Trees of groups are placed, and preempt, as a naive scheduler does it.

Each seed is a number of event sequences. A failure prints the shortest sequence that shows it.
"""

from collections import Counter
from typing import Any

import pytest

from bayplan.api.composite_pod_groups import CompositePodGroup
from bayplan.engine.podgroups.preemption import PodGroupPreemptor
from bayplan.engine.podgroups.tree_pass import TreePass
from bayplan.plugins.default_preemption import victims
from bayplan.state.disruption_units import Units
from bayplan.state.pod_group_trees import GroupTree, PodGroupTrees
from tests.engine.tree_machine import TreeMachine
from tests.seeded import Play, depth, machine_seeds, replayable, table_of

SEEDS_BY_DEFAULT = depth(1, 2)
PLAY = Play(TreeMachine, sequences=depth(20, 60), steps_per_sequence=40)
#: Some faults need a rare sequence: the play ends where the fault shows.
FAULT_PLAY = Play(TreeMachine, sequences=2_000, steps_per_sequence=40)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", machine_seeds(SEEDS_BY_DEFAULT))
def test_trees_are_placed_as_by_a_naive_scheduler(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Counter[str]()
    with replayable(number):
        PLAY.run(number, {"tally": tally})
    with capsys.disabled():
        print("\n" + table_of(tally))


# ---- planted faults -------------------------------------------------------------------------


def one_group_of_a_tree_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompositePodGroup, "min_group_count", 1)


def all_groups_of_a_tree_are_needed(patch: pytest.MonkeyPatch) -> None:
    attempt = TreePass._as_many_as_fit

    def as_many_as_fit(self: TreePass, tree: GroupTree, inside: Any, results: Any) -> Any:
        result = attempt(self, tree, inside, results)
        tried = (results[each.key] for each in tree.children if each.key in results)
        result.verdict.fits &= all(each.verdict.fits for each in tried)
        return result

    patch.setattr(TreePass, "_as_many_as_fit", as_many_as_fit)


def placements_of_a_group_that_does_not_fit_stay(patch: pytest.MonkeyPatch) -> None:
    undo = TreePass._undo_since
    patch.setattr(TreePass, "_undo_since", lambda self, mark: None if mark else undo(self, mark))


def a_tree_without_its_root_is_tried(patch: pytest.MonkeyPatch) -> None:
    def root_of(self: PodGroupTrees, key: Any) -> Any:
        ancestors = self.ancestors(key)
        return ancestors[-1] if ancestors else None

    patch.setattr(PodGroupTrees, "root_of", root_of)
    patch.setattr(PodGroupTrees, "has_parent", lambda self, key: not key.is_composite)


def only_the_lowest_group_leaves_as_a_whole(patch: pytest.MonkeyPatch) -> None:
    def lowest_whole(self: PodGroupTrees, state: Any) -> Any:
        return state.key if state.group is not None and state.group.leaves_whole else None

    patch.setattr(PodGroupTrees, "highest_whole", lowest_whole)


def members_on_other_nodes_stay(patch: pytest.MonkeyPatch) -> None:
    of = Units._members

    def members(self: Units, states: Any) -> Any:
        pods = of(self, states)
        return tuple(pod for pod in pods if pod.node_name == pods[0].node_name)

    patch.setattr(Units, "_members", members)


def no_victim_of_a_group_is_reprieved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodGroupPreemptor, "_leaving", lambda *args, **_: list(args[4]))


def no_victim_of_a_pod_is_reprieved(patch: pytest.MonkeyPatch) -> None:
    def reprieved(_: Any, possible: Any, violations: Any) -> Any:
        pods = tuple(pod for unit in possible for pod in unit.pods)
        return victims.Victims(pods, sum(violations))

    patch.setattr(victims, "_reprieved", reprieved)


def nominations_of_a_group_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodGroupPreemptor, "report_nominations", lambda *_: None)


FAULTS = (
    one_group_of_a_tree_is_enough,
    all_groups_of_a_tree_are_needed,
    placements_of_a_group_that_does_not_fit_stay,
    a_tree_without_its_root_is_tried,
    only_the_lowest_group_leaves_as_a_whole,
    members_on_other_nodes_stay,
    no_victim_of_a_group_is_reprieved,
    no_victim_of_a_pod_is_reprieved,
    nominations_of_a_group_are_lost,
)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        FAULT_PLAY.run(0, {"tally": Counter[str]()}, is_shrunk=False)
