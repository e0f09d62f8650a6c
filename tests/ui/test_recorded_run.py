"""The timeline of a run is the fold of its log; the plugins of the run are not needed for it."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from bayplan.history.node_verdict import NodeVerdict
from bayplan.history.timeline import Timeline
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import PluginsNotAllowedError, RunFolder
from bayplan.ui.answers import Computation
from bayplan.ui.subjects import RunSubject
from tests.history.stored_runs import folded, stored_run
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
        stored_run(folder, feed, 1, _CONFIG)
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
def test_the_timeline_is_the_same_with_and_without_the_plugins(run: _Run, permission: str) -> None:
    without = run.shown()[0].timeline
    given = {"allows_plugins": True} if permission == "allowed" else {"plugins": [run.plugin]}
    subject, remarks = run.shown(**given)
    assert run.mark.exists()
    assert (remarks, subject.answer().notes) == ([], ())
    assert subject.has_model
    run.mark.unlink()
    assert_equal_timelines(subject.timeline, without)


def test_the_timeline_of_a_folder_is_that_of_the_run(subject: RunSubject) -> None:
    assert_equal_timelines(subject.timeline, folded(example_workload()))


def assert_equal_timelines(one: Timeline, other: Timeline) -> None:
    for name in ("resources", "pods", "nodes", "node_names", "causes", "group_names"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("group_minimums", "group_records", "queue_names", "wake_events"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("lives", "placements", "versions", "attempts", "verdicts", "queues"):
        assert getattr(one, name).rows.tolist() == getattr(other, name).rows.tolist(), name
    assert one.seconds.tolist() == other.seconds.tolist()
    assert one.amounts.tolist() == other.amounts.tolist()
    for column in ("what", "pod", "node"):
        of_one, of_other = getattr(one.changes, column), getattr(other.changes, column)
        assert of_one.tolist() == of_other.tolist(), column


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
    answer: Computation[NodeVerdict] = Computation(phase="computing")
    while answer.phase == "computing":
        answer = subject.verdict("default/job-000", 1, "n1")
    assert answer.phase == "failed"
    assert "--allow-plugins" in answer.problem
    assert not run.mark.exists()


def test_the_extenders_of_a_run_are_not_called(tmp_path: Path) -> None:
    config = _CONFIG.split("profiles:", maxsplit=1)[0] + (
        "extenders: [{urlPrefix: 'http://evil.example', filterVerb: filter}]\n"
    )
    run = stored_run(tmp_path, example_workload(3))
    manifest = structs.replace(run.manifest(), config=config)
    (run.path / "run.json").write_bytes(json.encode(manifest))
    folder = RunFolder(run.path)
    remarks: list[str] = []
    subject = RunSubject(folder, remarks.append)
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem
    assert 'calls the extenders "http://evil.example"; --allow-plugins' in remarks[0]


def test_a_log_with_a_quantity_that_no_server_accepts_is_refused(tmp_path: Path) -> None:
    folder = stored_run(tmp_path, example_workload(3))
    states = folder.path / "states" / "000000.jsonl"
    states.write_text(states.read_text().replace('"cpu":"1"', '"cpu":"1x"'))
    subject = RunSubject(folder)
    subject.load()
    assert "found '1x', wanted a quantity" in subject.answer().problem


def test_loading_ends_when_the_page_is_closed(run: _Run) -> None:
    subject = RunSubject(RunFolder(run.path))
    subject.stop()
    subject.load()
    assert subject.answer().problem == ""
    assert subject.answer().phase == "failed"
