"""Two runs of eight nodes, for tests of the page of two runs."""

from pathlib import Path

from bayplan.ui.subjects import RunSubject
from tests.history.stored_runs import write_run
from tests.kit.manifests import node, pod
from tests.sim.runs import workload
from tests.ui.example_run import PACK


def runs_of_eight_nodes(folder: Path) -> list[RunSubject]:
    """Both place one pod: the first on an empty node, the second on n1, which has two pods."""
    placed = [pod(f"old-{i}", nodeName="n1", cpu="500m") for i in (1, 2)]
    cluster = workload(*(node(f"n{i}") for i in range(1, 9)), *placed, pod("new"))
    subjects = [
        RunSubject(write_run(folder / "spread", cluster)),
        RunSubject(write_run(folder / "pack", cluster, PACK)),
    ]
    for subject in subjects:
        subject.load()
    return subjects
