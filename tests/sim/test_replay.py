"""The explanation of one node in one attempt, by a replay of the run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.config import config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.journal import AttemptRecord
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import Manifest, RunFolder, RunFolderError
from bayplan.sim.replay import NodeVerdict, node_verdict
from bayplan.sim.simulation import Simulation
from tests.adapters.manifests import Content, container, node, pod
from tests.sim.runs import create, delete, workload

LARGE = node("large", status={"allocatable": {"cpu": "64", "pods": "110"}})
TAINTED = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def stored_run(path: Path, feed: Workload, seed: int = 5, config: str | None = None) -> RunFolder:
    """A run of the feed, stored in a folder, with the plugin files of ``path``."""
    folder, files = RunFolder(path / "run", allows_plugins=True), sorted(path.glob("*.py"))
    manifest = Manifest(seed=seed, config=config, feature_gates="")
    chosen = load_config(config, "test") if config else config_from(DEFAULT_CONFIG)
    with folder.start(manifest, feed, files) as sink:
        run = Simulation(feed, chosen, default_registry(files), seed=seed)
        run.keep_journal(sink)
        folder.finish(run.run())
    return folder


def attempts(folder: RunFolder, name: str) -> list[AttemptRecord]:
    records = [record for record in folder.journal() if isinstance(record, AttemptRecord)]
    return [record for record in records if record.pod == f"default/{name}"]


def verdict(folder: RunFolder, name: str, node_name: str, number: int = -1) -> NodeVerdict:
    """The verdict of a pod's last attempt, or of attempt ``number``."""
    return node_verdict(folder, attempts(folder, name)[number], node_name)


def pod_requesting(name: str, cpu: str, **fields: Any) -> Content:
    return pod(name, containers=[container(cpu)], **fields)


# ---- explanations ---------------------------------------------------------------------------


def test_a_rejection_names_the_plugin_and_the_results_of_the_other_plugins(tmp_path: Path) -> None:
    folder = stored_run(
        tmp_path, workload(node("t", spec=TAINTED), node("n1"), pod_requesting("a", "64"))
    )
    result = verdict(folder, "a", "t")
    assert result.rejection is not None
    assert result.rejection.plugin == "TaintToleration"
    message = {name: status.message for name, status in result.alone if status is not None}
    assert message == {
        "TaintToleration": "node(s) had untolerated taint(s)",
        "NodeResourcesFit": "Insufficient cpu",
    }
    assert result.scores is None


def test_a_node_that_was_not_chosen_is_compared_with_the_chosen_one(tmp_path: Path) -> None:
    nodes = [node("full"), node("empty"), pod("r", nodeName="full")]
    result = verdict(stored_run(tmp_path, workload(*nodes, pod_requesting("a", "1"))), "a", "full")
    assert result.rejection is None
    assert result.scores is not None
    own, chosen = result.scores.lines
    assert (own.node, chosen.node) == ("full", "empty")
    assert own.total < chosen.total
    assert (result.scores.better_count, result.scores.equal_count) == (1, 0)
    assert own.total == sum(plugin.weighted for plugin in own.plugins)


def test_the_chosen_node_is_evaluated_without_the_pod(tmp_path: Path) -> None:
    """At the end of the run the pod is on the node, and there is no room for a second one."""
    folder = stored_run(tmp_path, workload(node("n1"), node("n2"), pod_requesting("a", "3")))
    [attempt] = attempts(folder, "a")
    result = node_verdict(folder, attempt, attempt.node)
    assert [status for _, status in result.alone] == [None] * len(result.alone)
    assert ("NodeResourcesFit", None) in result.alone
    assert result.scores is not None
    assert [line.node for line in result.scores.lines] == [attempt.node]
    assert (result.scores.better_count, result.scores.equal_count) == (0, 1)


def test_a_node_that_did_not_exist_yet_was_not_evaluated(tmp_path: Path) -> None:
    feed = workload(node("n1"), pod_requesting("a", "32"), steps=[create(5, LARGE)])
    folder = stored_run(tmp_path, feed)
    assert verdict(folder, "a", "large", 0).skip_reason == "the node did not exist then"
    assert verdict(folder, "a", "large", 1).skip_reason == ""


def test_each_attempt_sees_the_cluster_of_its_time(tmp_path: Path) -> None:
    feed = workload(
        LARGE, pod_requesting("r", "40"), pod_requesting("a", "32"), steps=[delete(5, pod("r"))]
    )
    folder = stored_run(tmp_path, feed)
    assert [record.result for record in attempts(folder, "a")] == ["unschedulable", "scheduled"]
    assert verdict(folder, "a", "large", 0).rejection is not None
    assert verdict(folder, "a", "large", 1).rejection is None


def test_a_node_excluded_by_pre_filter_was_not_evaluated(tmp_path: Path) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    feed = workload(
        node("n1"), node("n2"), pod_requesting("a", "1", affinity={"nodeAffinity": required})
    )
    assert verdict(stored_run(tmp_path, feed), "a", "n2").skip_reason == "left out by NodeAffinity"


def test_with_a_feasible_nominated_node_other_nodes_were_not_evaluated(tmp_path: Path) -> None:
    nominated = pod_requesting("a", "1", status={"nominatedNodeName": "n2"})
    folder = stored_run(tmp_path, workload(node("n1"), node("n2"), nominated))
    result = verdict(folder, "a", "n1")
    assert result.skip_reason == "the pod was nominated to n2, which took it"


SAMPLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 10
"""


def test_a_node_outside_of_the_sample_was_not_evaluated(tmp_path: Path) -> None:
    feed = workload(*(node(f"n{i}") for i in range(150)), pod_requesting("a", "1"))
    folder = stored_run(tmp_path, feed, config=SAMPLED)
    results = [verdict(folder, "a", f"n{i}").skip_reason for i in range(0, 150, 15)]
    assert "enough nodes were found before (percentageOfNodesToScore)" in results


BROKEN = """
from bayplan import ScalarFilterPlugin

class Broken(ScalarFilterPlugin):
    name = "Broken"

    def filter_node(self, state, pod, node):
        raise RuntimeError("boom")
"""
WITH_BROKEN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: Broken}]}}
"""


def test_a_failing_plugin_fails_again_in_a_replay(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    feed = workload(node("n1"), node("n2"), pod("a"))
    result = verdict(stored_run(tmp_path, feed, config=WITH_BROKEN), "a", "n1")
    assert (result.record.result, result.rejection) == ("error", None)
    message = dict(result.alone)["Broken"]
    assert message is not None
    assert "RuntimeError: boom" in message.message


# ---- the same run --------------------------------------------------------------------------


def test_a_replay_makes_the_decisions_of_the_journal(tmp_path: Path) -> None:
    pods = [pod_requesting(f"p{i}", "1") for i in range(12)]
    folder = stored_run(tmp_path, workload(node("n1"), node("n2"), *pods))
    last = attempts(folder, "p11")[-1]
    # The replay compares every record with the journal.
    assert node_verdict(folder, last, "n1").record == last


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    feed = workload(node("n1"), node("n2"), *(pod_requesting(f"p{i}", "1m") for i in range(8)))
    folder = stored_run(tmp_path, feed)
    tampered = list(_tampered(folder.path / "journal.jsonl"))
    (folder.path / "journal.jsonl").write_text("".join(tampered))
    with pytest.raises(RunFolderError, match="differs from the journal in line 1;"):
        verdict(folder, "p7", "n1")


def _tampered(journal: Path) -> Iterator[str]:
    """The journal with the first pod on another node."""
    first, *other_lines = journal.read_text().splitlines(keepends=True)
    record = json.loads(first)
    yield json.dumps({**record, "node": "n3"}) + "\n"
    yield from other_lines


def test_an_unknown_attempt_is_not_found(tmp_path: Path) -> None:
    folder = stored_run(tmp_path, workload(node("n1"), pod("a")))
    [attempt] = attempts(folder, "a")
    ghost = AttemptRecord(
        at_seconds=0.0, pod=attempt.pod, uid=attempt.uid, profile="p", attempt=9, result="error"
    )
    with pytest.raises(RunFolderError, match="did not reach attempt 9 at default/a"):
        node_verdict(folder, ghost, "n1")


def test_an_interrupted_run_can_be_replayed(tmp_path: Path) -> None:
    feed = workload(node("n1"), pod("a"), pod("b"))
    folder = stored_run(tmp_path, feed)
    lines = (folder.path / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder.path / "journal.jsonl").write_text("".join(lines[:3]))
    (folder.path / "summary.json").unlink()
    assert verdict(folder, "b", "n1").record.node == "n1"
