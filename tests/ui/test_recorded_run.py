"""The timeline of a run from its records alone: what the page shows while no plugin may run."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.config import load_config
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import Manifest, PluginsNotAllowedError, RunFolder
from bayplan.sim.simulation import Simulation
from bayplan.ui.answers import NodeVerdictAnswer
from bayplan.ui.subjects import RunSubject
from bayplan.ui.timeline import Timeline
from tests.ui.example_run import example_workload

_PLUGIN = """
from pathlib import Path
from bayplan import ScalarFilterPlugin, unschedulable

Path({mark!r}).touch()

class Picky(ScalarFilterPlugin):
    name = "Picky"
    def filter_node(self, state, pod, node):
        return unschedulable("not today") if node.name == "n1" else None
"""
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: Picky}]}}
"""


class _Run:
    """A run with a plugin that leaves a mark when it is executed."""

    def __init__(self, folder: Path, feed: Workload) -> None:
        self.mark = folder / "executed"
        self.plugin = folder / "picky.py"
        self.plugin.write_text(_PLUGIN.format(mark=str(self.mark)))
        self.path = folder / "run"
        config = load_config(_CONFIG, "test")
        manifest = Manifest(seed=1, config=_CONFIG, feature_gates="")
        run = RunFolder(self.path)
        with run.start(manifest, feed, [self.plugin]) as sink:
            registry = default_registry([self.plugin])
            simulation = Simulation(feed, config, registry, seed=1, state_log=sink.states)
            simulation.keep_journal(sink)
            run.finish(simulation.run())
        self.mark.unlink()

    def shown(self, **permission: Any) -> tuple[RunSubject, list[str]]:
        remarks: list[str] = []
        subject = RunSubject(RunFolder(self.path, **permission), remarks.append)
        subject.load()
        assert subject.answer().phase == "ready", subject.answer().problem
        return subject, remarks


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> _Run:
    return _Run(tmp_path_factory.mktemp("others"), example_workload())


def _placements(line: Timeline) -> Counter[tuple[str, str]]:
    rows: list[list[int]] = line.placements.tolist()
    return Counter((line.pods[pod].name, line.node_names[node]) for pod, node, *_ in rows)


def _causes(line: Timeline) -> Counter[str]:
    """Why pods wait, but for the groups: a record of a group has no place among the states."""
    causes = (line.causes[cause] for _, _, cause, _ in line.verdicts)
    return Counter(str(cause) for cause in causes if cause.kind != "group")


def test_the_plugins_of_a_run_are_not_executed(run: _Run) -> None:
    subject, remarks = run.shown()
    assert not run.mark.exists()
    (remark,) = remarks
    assert remark == (
        f'{run.path}: the run has the plugins "picky.py", which are code; --allow-plugins executes '
        f"the copies in the folder, --plugin FILE.py a file of yours; until then, what-ifs and "
        f"explanations of nodes are missing"
    )
    assert subject.answer().notes == (remark,)
    assert not subject.answer().has_model


@pytest.mark.parametrize("permission", ["allowed", "named"])
def test_the_records_give_the_timeline_of_the_repetition(run: _Run, permission: str) -> None:
    recorded = run.shown()[0].timeline
    given = {"allows_plugins": True} if permission == "allowed" else {"plugins": [run.plugin]}
    subject, remarks = run.shown(**given)
    assert run.mark.exists()
    assert (remarks, subject.answer().notes) == ([], ())
    run.mark.unlink()
    repeated = subject.timeline
    assert recorded.pods == repeated.pods
    assert _placements(recorded) == _placements(repeated)
    assert _causes(recorded) == _causes(repeated)
    assert Counter(recorded.what) == Counter(repeated.what)
    assert recorded.end_seconds == pytest.approx(repeated.end_seconds, abs=400)


def test_decisions_are_shown_without_the_plugins(run: _Run) -> None:
    decision = run.shown()[0].decision("default/job-000", 1)
    assert "Picky" in str(decision.record)
    assert not run.mark.exists()


def test_what_needs_the_plugins_says_so(run: _Run) -> None:
    subject = run.shown()[0]
    with pytest.raises(PluginsNotAllowedError, match="--allow-plugins"):
        subject.moment(0, lambda: None)
    with pytest.raises(PluginsNotAllowedError, match="--allow-plugins"):
        subject.rejections("n1", lambda: None)
    answer = NodeVerdictAnswer(phase="computing")
    while answer.phase == "computing":
        answer = subject.verdict("default/job-000", 1, "n1")
    assert answer.phase == "failed"
    assert "--allow-plugins" in answer.problem
    assert not run.mark.exists()


def test_the_extenders_of_a_run_are_not_called(tmp_path: Path) -> None:
    config = _CONFIG.split("profiles:", maxsplit=1)[0] + (
        "extenders: [{urlPrefix: 'http://evil.example', filterVerb: filter}]\n"
    )
    folder = RunFolder(tmp_path / "run")
    manifest = Manifest(seed=1, config=config, feature_gates="")
    with folder.start(manifest, example_workload(3), ()):
        pass
    remarks: list[str] = []
    subject = RunSubject(folder, remarks.append)
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem
    assert 'calls the extenders "http://evil.example"; --allow-plugins' in remarks[0]


def test_loading_ends_when_the_page_is_closed(run: _Run) -> None:
    subject = RunSubject(RunFolder(run.path))
    subject.stop()
    subject.load()
    assert subject.answer().problem == ""
    assert subject.answer().phase == "failed"
