"""The answers of the page: the contents of each view at a change."""

import base64
import math
from pathlib import Path

import numpy as np
import pytest

from bayplan.history.timeline import Series, State, Timeline
from bayplan.journal import AttemptRecord
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui import pages
from bayplan.ui.answers import PAGE_MAX
from bayplan.ui.pages import Part
from bayplan.ui.subjects import RunSubject
from bayplan.ui.tables import NoSuchObject, PodFilter, pod_rows
from tests.history.stored_runs import write_run
from tests.ui.example_run import ZONE


@pytest.fixture(scope="module")
def line(subject: RunSubject) -> Timeline:
    return subject.timeline


def at(line: Timeline, seconds: float) -> State:
    return line.state(line.change_at(seconds))


def unpacked(text: str, kind: str) -> list[float]:
    return np.frombuffer(base64.b64decode(text), kind).tolist()


def test_the_overview_at_the_end_has_the_numbers_of_the_summary(
    line: Timeline, run_folder: RunFolder
) -> None:
    result = run_folder.result()
    assert result is not None
    view = pages.overview(line.state(line.last_change))
    assert (view.nodes, view.waiting) == (result.nodes, result.counts.unschedulable)
    assert view.attempts == result.attempts
    assert sum(view.waiting_kinds.values()) == view.waiting
    requested = {one.resource: one.requested for one in result.usage}
    assert {one.resource: one.used for one in view.usage} == {
        one.resource: requested[one.resource] for one in view.usage
    }


def test_the_newest_changes_come_first_and_equal_ones_of_a_workload_are_one(line: Timeline) -> None:
    recent = pages.overview(line.state(40)).recent
    assert [one.change.change for one in recent] == sorted(
        (one.change.change for one in recent), reverse=True
    )
    names = {pod.name: pod.workload for pod in line.pods}
    kinds = [(one.change.what, names.get(one.change.pod, "")) for one in recent]
    assert len(set(kinds)) == len(kinds)
    end = pages.overview(line.state(line.last_change)).recent
    # A pod without a controller is one pod, however often it was tried.
    assert {one.count for one in end if one.change.pod} == {1}


def test_the_overview_counts_the_nodes_that_get_no_pods(line: Timeline) -> None:
    counts = pages.overview(at(line, 310)).node_states
    assert counts == {"ready": 6, "not ready": 0, "cordoned": 0, "tainted": 1}


@pytest.mark.parametrize("by_time", [True, False])
def test_series_end_with_the_state_at_the_end(line: Timeline, by_time: bool) -> None:
    curves = pages.series(line, Series(line), by_time=by_time, points=50)
    end = pages.overview(line.state(line.last_change))
    assert len(curves.placed) == len(curves.seconds) == 50
    assert (curves.placed[-1], curves.waiting[-1]) == (end.placed, end.waiting)
    assert curves.attempts[-1] == end.attempts
    cpu = end.usage[0]
    assert math.isclose(curves.usage["cpu"][-1], cpu.used / cpu.allocatable, abs_tol=1e-4)


def test_series_of_a_span_have_points_of_the_span_only(line: Timeline) -> None:
    totals = Series(line)
    middle = line.end_seconds / 2
    curves = pages.series(line, totals, by_time=True, points=11, start=middle, end=middle + 10)
    assert (curves.seconds[0], curves.seconds[-1]) == pytest.approx((middle, middle + 10), abs=1e-3)
    assert curves.placed[0] == pages.overview(line.state(line.change_at(middle))).placed
    changes = pages.series(line, totals, by_time=False, points=11, start=20, end=30).changes
    assert changes == list(range(20, 31))


def test_a_span_outside_the_run_shows_all(line: Timeline) -> None:
    totals = Series(line)
    whole = pages.series(line, totals, by_time=True, points=11)
    beyond = line.end_seconds + 1
    assert pages.series(line, totals, by_time=True, points=11, start=beyond) == whole


def test_the_heat_map_has_one_value_for_each_node_group_by_group(line: Timeline) -> None:
    state = at(line, 100)
    heat = pages.heat(state, color="cpu", group_by=ZONE)
    rows = [int(row) for row in unpacked(heat.nodes, "<i4")]
    assert [(group.name, group.count) for group in heat.groups] == [("a", 2), ("b", 2), ("c", 2)]
    assert [line.node_names[row] for row in rows] == ["n0", "n3", "n1", "n4", "n2", "n5"]
    values = unpacked(heat.values, "<f4")
    cpu = line.resources.index("cpu")
    expected = state.used[rows, cpu] / state.allocatable[rows, cpu]
    assert np.allclose(values, expected)


def test_a_deleted_node_is_not_on_the_heat_map(line: Timeline) -> None:
    names = [
        {line.node_names[int(row)] for row in unpacked(heat.nodes, "<i4")}
        for heat in (pages.heat(at(line, s), color="cpu", group_by="") for s in (419, 421))
    ]
    assert names[0] - names[1] == {"n1"}


def test_fragmentation_is_the_difference_of_free_shares(line: Timeline) -> None:
    state = at(line, 100)
    values = pages.fragmentation(state)
    cpu, memory = line.resources.index("cpu"), line.resources.index("memory")
    for row in state.there.tolist():
        free = [1 - state.used[row, i] / state.allocatable[row, i] for i in (cpu, memory)]
        assert math.isclose(values[row], max(free) - min(free))


def test_the_count_of_fitting_pods_is_limited_by_the_scarcest_resource(line: Timeline) -> None:
    state = at(line, 100)
    counts = pages.fit_counts(state, "default/train-1")
    cpu, pods = line.resources.index("cpu"), line.resources.index("pods")
    free = state.allocatable - state.used
    for row in state.there.tolist():
        assert counts[row] == min(free[row, cpu] // 2000, free[row, pods])


def test_waiting_pods_are_grouped_by_cause_the_largest_group_first(line: Timeline) -> None:
    for seconds in (100, 250, 500):
        state = at(line, seconds)
        view = pages.waiting(state)
        order = [(-group.pods, group.number) for group in view.groups]
        assert order == sorted(order)
        assert view.cause_count == len(order)
        assert sum(group.pods for group in view.groups) == view.total == len(state.waiting)
        for group in view.groups:
            assert len(pod_rows(state, PodFilter(cause=group.number))) == group.pods


def test_a_cause_stands_since_the_last_moment_without_a_pod_that_waits_for_it(
    line: Timeline,
) -> None:
    starts: dict[int, int] = {}
    for change in range(line.last_change + 1):
        state = line.state(change)
        causes = set(state.cause_of_pod[state.waiting].tolist()) - {0}
        starts = {cause: starts.get(cause, change) for cause in causes}
        assert state.cause_starts == starts
    assert len(set(starts.values())) > 1


def test_a_rejected_pod_names_the_plugin_and_the_events_that_wake_it(line: Timeline) -> None:
    view = pages.pod_answer(at(line, 100), "default/huge")
    assert view.cause is not None
    assert view.cause.kind == "unschedulable"
    assert ("NodeResourcesFit", "Insufficient cpu") in {
        (part.plugin, part.reason) for part in view.cause.parts
    }
    assert "Node: added, allocatable changed" in view.events["NodeResourcesFit"]


def test_a_gated_pod_has_its_gate_as_cause(line: Timeline) -> None:
    view = pages.pod_answer(at(line, 100), "default/gated")
    assert view.cause is not None
    assert [part.plugin for part in view.cause.parts] == ["SchedulingGates"]
    assert not view.attempts


def test_a_pod_is_absent_waiting_placed_and_ended(line: Timeline) -> None:
    row = next(
        row
        for row, pod in enumerate(line.pods)
        if pod.name.startswith("default/job") and line.lives.waits_to[row] < line.last_change
    )
    created = int(line.lives.created[row])
    places = line.placements[line.placements.pod == row]
    moments = [created - 1, created, int(places.start[0]), int(places.end[-1])]
    states = [pages.pod_entry(line.state(change), row).state for change in moments]
    assert states == ["absent", "waiting", "placed", "ended"]


def test_a_decision_names_the_victims_of_its_preemption(subject: RunSubject) -> None:
    decision = subject.decision("default/urgent", 1)
    assert decision.record.nominated_node
    assert decision.victims
    for name in decision.victims:
        view = pages.pod_answer(subject.timeline.state(subject.timeline.last_change), name)
        assert "pod_preempted" in [change.what for change in view.changes]


def test_a_decision_is_the_record_of_the_journal(
    subject: RunSubject, run_folder: RunFolder
) -> None:
    for record in run_folder.journal():
        if isinstance(record, AttemptRecord):
            assert subject.decision(record.pod, record.attempt).record == record


def test_a_group_has_its_members_and_attempts(line: Timeline) -> None:
    early = pages.group_answer(at(line, 300), "default/train")
    late = pages.group_answer(line.state(line.last_change), "default/train")
    assert (early.group.members, early.group.minimum) == (2, 3)
    assert late.group.members == 3
    assert late.attempts
    assert sum(late.nodes.values()) == late.group.placed


@pytest.mark.parametrize("name", ["pod", "node", "group"])
def test_a_missing_object_is_refused_with_its_name(line: Timeline, name: str) -> None:
    views = {"pod": pages.pod_answer, "node": pages.node_answer, "group": pages.group_answer}
    with pytest.raises(NoSuchObject, match=f"no {name} 'nothing'"):
        views[name](line.state(1), "nothing")


def test_label_keys_with_a_value_for_each_node_are_left_out(line: Timeline) -> None:
    assert pages.label_keys(line) == (ZONE, "pool")


@pytest.mark.parametrize(
    ("offset", "limit", "items"),
    [(0, 3, [0, 1, 2]), (8, 3, [8, 9]), (20, 3, []), (-5, 2, [0, 1]), (0, -1, [])],
)
def test_a_page_is_a_part_of_the_list(offset: int, limit: int, items: list[int]) -> None:
    part = Part(list(range(10)), offset, limit)
    assert (part.total, list(part.items)) == (10, items)


def test_a_page_has_a_largest_size() -> None:
    assert len(Part(range(10 * PAGE_MAX), 0, 10 * PAGE_MAX).items) == PAGE_MAX


# ---- groups ---------------------------------------------------------------------------------

_STARVING = Path(__file__).parents[2] / "examples" / "starving_gang"


@pytest.fixture(scope="module")
def starving(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """A gang that gets a reservation after a minute of waiting."""
    feed = load_inputs([str(_STARVING / "cluster.yaml")])
    config = (_STARVING / "reserving.yaml").read_text()
    run = RunSubject(write_run(tmp_path_factory.mktemp("gang") / "run", feed, config))
    run.load()
    return run.timeline


def test_a_group_shows_its_reservation_until_it_is_placed(starving: Timeline) -> None:
    name = starving.group_names[0]
    reserved = next(r for _, r in starving.group_records if r.result == "reserved")
    group = pages.group_answer(at(starving, reserved.at_seconds), name)
    assert group.reservation is not None
    assert group.reservation.nodes == 2
    assert group.reservation.since_seconds == reserved.at_seconds
    placed = next(r for _, r in starving.group_records if r.result == "placed")
    assert group.reservation.start_seconds == pytest.approx(placed.at_seconds, abs=15)
    assert sum(group.waiting_causes.values()) == group.group.waiting == 2
    end = pages.group_answer(at(starving, placed.at_seconds), name)
    assert end.reservation is None
    assert end.group.placed == sum(end.nodes.values()) == 2


def test_a_group_whose_members_ended_says_so(starving: Timeline) -> None:
    entry = pages.group_answer(starving.state(starving.last_change), starving.group_names[0]).group
    assert (entry.members, entry.placed, entry.waiting, entry.ended) == (2, 0, 0, 2)


def test_the_domains_of_a_group_have_its_members(line: Timeline) -> None:
    group = pages.group_answer(line.state(line.last_change), "default/train")
    assert {one.key for one in group.domains} == {ZONE}
    assert sum(one.members for one in group.domains) == group.group.placed
    state = line.state(line.last_change)
    assert sum(one.nodes for one in group.domains) == len(state.there)
    assert [one.members for one in group.domains] == sorted(
        (one.members for one in group.domains), reverse=True
    )


def test_cells_are_sized_by_the_capacity_of_the_nodes(line: Timeline) -> None:
    state = line.state(300)
    sized = pages.heat(state, color="cpu", group_by="", size_by="cpu")
    assert unpacked(sized.sizes, "<f4") == [8000.0] * len(state.there)
    with pytest.raises(NoSuchObject):
        pages.heat(state, color="cpu", group_by="", size_by="lead")
