"""`bayplan why` about the current cluster: answers, formats, exit codes, one-line errors."""

import json
from pathlib import Path

import pytest
import yaml

from bayplan.cli.streams import EXIT_UNREADABLE
from tests.cli.command_line import answer, bayplan, profile, refusal, write_objects
from tests.kit.manifests import container, node, pod
from tests.sim.manifests import controller


@pytest.fixture
def files(tmp_path: Path) -> Path:
    fits = pod("fits", cpu="1")
    big = pod("big", cpu="64")
    theirs = pod("theirs", schedulerName="theirs")
    gang = pod("other", namespace="shop", cpu="64")
    return write_objects(tmp_path / "in.yaml", node("n1"), fits, big, theirs, gang)


def test_the_first_line_is_the_sentence_of_kube_scheduler(files: Path) -> None:
    result = bayplan("why", "default/big", files)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
    assert "lower the request for cpu" in result.stdout


def test_a_pod_that_fits_ends_with_0(files: Path) -> None:
    assert answer("why", "fits", files).startswith("default/fits fits now")


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_machine_readable_answer_has_a_version(files: Path, output: str) -> None:
    result = bayplan("why", "default/big", files, "-o", output)
    value = json.loads(result.stdout) if output == "json" else yaml.safe_load(result.stdout)
    assert (value["apiVersion"], value["kind"]) == ("bayplan.dev/v1alpha1", "Explanation")
    assert value["result"] == "unschedulable"
    assert value["message"].startswith("0/1 nodes are available")
    assert value["fixes"][0]["changes"][0]["verb"] == "replace"


def test_a_wide_answer_has_nodes_and_manifests(files: Path) -> None:
    result = bayplan("why", "default/big", files, "-o", "wide")
    assert "nodes: n1" in result.stdout
    assert "| kind: Pod" in result.stdout


def test_a_pod_of_another_scheduler_is_one_line(files: Path) -> None:
    result = bayplan("why", "default/theirs", files)
    assert result.exit_code == 1
    assert result.stdout == "default/theirs belongs to another scheduler, theirs\n"


def test_an_unknown_pod_is_one_line_with_near_names(files: Path) -> None:
    result = bayplan("why", "default/bigg", files)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no pod default/bigg; known names include: default/big" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_node_is_named_as_one(files: Path) -> None:
    result = bayplan("why", "node/n1", files)
    assert result.exit_code == 2
    assert "n1 is a node: `bayplan whatif --drain NODE` says what" in result.stderr


def test_a_misspelt_kind_is_corrected(files: Path) -> None:
    for options in ((), ("-n", "shop")):
        result = bayplan("why", "deployent/web", files, *options)
        assert result.exit_code == 2
        assert result.stderr.endswith('did you mean "deployment/web"?\n')


def test_the_namespace_is_an_option(files: Path) -> None:
    assert bayplan("why", "other", files, "-n", "shop").stdout.startswith("0/1 nodes")
    assert "wanted one namespace" in bayplan("why", "default/big", files, "-n", "shop").stderr


def test_a_workload_of_an_unknown_kind_is_found_in_its_namespace(
    files: Path, tmp_path: Path
) -> None:
    rollout = tmp_path / "rollout.yaml"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
    content = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "ro", "namespace": "ml"},
        "spec": {"template": template},
    }
    rollout.write_text(json.dumps(content))
    answer = bayplan("why", "rollout/ro", files, rollout, "-n", "ml")
    assert answer.stdout.startswith("Rollout ml/ro is of a kind that Bayplan does not know")
    elsewhere = bayplan("why", "rollout/ro", files, rollout)
    assert "rollout/ro is in the namespace ml: wanted --namespace" in elsewhere.stderr


def test_the_configuration_names_the_scheduler(files: Path, tmp_path: Path) -> None:
    config = write_objects(
        tmp_path / "config.yaml", {**profile(), "profiles": [{"schedulerName": "theirs"}]}
    )
    assert answer("why", "theirs", files, "--config", config).startswith("default/theirs fits")


def test_a_workload_is_explained_by_a_pod_that_waits(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container("64")]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    file = write_objects(tmp_path / "in.yaml", node("n1"), deployment)
    result = bayplan("why", "deployment/web", file)
    assert "kubectl patch deployment.apps/web -n default" in result.stdout
    assert "no pod belongs to Deployment default/db" in bayplan("why", "deploy/db", file).stderr


@pytest.mark.parametrize("context", ["", "nowhere"])
def test_a_cluster_that_cannot_be_read_is_one_line(tmp_path: Path, context: str) -> None:
    arguments = ["--kubeconfig", tmp_path / "nowhere"]
    if context:
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        }
        arguments = [
            "--kubeconfig",
            write_objects(tmp_path / "k", kubeconfig),
            "--context",
            context,
        ]
    result = bayplan("why", "default/big", *arguments)
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    assert len(result.stderr.splitlines()) == 1
    assert context in result.stderr


def test_files_and_a_kubeconfig_are_two_clusters(files: Path) -> None:
    result = bayplan("why", "default/big", files, "--context", "x")
    assert (result.exit_code, "wanted one cluster" in result.stderr) == (2, True)


@pytest.mark.parametrize(("name", "code"), [("fits", 0), ("big", 1)])
def test_an_answer_from_a_run_has_an_exit_code_on_request(
    files: Path, tmp_path: Path, name: str, code: int
) -> None:
    bayplan("simulate", files, "--out", tmp_path / "run")
    assert bayplan("why", name, "--run", tmp_path / "run").exit_code == 0
    assert bayplan("why", name, "--run", tmp_path / "run", "--exit-code").exit_code == code


@pytest.mark.parametrize(
    ("words", "code", "first_line"),
    [
        (("default/q",), 1, "default/q: the pod's node ghost does not exist"),
        (("job/night",), 4, "Job default/night is suspended (spec.suspend): it has no pods"),
        (
            ("job", "night"),
            4,
            "Job default/night is suspended (spec.suspend): it has no pods",
        ),
        (("night",), 4, "Job default/night is suspended (spec.suspend): it has no pods"),
        (("lws/vllm",), 4, "LeaderWorkerSet default/vllm is of a kind that Bayplan does not know"),
        (("default/vllm",), 4, "LeaderWorkerSet default/vllm is of a kind that Bayplan does not"),
    ],
)
def test_what_cannot_run_or_has_no_pods_has_an_exit_code_of_its_own(
    tmp_path: Path, words: tuple[str, ...], code: int, first_line: str
) -> None:
    set_of_leaders = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm"},
        "spec": {"workerTemplate": {"spec": {"containers": [container("1")]}}},
    }
    objects = [node("n1"), pod("q", nodeName="ghost"), set_of_leaders]
    objects.append(controller("Job", "night", suspend=True))
    result = bayplan("why", *words, write_objects(tmp_path / "cluster.yaml", *objects))
    assert result.exit_code == code, result.stderr
    assert result.stdout.startswith(first_line)


def test_all_pods_that_wait_are_grouped(files: Path) -> None:
    result = bayplan("why", "--all-pending", files)
    assert result.exit_code == 1
    assert "no node has" in result.stdout
    names = bayplan("why", "--all-pending", files, "-o", "name")
    assert "Pod default/big" in names.stdout.splitlines()
    none = bayplan("why", "--all-pending", files, "-l", "app=nothing")
    head = f"no pod with the labels app=nothing of {files} waits"
    assert (none.exit_code, none.stdout.splitlines()[0]) == (0, head)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", "-l", "x=y"), "--selector: wanted --all-pending with it"),
        (("--all-pending", "-A", "-n", "x"), "found -A and -n, wanted one of them"),
        (("--all-pending", "--run", "x"), "--run: found --all-pending, which is about a cluster"),
        (("--all-pending", "-l", "a b"), '-l: found "a b", wanted labels'),
    ],
)
def test_wrong_options_of_all_pods_are_refused(arguments: tuple[str, ...], problem: str) -> None:
    [line] = refusal("why", *arguments)
    assert line.startswith(problem)


def test_without_a_name_the_answer_is_what_can_be_asked(files: Path) -> None:
    result = bayplan("why")
    assert result.exit_code == 2
    first, *questions, last = result.stderr.splitlines()
    assert first == "bayplan why: wanted a name or --all-pending, for one of these questions"
    assert [line.strip().split("   ")[0] for line in questions] == [
        "bayplan why --all-pending",
        "bayplan why shop/web-0",
        "bayplan why deployment/web -n shop",
        "bayplan why podgroup shop/training",
        "bayplan why shop/web-0 cluster.yaml",
        "bayplan why shop/web-0 --run runs/a",
    ]
    assert last == "All options: bayplan why --help"
    [line] = refusal("why", files)
    assert line == f"{files} is a file: wanted the name of a pod before it, or --all-pending"


def test_a_namespace_that_does_not_exist_is_refused_with_the_one_that_does(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "c.yaml", node("n1"), pod("web", namespace="shop"))
    [line] = refusal("why", "--all-pending", "-n", "shpo", cluster)
    assert line == 'there is no namespace shpo; did you mean "shop"?'


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_of_files_that_has_ended_is_no_unknown_name(tmp_path: Path, phase: str) -> None:
    ended = pod("done", nodeName="n1", status={"phase": phase})
    path = write_objects(tmp_path / "in.yaml", node("n1"), ended)
    assert answer("why", "done", path).startswith("default/done has ended")


def test_a_pod_that_is_being_deleted_is_compared_with_all_nodes(tmp_path: Path) -> None:
    leaving = pod("leaving", nodeName="n1", deletionTimestamp="2026-01-01T00:00:00Z")
    leaving["metadata"]["deletionGracePeriodSeconds"] = 30
    path = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), leaving)
    text = answer("why", "leaving", path)
    assert "2 nodes are feasible" in text
    assert "default/leaving is being deleted, and holds its room until it is gone" in text


@pytest.mark.parametrize("kind", ["deployment.apps", "deployments.v1.apps", "Deployment"])
def test_a_workload_may_be_named_as_kubectl_prints_it(tmp_path: Path, kind: str) -> None:
    web = controller("Deployment", selector={"matchLabels": {"app": "web"}})
    web["metadata"]["namespace"] = "shop"
    path = write_objects(tmp_path / "in.yaml", node("n1"), web)
    assert answer("why", f"{kind}/web", "-n", "shop", path).startswith("Deployment shop/web: ")


def test_after_the_error_of_a_plugin_no_change_of_the_cluster_is_tried(tmp_path: Path) -> None:
    config = write_objects(tmp_path / "config.yaml", profile(multiPoint=["Faulty"]))
    plugin = tmp_path / "faulty.py"
    plugin.write_text(
        "from bayplan import ScalarFilterPlugin\n"
        "class Faulty(ScalarFilterPlugin):\n"
        "    name = 'Faulty'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        raise ValueError('no such label')\n"
    )
    path = write_objects(tmp_path / "in.yaml", node("n1"), pod("p"))
    result = bayplan("why", "p", path, "--config", config, "--plugin", plugin)
    assert "ValueError: no such label" in result.stdout
    assert "tried" not in result.stdout
