"""Columns that grow and forget: the remembered part equals that of the whole timeline."""

import numpy as np
import pytest

from bayplan.history.columns import Column, Columns, Table
from bayplan.history.timeline import State, Timeline, numbers
from bayplan.history.timeline_fold import TimelineFold
from bayplan.ui import pages
from tests.history.stored_runs import FoldedSimulation
from tests.ui.example_run import example_workload


class Pairs(Columns):
    left = Column()
    right = Column()


def test_a_view_of_a_table_stays_valid_while_rows_are_added() -> None:
    table = Table(Pairs)
    first = table.append([1, 2])
    view = table.columns
    for number in range(1000):
        table.append([number, 0])
    table.set(first, Pairs.right, 5)
    assert table.columns.rows.shape == (1001, 2)
    assert table.get(first, Pairs.right) == 5
    assert view.rows.shape == (1, 2)
    table.replace(table.columns[500:])
    assert (len(table), table.get(0, Pairs.left), view.left[0]) == (501, 499, 1)


def recorded(forget_at: int, window: int) -> Timeline:
    """The example run. After each ``forget_at`` changes, all but the last ``window`` are
    forgotten."""

    def forget(fold: TimelineFold) -> None:
        if fold.change >= fold.first_change + forget_at:
            fold.forget_before(fold.change - window)

    return FoldedSimulation(example_workload(), forget if forget_at else None).run()


@pytest.fixture(scope="module")
def whole() -> Timeline:
    return recorded(0, 0)


@pytest.mark.parametrize(("forget_at", "window"), [(120, 60), (40, 10), (7, 1)])
def test_the_remembered_part_equals_that_of_the_whole_timeline(
    whole: Timeline, forget_at: int, window: int
) -> None:
    line = recorded(forget_at, window)
    assert line.last_change < whole.last_change
    shift = whole.last_change - line.last_change
    assert window <= line.last_change - line.first_change < forget_at + 20
    for change in range(line.first_change, line.last_change + 1):
        assert_equal_states(line.state(change), whole.state(change + shift))


def assert_equal_states(short: State, long: State) -> None:
    assert short.seconds == long.seconds
    one, other = pages.overview(short), pages.overview(long)
    for name in ("placed", "waiting", "waiting_kinds", "attempts", "queues", "usage", "nodes"):
        assert getattr(one, name) == getattr(other, name), name
    waiting, expected = pages.waiting(short), pages.waiting(long)
    for group, expected_group in zip(waiting.groups, expected.groups, strict=True):
        assert (group.number, group.cause, group.pods) == (
            expected_group.number,
            expected_group.cause,
            expected_group.pods,
        )
        assert (group.example, group.since_seconds) == (
            expected_group.example,
            expected_group.since_seconds,
        )
    assert pods_of(short) == pods_of(long)
    assert nodes_of(short) == nodes_of(long)


def pods_of(state: State) -> dict[str, object]:
    rows = numbers(np.flatnonzero(state.pods_there))
    return {state.timeline.pods[row].uid: pages.pod_entry(state, row) for row in rows}


def nodes_of(state: State) -> dict[str, object]:
    names = [state.timeline.node_names[row] for row in numbers(state.there)]
    answers = {name: pages.node_answer(state, name) for name in names}
    return {name: (one.pods, one.usage, one.labels, one.taints) for name, one in answers.items()}


def test_a_pending_pod_has_its_start_and_its_number_of_attempts(whole: Timeline) -> None:
    line = recorded(40, 10)
    short = pages.pod_answer(line.state(line.last_change), "default/huge")
    long = pages.pod_answer(whole.state(whole.last_change), "default/huge")
    assert short.pod == long.pod
    assert short.attempts[-1].attempt == long.attempts[-1].attempt
    assert short.cause == long.cause


def test_groups_and_causes_without_pods_are_forgotten(whole: Timeline) -> None:
    line = recorded(7, 1)
    assert len(line.pods) < len(whole.pods)
    assert len(line.attempts) < len(whole.attempts)
    assert line.attempts.pod.max(initial=-1) < len(line.pods)
    assert line.group_names == whole.group_names  # its members exist until the end
