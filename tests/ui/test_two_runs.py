"""Two runs side by side: differing numbers, pods, and the first differing decision."""

from pathlib import Path

import pytest

from bayplan.sim.input.workload import Workload
from bayplan.ui.subjects import RunSubject
from bayplan.ui.two_runs import TwoRuns
from tests.history.stored_runs import write_run
from tests.kit.manifests import container, node, pod
from tests.sim.runs import workload
from tests.ui.example_run import PACK
from tests.ui.fetching import ready
from tests.ui.two_run_subjects import runs_of_eight_nodes


def feed() -> Workload:
    """Two pods run on n1; a third pod fits on n1 and n2."""
    placed = [pod(f"old-{i}", nodeName="n1", cpu="500m") for i in (1, 2)]
    return workload(node("n1"), node("n2"), *placed, pod("new"), pod("huge", containers=BIG))


BIG = [container("100")]


def loaded(path: Path, config: str | None = None) -> RunSubject:
    run = RunSubject(write_run(path, feed(), config))
    run.load()
    assert run.answer().phase == "ready", run.answer().problem
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> TwoRuns:
    folder = tmp_path_factory.mktemp("two")
    return TwoRuns(loaded(folder / "spread"), loaded(folder / "pack", PACK))


def test_a_pod_with_another_node_has_both_nodes_and_the_plugins_that_differ(
    runs: TwoRuns,
) -> None:
    [place] = runs.moved
    moved = runs.moved_pod(place)
    assert (moved.pod, moved.one, moved.other) == ("default/new", "n2", "n1")
    assert moved.in_one.plugins[0].plugin == "NodeResourcesFit"
    assert moved.in_one.difference == sum(one.difference for one in moved.in_one.plugins) > 0
    assert [one.plugin for one in moved.in_other.plugins] == ["NodeResourcesFit"]
    assert moved.in_other.difference > 0


def test_the_first_decision_that_differs_is_named(runs: TwoRuns) -> None:
    first = runs.first
    assert first is not None
    assert (first.number, first.one.pod, first.other.pod) == (1, "default/new", "default/new")
    assert (first.one.node, first.other.node) == ("n2", "n1")


def test_only_numbers_that_differ_are_in_the_answer(runs: TwoRuns) -> None:
    answer = runs.answer()
    assert answer.rows == ()
    assert answer.equal_count > 5
    assert (answer.moved_count, answer.pods) == (1, 4)


def test_a_node_outside_the_record_is_compared_by_a_repetition_of_the_attempt(
    tmp_path: Path,
) -> None:
    subjects = runs_of_eight_nodes(tmp_path)
    runs = TwoRuns(*subjects)
    [place] = runs.moved
    moved = runs.moved_pod(place)
    assert (moved.other, moved.in_one.computed_attempt) == ("n1", 1)
    assert moved.in_one.note == "n1 is not among the best nodes of the record"
    answer = ready(lambda: subjects[0].verdict("default/new", 1, "n1"))
    assert answer.value is not None
    assert (answer.value.node, answer.value.better) == ("n1", 7)


def test_a_run_compared_with_itself_has_no_differences(tmp_path: Path) -> None:
    run = loaded(tmp_path / "run")
    same = TwoRuns(run, run)
    assert (same.first, list(same.moved), same.answer().rows) == (None, [], ())


def test_a_pod_that_only_one_run_placed_is_a_difference(tmp_path: Path) -> None:
    pods = pod("new"), pod("more", cpu="3500m")
    small, large = workload(node("n1"), *pods), workload(node("n1"), node("n2"), *pods)
    subject = [
        RunSubject(write_run(tmp_path / "small", small)),
        RunSubject(write_run(tmp_path / "large", large)),
    ]
    for run in subject:
        run.load()
    runs = TwoRuns(*subject)
    [moved] = [runs.moved_pod(place) for place in runs.moved if place.pod == "default/more"]
    assert (moved.one, moved.other) == ("", "n2")
    assert moved.in_one.note.startswith("unschedulable: 0/1 nodes are available")
    rows = {row.name: (row.one, row.other) for row in runs.answer().rows}
    assert rows["pods waiting at the end"] == (1, 0)
    shares = [abs(one - other) / max(one, other) for one, other in rows.values()]
    assert shares == sorted(shares, reverse=True)
