"""The timeline of a run: the state at any change equals that of a simulation that stops there."""

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan import rng
from bayplan.history.columns import NEVER
from bayplan.history.timeline import ChangeKind, Series, State, Timeline
from tests.history.stored_runs import FoldedSimulation, folded
from tests.sim.runs import workload
from tests.ui.example_run import example_workload, simulated

_DRAWS = rng.stream(3, "moments")
#: Moments as fractions of the run.
MOMENTS = [0.0, *(round(_DRAWS.uniform(0, 1), 3) for _ in range(5))]


@pytest.fixture(scope="module")
def line() -> Timeline:
    return folded(example_workload())


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_state_at_a_moment_is_that_of_a_simulation_that_stops_there(
    line: Timeline, moment: float
) -> None:
    seconds = moment * line.end_seconds
    stopped = simulated(replace(example_workload(), until_seconds=seconds)).run()
    state = line.state(line.change_at(seconds))

    assert {line.node_names[row] for row in state.there} == set(stopped.node_usage)
    for name, usage in stopped.node_usage.items():
        row = line.node_rows[name]
        of_resource = dict(zip(line.resources, state.used[row].tolist(), strict=True))
        allocatable = dict(zip(line.resources, state.allocatable[row].tolist(), strict=True))
        assert of_resource["pods"] == usage.pods
        assert {key: of_resource[key] for key in usage.requested} == usage.requested
        assert {key: allocatable[key] for key in usage.allocatable} == usage.allocatable
    assert {line.pods[row].name for row in state.waiting} == set(stopped.unschedulable)
    attempts = {line.pods[row].name: int(n) for row, n in enumerate(state.attempt_counts) if n}
    assert attempts == {name: pod.attempts for name, pod in stopped.pods.items() if pod.attempts}


def test_the_example_has_all_kinds_of_changes(line: Timeline) -> None:
    for happening in (
        ChangeKind.POD_PREEMPTED,
        ChangeKind.POD_ENDED,
        ChangeKind.NODE_REMOVED,
        ChangeKind.NODE_CHANGED,
        ChangeKind.GATED,
        ChangeKind.GROUP,
        ChangeKind.UNSCHEDULABLE,
    ):
        assert (line.changes.what == happening).any(), happening


def test_series_agree_with_the_state_at_each_change(line: Timeline) -> None:
    series = Series(line)
    resource = line.resources.index("cpu")
    for change in range(0, line.last_change + 1, 7):
        state = State(line, change)
        assert series.placed[change] == len(state.placement_rows)
        assert series.waiting[change] == len(state.waiting)
        assert series.used(resource)[change] == state.used[:, resource].sum()
        assert series.allocatable(resource)[change] == state.allocatable[:, resource].sum()
        kinds = [line.causes[n].kind for n in state.cause_of_pod[state.waiting].tolist()]
        assert series.unschedulable[change] == kinds.count("unschedulable")


def test_queue_lengths_are_those_of_the_scheduler_at_the_end() -> None:
    run = FoldedSimulation(example_workload())
    line = run.run()
    assert line.state(line.last_change).queue_lengths == run.simulation.scheduler.queue.counts()


def test_change_0_is_the_empty_cluster(line: Timeline) -> None:
    state = line.state(0)
    assert not len(state.there)
    assert not len(state.waiting)
    assert not len(state.placement_rows)


def test_an_empty_run_has_a_timeline() -> None:
    line = folded(workload())
    assert (line.last_change, line.end_seconds, line.resource_order) == (0, 0.0, ())
    assert Series(line).placed.tolist() == [0.0]


def test_each_lifetime_begins_before_it_ends(line: Timeline) -> None:
    assert (line.placements.start < line.placements.end).all()
    assert (line.versions.start < line.versions.end).all()
    assert (line.lives.created < line.lives.gone).all()
    waits = line.waits_from != NEVER
    assert (line.waits_from[waits] <= line.lives.waits_to[waits]).all()
    assert (np.diff(line.seconds) >= 0).all()
