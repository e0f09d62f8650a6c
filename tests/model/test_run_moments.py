"""The objects at a moment of a run are those that the run had then."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.api.objects import NODE, POD, Pod
from bayplan.model.picture import ClusterPicture
from bayplan.model.run_moments import objects_of_run, run_moment
from bayplan.problems import BadInputError
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui.subjects import RunSubject
from tests.cli.command_line import answer, profile, refusal, write_objects
from tests.cli.command_line import bayplan as command
from tests.kit.manifests import Content, container, node, pod, priority_class
from tests.sim.manifests import controller, scenario, template

WEB = controller(
    "Deployment",
    replicas=4,
    selector={"matchLabels": {"app": "web"}},
    template=template(containers=[container("2")]),
)
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
PICKY = """
from bayplan import ScalarFilterPlugin, unschedulable


class Picky(ScalarFilterPlugin):
    name = "Picky"

    def filter_node(self, state, pod, node):
        return unschedulable("not today") if node.name == "n2" else None
"""
EVENTS: list[Content] = [
    {"at": 30, "create": [pod("urgent", priorityClassName="high", cpu="4")]},
    {"at": 60, "delete": [{"kind": "Node", "name": "n1"}]},
    {"at": 90, "scale": [{"kind": "Deployment", "name": "web", "replicas": 1}]},
    {"at": 120, "create": [node("n3")]},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a preemption at 30 s, a deleted node at 60 s, fewer pods at 90 s and a new node at
    120 s, its end."""
    objects = (node("n1"), node("n2"), WEB, BUDGET, priority_class("high", 100))
    path = write_objects(tmp_path / "in.yaml", *objects, scenario(*EVENTS))
    answer("simulate", path, "--out", tmp_path / "run")
    return tmp_path / "run"


def objects_at(run: Path, at: str | float) -> ClusterPicture:
    folder = RunFolder(run)
    return objects_of_run(folder, run_moment(folder, at))


def nodes_of_pods(objects: ClusterPicture) -> dict[str, str]:
    pods = [each for each in objects.of(POD) if isinstance(each, Pod)]
    return {f"default/{each.metadata.name}": each.spec.node_name or "" for each in pods}


# ---- the objects ----------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 15, 30, 59.9, 60, 90, 119, 120])
def test_the_objects_at_a_time_are_those_that_the_page_shows(run: Path, at: float) -> None:
    subject = RunSubject(RunFolder(run))
    subject.load()
    line = subject.timeline
    state = line.state(line.change_at(at))
    shown = {
        line.pods[row].name: line.node_names[state.node_of_pod[row]]
        if state.node_of_pod[row] >= 0
        else ""
        for row in range(len(line.pods))
        if state.pods_there[row]
    }
    objects = objects_at(run, at)
    assert nodes_of_pods(objects) == shown
    assert {each.metadata.name for each in objects.of(NODE)} == {
        line.node_names[row] for row in state.there
    }


def test_the_start_is_before_the_first_attempt_and_0_s_is_after_it(run: Path) -> None:
    assert set(nodes_of_pods(objects_at(run, "start")).values()) == {""}
    assert sorted(nodes_of_pods(objects_at(run, "0s")).values()) == ["n1", "n1", "n2", "n2"]


def test_the_end_is_what_the_result_says(run: Path) -> None:
    result = RunFolder(run).result()
    assert result is not None
    nodes = nodes_of_pods(objects_at(run, "end"))
    assert {name: node for name, node in nodes.items() if node} == result.placements
    assert {name for name, node in nodes.items() if not node} == set(result.unschedulable)
    assert dict(objects_at(run, "end").objects) == dict(
        objects_at(run, result.simulated_seconds).objects
    )


def test_all_kinds_have_their_content(run: Path) -> None:
    objects = objects_at(run, "100s")
    kinds = {key.kind.rpartition(" ")[2]: objects.content(key) for key, _ in objects.objects}
    assert kinds.keys() >= {"Deployment", "ReplicaSet", "PodDisruptionBudget", "PriorityClass"}
    assert all(kinds.values())
    deployment = kinds["Deployment"]
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 1


# ---- moments that are not there -------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("10m", "at: found 10m, but {run} ends at 120 s; wanted start, end or a time from 0 s"),
        ("121s", "at: found 121s, but {run} ends at 120 s"),
        ("middle", 'at: found "middle", wanted start, end or a duration such as 30s'),
        ("-5s", "at: found"),
        (-5.0, "at: found"),
    ],
)
def test_a_moment_that_is_not_there_is_refused_with_those_that_are(
    run: Path, at: Any, message: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        run_moment(RunFolder(run), at)
    assert str(refused.value).startswith(message.format(run=run))


def test_the_end_of_an_interrupted_run_is_its_last_decision(run: Path) -> None:
    whole = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    count = sum(json.loads(line)["at_seconds"] < 60 for line in whole)
    # The process was killed while it wrote a line.
    (run / "journal.jsonl").write_bytes(b"".join(whole[:count]) + whole[count][:20])
    (run / "summary.json").unlink()
    moment = run_moment(RunFolder(run), "end")
    assert (moment.at, moment.seconds) == ("interruption", 30.0)
    assert str(moment) == f"{run} at its last decision (30 s; it was interrupted)"
    assert nodes_of_pods(objects_at(run, "end"))["default/urgent"]
    subject = RunSubject(RunFolder(run))
    subject.load()
    assert subject.timeline.end_seconds == 30.0
    with pytest.raises(BadInputError, match="was interrupted at 30 s"):
        run_moment(RunFolder(run), "60s")


def test_the_log_of_a_process_that_was_killed_may_end_within_a_line(run: Path) -> None:
    (run / "summary.json").unlink()
    states = run / "states" / "000000.jsonl"
    states.write_bytes(states.read_bytes()[:-10])
    (run / "states" / "000001.new").write_text('["head"')
    assert nodes_of_pods(objects_at(run, "60s"))["default/urgent"]
    subject = RunSubject(RunFolder(run))
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem


# ---- every command --------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_objects(tmp_path / "small.yaml", pod("small", cpu="1"))


def commands(run: Path, small: Path) -> dict[str, list[str | Path]]:
    return {
        "fit": ["fit", "-f", small, run],
        "fit --max": ["fit", "-f", small, "--max", run],
        "headroom": ["headroom", "-f", small, run],
        "whatif": ["whatif", run, "--cordon", "n2"],
        "whatif --until": ["whatif", run, "--cordon", "n2", "--until", "10s"],
        "whatif --drain-each": ["whatif", run, "--drain-each"],
        "whatif --remove-each": ["whatif", run, "--remove-each"],
        "why": ["why", "urgent", run],
    }


NAMES = list(commands(Path(), Path()))
MOMENTS = [
    ([], "at its end (120 s)", {"at": "end", "seconds": 120.0}),
    (["--at", "end"], "at its end (120 s)", {"at": "end", "seconds": 120.0}),
    (["--at", "1m"], "at 60 s", {"at": "time", "seconds": 60.0}),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("option", "text", "document"), MOMENTS)
def test_every_command_says_which_moment_it_speaks_of(
    name: str, option: list[str], text: str, document: Content, run: Path, small: Path
) -> None:
    words = [*commands(run, small)[name], *option]
    head = " ".join(command(*words).stdout.splitlines()[:3])
    assert f"{run.name} {text}" in head
    moment = json.loads(command(*words, "-o", "json").stdout)["moment"]
    assert moment == {"run": str(run), **document}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_refuses_a_moment_that_is_not_there(
    name: str, run: Path, small: Path
) -> None:
    [line] = refusal(*commands(run, small)[name], "--at", "1h")
    assert line.startswith(f"--at: found 1h, but {run} ends at 120 s; wanted start, end or a time")


def test_the_moment_decides_the_answer(run: Path, small: Path) -> None:
    def headroom(at: str) -> int:
        words = ["headroom", "-f", small, run, "--at", at, "--ignore-pending", "-o", "json"]
        document = json.loads(answer(*words))
        return document["shapes"][0]["max"]["count"]

    # At the end, two nodes have a pod of 4 cpu and, after the scale-down, one of 2 cpu.
    assert [headroom(at) for at in ("start", "0s", "end")] == [8, 0, 2]
    with bayplan.Cluster.from_run(run) as cluster:
        assert cluster.moment is not None
        assert cluster.moment.at == "end"
        assert set(cluster.nodes["node"]) == {"n2", "n3"}
        assert len(cluster.placements) == 2
    with bayplan.Cluster.from_run(run, at=30) as cluster:
        assert set(cluster.nodes["node"]) == {"n1", "n2"}
        assert "urgent" in " ".join(cluster.placements["pod"])
    with pytest.raises(BadInputError, match="found 10m"):
        bayplan.Cluster.from_run(run, at="10m")


def test_only_the_folder_of_a_run_has_moments(run: Path, small: Path, tmp_path: Path) -> None:
    [line] = refusal("fit", "-f", small, tmp_path / "in.yaml", "--at", "end")
    assert line == "--at: wanted the folder of a run as the cluster"
    [line] = refusal("fit", "-f", small, run, tmp_path / "in.yaml")
    assert line == f"{run}: found the folder of a run among files, wanted it alone"
    [line] = refusal("why", "urgent", "--run", run, "--at", "end")
    assert line.startswith("--at: wanted the folder of a run as FILE")


def test_a_run_needs_neither_its_inputs_nor_its_plugins(small: Path, tmp_path: Path) -> None:
    """Everything that a question about a moment needs is in the log of the folder."""
    code = tmp_path / "picky.py"
    code.write_text(PICKY)
    config = write_objects(tmp_path / "config.yaml", profile(filter=["Picky"]))
    path = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), WEB, pod("a"))
    run = tmp_path / "run"
    answer("simulate", path, "--config", config, "--plugin", code, "--out", run)
    for each in (code, config, path):
        each.unlink()
    shutil.rmtree(run / "inputs")
    assert answer("headroom", "-f", small, run).startswith("how many more pods fit into")
    assert "4 pods wait" in answer("whatif", run, "--cordon", "n1", "--at", "start")
    assert "default/a fits now: an attempt would place it on n2" in answer("why", "a", run)
    assert "Picky" in answer("why", "a", "--run", run)
    with bayplan.Cluster.from_run(run) as cluster:
        assert set(cluster.placements["node"]) == {"n1"}
    subject = RunSubject(RunFolder(run))
    subject.load()
    assert subject.answer().phase == "ready", subject.answer().problem
    assert len(subject.timeline.pods) == 5
