"""`bayplan fit`: answers, exit codes and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_line import answer, bayplan, refusal, write_objects
from tests.kit.manifests import Content, node, pod, priority_class
from tests.sim.manifests import controller, template
from tests.whatif.clusters import deployment

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def test_pods_that_fit_end_with_exit_code_0(cluster: Path, tmp_path: Path) -> None:
    small = write_objects(tmp_path / "small.yaml", pod("small", cpu="1"))
    lines = answer("fit", "-f", small, cluster).splitlines()
    assert lines[0] == f"1 pod fits into {cluster}"
    assert "n2        1   default/small" in lines


def test_pods_that_do_not_fit_end_with_exit_code_1(cluster: Path, web: Path) -> None:
    result = bayplan("fit", "-f", web, cluster)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"2 of 4 pods fit into {cluster}\n")
    assert "   2   2 lack cpu" in result.stdout


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
    assert yaml.safe_load(bayplan("fit", "-f", web, cluster, "-o", "yaml").stdout)["kind"] == "Fit"


def test_the_cluster_may_come_from_standard_input_and_from_a_run(
    cluster: Path, web: Path, tmp_path: Path
) -> None:
    piped = bayplan("fit", "-f", web, "-", stdin=cluster.read_bytes())
    assert piped.stdout.startswith("2 of 4 pods fit into -\n")
    run = tmp_path / "run"
    answer("simulate", cluster, "--out", run)
    assert bayplan("fit", "-f", web, run).stdout.startswith(
        f"2 of 4 pods fit into {run} at its end (0 s)\n"
    )


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


# ---- what cannot be judged -----------------------------------------------------------------

TEMPLATE = deployment("web", 1)["spec"]["template"]


def unknown(api_version: str, kind: str, **spec: Any) -> Content:
    meta = {"name": "x", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


SUSPENDED = controller("Job", "night", suspend=True)
QUEUED = {**SUSPENDED, "metadata": {**SUSPENDED["metadata"], "labels": {QUEUE_LABEL: "team-a"}}}
NO_NODE = controller("DaemonSet", "logs")
NO_NODE["spec"]["template"] = template(nodeSelector={"disk": "ssd"})


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        (SUSPENDED, "Job default/night is suspended (spec.suspend): it has no pods until it is"),
        (QUEUED, "it has no pods until Kueue admits it from queue team-a"),
        (deployment("web", 0), "Deployment default/web has spec.replicas 0, so it has no pods"),
        (controller("StatefulSet", "db", replicas=0), "has spec.replicas 0, so it has no pods"),
        (controller("ReplicaSet", "rs", replicas=0), "has spec.replicas 0, so it has no pods"),
        (controller("Job", "j", parallelism=0), "has spec.parallelism 0, so it has no pods"),
        (controller("Job", "j", completions=0), "has spec.completions 0, so it has no pods"),
        (NO_NODE, "DaemonSet default/logs is meant for no node of the cluster"),
        (pod("a", cpu="1", nodeName="n1"), "Pod default/a names its node (spec.nodeName): n1"),
        (
            unknown("batch/v1", "CronJob", schedule="0 0 * * *", jobTemplate={"spec": TEMPLATE}),
            "CronJob default/x creates Jobs by the clock",
        ),
        (
            unknown(
                "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=TEMPLATE
            ),
            "is of a kind that Bayplan does not know (leaderworkerset.x-k8s.io/v1 LeaderWorkerSet)",
        ),
        (
            unknown("batch.volcano.sh/v1alpha1", "Job", tasks=[{"template": TEMPLATE}]),
            "does not know (batch.volcano.sh/v1alpha1 Job): give the pods that its controller",
        ),
        (
            unknown("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[{"template": TEMPLATE}]),
            "does not know (jobset.x-k8s.io/v1alpha2 JobSet)",
        ),
        (
            unknown("argoproj.io/v1alpha1", "Rollout", replicas=3, template=TEMPLATE),
            "does not know (argoproj.io/v1alpha1 Rollout)",
        ),
        (
            unknown("acme.io/v1", "Widget"),
            "Widget default/x is of a kind that Bayplan does not read",
        ),
    ],
)
def test_a_workload_without_pods_is_not_judged(
    cluster: Path, tmp_path: Path, workload: Content, why: str
) -> None:
    path = write_objects(tmp_path / "workload.yaml", workload)
    result = bayplan("fit", "-f", path, cluster)
    assert result.exit_code == 4
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == f"nothing was judged: the workload has no pod to place into {cluster}"
    assert why in " ".join(lines)
    document = json.loads(bayplan("fit", "-f", path, cluster, "-o", "json").stdout)
    assert (document["fits"], len(document["unjudged"])) == (False, 1)


def test_a_workload_without_controllers_is_not_judged(cluster: Path, tmp_path: Path) -> None:
    path = write_objects(tmp_path / "workload.yaml", priority_class("high", 9))
    result = bayplan("fit", "-f", path, cluster)
    assert result.exit_code == 4
    assert "it has no object that creates pods" in result.stdout


def test_an_object_that_hides_pods_beside_pods_that_fit_is_not_passed_over(
    cluster: Path, tmp_path: Path
) -> None:
    rollout = unknown("argoproj.io/v1alpha1", "Rollout", template=TEMPLATE)
    path = write_objects(tmp_path / "both.yaml", pod("a", cpu="1"), rollout)
    result = bayplan("fit", "-f", path, cluster)
    assert result.exit_code == 4
    assert result.stdout.startswith(f"1 pod fits into {cluster}\n\nnot judged")
    # A suspended Job beside them needs no room now.
    path = write_objects(tmp_path / "both.yaml", pod("a", cpu="1"), SUSPENDED)
    result = bayplan("fit", "-f", path, cluster)
    assert (result.exit_code, "Job default/night" in result.stdout) == (0, True)


def test_a_count_needs_no_replicas(cluster: Path, tmp_path: Path) -> None:
    for workload in (deployment("web", 0, "2"), controller("Job", "night", suspend=True)):
        path = write_objects(tmp_path / "workload.yaml", workload)
        result = bayplan("fit", "-f", path, cluster, "--max", "--limit", "1")
        assert (result.exit_code, "1 pod of" in result.stdout) == (0, True), result.stdout
        assert bayplan("headroom", "-f", path, cluster, "--limit", "1").exit_code == 0


def test_objects_that_the_cluster_has_already_stay_as_they_are(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), priority_class("high", 9))
    workload = [node("n1"), priority_class("high", 9), pod("a", cpu="1")]
    path = write_objects(tmp_path / "workload.yaml", *workload)
    assert "Node n1 is in the cluster already, and stays as it is there" in answer(
        "fit", "-f", path, cluster
    )


def test_pods_that_wait_may_be_left_out(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"), pod("waits", cpu="3"))
    path = write_objects(tmp_path / "workload.yaml", pod("a", cpu="2"))
    result = bayplan("fit", "-f", path, cluster)
    assert result.exit_code == 1
    assert "1 pod of the cluster without a node: placed first, as its scheduler would" in (
        result.stdout
    )
    assert bayplan("fit", "-f", path, cluster, "--ignore-pending").exit_code == 0


def node_with(name: str, **more: str) -> Content:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **more}
    return node(name, status={"allocatable": allocatable})


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    return write_objects(
        tmp_path / "gpus.yaml", node("n1"), node_with("n2", **{"nvidia.com/gpu": "4"}), node("n3")
    )


def test_a_workload_may_be_described_by_its_requests(gpus: Path) -> None:
    fits = bayplan("fit", "--cpu", "1", "--memory", "1Gi", "--gpu", "2", "--replicas", "2", gpus)
    lines = fits.stdout.splitlines()
    assert (fits.exit_code, lines[0]) == (0, f"2 pods fit into {gpus}")
    assert "each pod requests cpu 1, memory 1Gi, nvidia.com/gpu 2" in lines
    assert "a GPU is nvidia.com/gpu here, which 1 node offers" in lines
    more = bayplan("fit", "--resource", "nvidia.com/gpu=3", "--replicas", "2", gpus)
    assert (more.exit_code, more.stdout.splitlines()[0]) == (1, f"1 of 2 pods fit into {gpus}")
    counted = answer("headroom", "--gpu", "1", gpus, "-o", "json")
    assert json.loads(counted)["shapes"][0]["max"]["count"] == 4


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "found no workload, wanted files (-f), or requests such as --cpu 4"),
        (("--cpu", "1", "-f", "x"), "found files and requests such as cpu, wanted one of them"),
        (("--cpu", "x"), '--cpu: found "x", wanted a quantity such as 500m, 2 or 16Gi'),
        (("--memory", ""), "--memory: found nothing, wanted a quantity such as 500m, 2 or 16Gi"),
        (
            ("--resource", "a.com/b=-1"),
            '--resource a.com/b: found "-1", wanted a quantity such as 500m, 2 or 16Gi',
        ),
        (
            ("--resource", "gpu=1"),
            (
                '--resource: found "gpu", wanted a resource such as nvidia.com/gpu; '
                'did you mean "nvidia.com/gpu"?'
            ),
        ),
        (
            ("--resource", "nvidia.com/gpu"),
            '--resource: found "nvidia.com/gpu", wanted NAME=AMOUNT, as nvidia.com/gpu=1',
        ),
        (
            ("--gpu", "1", "--resource", "nvidia.com/gpu=1"),
            "found --gpu and --resource nvidia.com/gpu, wanted one of them",
        ),
    ],
)
def test_wrong_requests_are_refused(arguments: tuple[str, ...], line: str, gpus: Path) -> None:
    assert refusal("fit", *arguments, gpus) == [line]


def test_no_gpu_and_several_kinds_of_gpus_are_errors(cluster: Path, tmp_path: Path) -> None:
    assert refusal("fit", "--gpu", "1", cluster) == ["--gpu: no node offers a GPU"]
    parts = write_objects(tmp_path / "mig.yaml", node_with("n1", **{"nvidia.com/mig-1g.5gb": "7"}))
    assert refusal("fit", "--gpu", "1", parts) == [
        '--gpu: no node offers a GPU; nodes offer "nvidia.com/mig-1g.5gb": name one with --resource'
    ]
    kinds = {"nvidia.com/gpu": "1", "amd.com/gpu": "1"}
    several = write_objects(tmp_path / "several.yaml", node_with("n1", **kinds))
    assert refusal("fit", "--gpu", "1", several) == [
        (
            "--gpu: nodes offer 2 kinds of GPUs, wanted one of them, as --resource amd.com/gpu=1: "
            '"amd.com/gpu" or "nvidia.com/gpu"'
        )
    ]


def test_objects_without_a_namespace_are_in_that_of_the_option(
    cluster: Path, tmp_path: Path
) -> None:
    workload = write_objects(tmp_path / "w.yaml", {**pod("a", cpu="1"), "metadata": {"name": "a"}})
    assert (
        json.loads(answer("fit", "-f", workload, "-n", "shop", cluster, "-o", "json"))["pods"][0][
            "pod"
        ]
        == "shop/a"
    )
    lines = answer("fit", "--cpu", "1", "-n", "defualt", cluster).splitlines()
    assert 'there is no namespace defualt; did you mean "default"?' in lines
