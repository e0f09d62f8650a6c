"""What one attempt of a run says about one node."""

from pathlib import Path

import pytest

from bayplan.history.node_verdict import NodeVerdict
from bayplan.journal import AttemptRecord
from bayplan.model.past import attempt_of_run
from bayplan.sim.output.run_folder import RunFolder, RunFolderError
from tests.history.stored_runs import attempts_of, stored_run
from tests.kit.manifests import node, pod
from tests.sim.runs import create, delete, workload

LARGE = node("large", status={"allocatable": {"cpu": "64", "pods": "110"}})
TAINTED = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def attempts(folder: RunFolder, name: str) -> list[AttemptRecord]:
    return [record for record in attempts_of(folder) if record.pod == f"default/{name}"]


def verdict(folder: RunFolder, name: str, node_name: str, number: int = -1) -> NodeVerdict:
    """The verdict of a pod's last attempt, or of attempt ``number``."""
    repeated = attempt_of_run(folder, attempts(folder, name)[number], node_name)
    assert repeated.is_exact
    assert repeated.verdict is not None
    return repeated.verdict


# ---- explanations ---------------------------------------------------------------------------


def test_a_rejection_names_the_plugin_and_the_results_of_the_other_plugins(tmp_path: Path) -> None:
    folder = stored_run(tmp_path, workload(node("t", spec=TAINTED), node("n1"), pod("a", cpu="64")))
    result = verdict(folder, "a", "t")
    assert result.rejection is not None
    assert result.rejection.plugin == "TaintToleration"
    message = {each.plugin: each.message for each in result.alone if each.message}
    assert message == {
        "TaintToleration": "node(s) had untolerated taint(s)",
        "NodeResourcesFit": "Insufficient cpu",
    }
    assert not result.scores


def test_a_node_that_was_not_chosen_is_compared_with_the_chosen_one(tmp_path: Path) -> None:
    nodes = [node("full"), node("empty"), pod("r", nodeName="full")]
    result = verdict(stored_run(tmp_path, workload(*nodes, pod("a", cpu="1"))), "a", "full")
    assert result.rejection is None
    own, chosen = result.scores
    assert (own.node, chosen.node) == ("full", "empty")
    assert own.total < chosen.total
    assert (result.better, result.equal) == (1, 0)
    assert own.total == sum(plugin.weighted for plugin in own.plugins)


def test_the_chosen_node_is_evaluated_without_the_pod(tmp_path: Path) -> None:
    """At the end of the run the pod is on the node, and there is no room for a second one."""
    folder = stored_run(tmp_path, workload(node("n1"), node("n2"), pod("a", cpu="3")))
    [attempt] = attempts(folder, "a")
    result = verdict(folder, "a", attempt.node)
    assert not any(each.code for each in result.alone)
    assert "NodeResourcesFit" in [each.plugin for each in result.alone]
    assert [line.node for line in result.scores] == [attempt.node]
    assert (result.better, result.equal) == (0, 1)


def test_a_node_that_did_not_exist_yet_was_not_evaluated(tmp_path: Path) -> None:
    feed = workload(node("n1"), pod("a", cpu="32"), steps=[create(5, LARGE)])
    folder = stored_run(tmp_path, feed)
    assert verdict(folder, "a", "large", 0).skip_reason == "the node did not exist then"
    assert verdict(folder, "a", "large", 1).skip_reason == ""


def test_each_attempt_sees_the_cluster_of_its_time(tmp_path: Path) -> None:
    feed = workload(LARGE, pod("r", cpu="40"), pod("a", cpu="32"), steps=[delete(5, pod("r"))])
    folder = stored_run(tmp_path, feed)
    assert [record.result for record in attempts(folder, "a")] == ["unschedulable", "scheduled"]
    assert verdict(folder, "a", "large", 0).rejection is not None
    assert verdict(folder, "a", "large", 1).rejection is None


def test_a_node_excluded_by_pre_filter_was_not_evaluated(tmp_path: Path) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    feed = workload(node("n1"), node("n2"), pod("a", cpu="1", affinity={"nodeAffinity": required}))
    assert verdict(stored_run(tmp_path, feed), "a", "n2").skip_reason == "left out by NodeAffinity"


def test_with_a_feasible_nominated_node_other_nodes_were_not_evaluated(tmp_path: Path) -> None:
    nominated = pod("a", cpu="1", status={"nominatedNodeName": "n2"})
    folder = stored_run(tmp_path, workload(node("n1"), node("n2"), nominated))
    result = verdict(folder, "a", "n1")
    assert result.skip_reason == "the pod was nominated to n2, which took it"


SAMPLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 10
"""


def test_a_node_outside_of_the_sample_was_not_evaluated(tmp_path: Path) -> None:
    feed = workload(*(node(f"n{i}") for i in range(150)), pod("a", cpu="1"))
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


def test_a_failing_plugin_fails_again(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    feed = workload(node("n1"), node("n2"), pod("a"))
    result = verdict(stored_run(tmp_path, feed, config=WITH_BROKEN), "a", "n1")
    assert result.rejection is None
    assert result.ruling == "no plugin had rejected it when the attempt failed"
    message = next(each for each in result.alone if each.plugin == "Broken")
    assert message is not None
    assert "RuntimeError: boom" in message.message


# ---- what is not in the log -----------------------------------------------------------------


def test_an_unknown_attempt_is_not_found(tmp_path: Path) -> None:
    folder = stored_run(tmp_path, workload(node("n1"), pod("a")))
    [attempt] = attempts(folder, "a")
    ghost = AttemptRecord(
        at_seconds=0.0, pod=attempt.pod, uid=attempt.uid, profile="p", attempt=9, result="error"
    )
    with pytest.raises(RunFolderError, match="not have the state before attempt 9 at default/a"):
        attempt_of_run(folder, ghost, "n1")


def test_an_attempt_of_an_interrupted_run_is_repeated(tmp_path: Path) -> None:
    feed = workload(node("n1"), pod("a"), pod("b"))
    folder = stored_run(tmp_path, feed)
    lines = (folder.path / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder.path / "journal.jsonl").write_text("".join(lines[:3]))
    (folder.path / "summary.json").unlink()
    assert verdict(folder, "b", "n1").ruling == "chosen"
