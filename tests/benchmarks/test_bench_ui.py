"""The benchmark of the page: its timeline has the form of a real run."""

import numpy as np
from click.testing import CliRunner

from bayplan.ui import pages
from benchmarks.bench_ui import main, questions, timeline


def test_the_timeline_has_the_requested_pods_and_nodes() -> None:
    line = timeline(30, 200)
    view = pages.overview(line.state(line.last_change))
    assert (view.nodes, view.placed, view.waiting, view.attempts) == (30, 190, 10, 200)
    assert (line.placements.start < line.placements.end).all()
    assert (np.diff(line.seconds) >= 0).all()
    assert len(questions(line)) == 12


def test_the_benchmark_prints_a_row_for_each_answer() -> None:
    completed = CliRunner().invoke(main, ["--nodes", "30", "--pods", "200"])
    assert completed.exit_code == 0, completed.output
    assert "heat map, fragmentation" in completed.output
