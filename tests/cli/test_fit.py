"""`bayplan fit`: answers, exit codes and refusals."""

import json
from pathlib import Path

import pytest
import yaml

from tests.adapters.manifests import node
from tests.cli.command_line import answer, bayplan, refusal, write_objects
from tests.whatif.clusters import deployment, pod_with_cpu


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    running = pod_with_cpu("db-0", "3", nodeName="n1")
    return write_objects(tmp_path / "cluster.yaml", node("n1"), node("n2"), running)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    return write_objects(tmp_path / "web.yaml", deployment("web", 4, "1500m"))


def test_pods_that_fit_end_with_exit_code_0(cluster: Path, tmp_path: Path) -> None:
    small = write_objects(tmp_path / "small.yaml", pod_with_cpu("small", "1"))
    lines = answer("fit", "-f", small, cluster).splitlines()
    assert lines[0] == f"1 pod fits into {cluster}"
    assert "n2        1   default/small" in lines


def test_pods_that_do_not_fit_end_with_exit_code_1(cluster: Path, web: Path) -> None:
    result = bayplan("fit", "-f", web, cluster)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"2 of 4 pods fit into {cluster}\n")
    assert "0/2 nodes are available: 2 Insufficient cpu." in result.stdout


def test_max_counts_copies_regardless_of_the_replicas(cluster: Path, web: Path) -> None:
    lines = bayplan("fit", "-f", web, cluster, "--max").stdout.splitlines()
    assert "2 pods of Deployment default/web fit" in lines
    limited = bayplan("fit", "-f", web, cluster, "--max", "--limit", "1").stdout.splitlines()
    assert "1 pod of Deployment default/web or more fit" in limited


def test_the_answer_is_a_versioned_document(cluster: Path, web: Path) -> None:
    result = bayplan("fit", "-f", web, cluster, "-o", "json", "--max")
    document = json.loads(result.stdout)
    assert (document["apiVersion"], document["kind"]) == ("bayplan.dev/v1alpha1", "Fit")
    assert document["fits"] is False
    assert [bool(pod.get("node")) for pod in document["pods"]] == [True, True, False, False]
    assert document["max"]["count"] == 2
    assert (
        yaml.safe_load(bayplan("fit", "-f", web, cluster, "--format", "yaml").stdout)["kind"]
        == "Fit"
    )


def test_the_cluster_may_come_from_standard_input_and_from_a_run(
    cluster: Path, web: Path, tmp_path: Path
) -> None:
    piped = bayplan("fit", "-f", web, "-", stdin=cluster.read_bytes())
    assert piped.stdout.startswith("2 of 4 pods fit into -\n")
    run = tmp_path / "run"
    answer("simulate", cluster, "--out", run)
    assert bayplan("fit", "-f", web, run).stdout.startswith(f"2 of 4 pods fit into {run}\n")


def test_invalid_input_ends_with_exit_code_2(cluster: Path, web: Path, tmp_path: Path) -> None:
    [missing] = refusal("fit", "-f", tmp_path / "nowhere.yaml", cluster)
    assert missing.endswith("cannot be read: No such file or directory")
    both = write_objects(tmp_path / "both.yaml", deployment("a", 1), deployment("b", 1))
    [several] = refusal("fit", "-f", both, cluster, "--max")
    assert "found 2: Deployment default/a, Deployment default/b" in several
    assert refusal("fit", "-f", "-", "-") == ["standard input: found - twice, wanted it once"]
    [both_sources] = refusal("fit", "-f", web, cluster, "--context", "staging")
    assert both_sources.startswith("found files of a cluster and --kubeconfig or --context")


@pytest.mark.parametrize("command", ["fit", "headroom"])
def test_a_cluster_that_cannot_be_read_ends_with_exit_code_3(
    command: str, web: Path, tmp_path: Path
) -> None:
    result = bayplan(command, "-f", web, "--kubeconfig", tmp_path / "nowhere")
    assert (result.exit_code, result.stdout) == (3, "")
    [line] = result.stderr.splitlines()
    assert "nowhere" in line


def test_pods_that_do_not_fit_come_with_causes_and_fixes(cluster: Path, web: Path) -> None:
    result = bayplan("fit", "-f", web, cluster)
    assert (
        "Insufficient cpu: 2 nodes, the nearest lacks 500m: n1 (NodeResourcesFit)" in result.stdout
    )
    document = json.loads(bayplan("fit", "-f", web, cluster, "-o", "json").stdout)
    [explanation] = document["explanations"]
    assert explanation["kind"] == "Explanation"
    assert explanation["fixes"]


def test_names_of_the_cluster_cannot_move_the_cursor(cluster: Path, tmp_path: Path) -> None:
    evil = deployment("web", 1, "64", nodeSelector={"disk": "\x1b[2J"})
    result = bayplan("fit", "-f", write_objects(tmp_path / "evil.yaml", evil), cluster)
    assert "\x1b" not in result.output
