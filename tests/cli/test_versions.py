"""The version of kube-scheduler that a command answers as, and what says it."""

from pathlib import Path

import pytest

from tests.cli.command_line import answer, bayplan, configuration, refusal, write_objects
from tests.kit.manifests import Content, node, pod

OLD_TEXT = "no new claims to deallocate"


def node_of(name: str, release: str) -> Content:
    content = node(name)
    content["status"]["nodeInfo"] = {"kubeletVersion": release}
    return content


def written(folder: Path, *objects: Content) -> Path:
    return write_objects(folder / "cluster.yaml", *objects, pod("big", cpu="999"))


def why(*arguments: str | Path) -> str:
    """Of a pod that fits nowhere: the exit code is 1."""
    result = bayplan("why", "big", *arguments)
    assert result.exit_code == 1, result.stderr
    return result.stdout


def test_the_newest_kubelet_says_the_version(tmp_path: Path) -> None:
    cluster = written(tmp_path, node_of("n1", "v1.34.2"), node_of("n2", "v1.36.3+k3s1"))
    shown = why(cluster)
    assert OLD_TEXT in shown
    assert "answers are those of kube-scheduler 1.36 (the newest kubelet is v1.36.3+k3s1)" in shown


def test_a_version_that_is_named_wins(tmp_path: Path) -> None:
    cluster = written(tmp_path, node_of("n1", "v1.36.3"))
    assert OLD_TEXT not in why(cluster, "--kubernetes", "1.37")
    assert "kube-scheduler 1.34\n" in why(cluster, "--kubernetes", "1.34.4")


def test_without_kubelets_the_newest_version_answers(tmp_path: Path) -> None:
    shown = why(written(tmp_path, node("n1")))
    assert OLD_TEXT not in shown
    assert "answers are those of" not in shown


def test_a_kubelet_that_is_no_release_is_named_beside_the_newest_version(tmp_path: Path) -> None:
    shown = why(written(tmp_path, node("n1"), node_of("n2", "kwok-v0.6")))
    assert OLD_TEXT not in shown
    reason = 'the newest kubelet is "kwok-v0.6", which is no release of Kubernetes'
    assert f"answers are those of kube-scheduler 1.37 ({reason})" in shown


def test_a_capture_says_the_version(tmp_path: Path) -> None:
    spec = {"kubernetesVersion": "v1.35.4"}
    scenario = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Scenario", "spec": spec}
    cluster = written(tmp_path, scenario, node_of("n1", "v1.34.1"))
    assert "kube-scheduler 1.35 (the capture says v1.35.4)" in why(cluster)


def test_a_capture_of_a_server_without_a_version_is_read(tmp_path: Path) -> None:
    release = "v0.0.0-master+$Format:%H$"
    spec = {"kubernetesVersion": release}
    scenario = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Scenario", "spec": spec}
    shown = why(written(tmp_path, scenario, node("n1")))
    assert f'(the capture says "{release}", which is no release of Kubernetes)' in shown


@pytest.mark.parametrize("release", ["v1.35.4-" + "a" * 3000, "v1." + "9" * 5000, "1.36\nevil"])
def test_a_version_that_is_made_up_is_shortened(release: str, tmp_path: Path) -> None:
    spec = {"kubernetesVersion": release}
    scenario = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Scenario", "spec": spec}
    shown = why(written(tmp_path, scenario, node_of("n1", release)))
    assert "which is no release of Kubernetes" in shown
    assert max(map(len, shown.splitlines())) < 300


def test_a_file_beside_the_configuration_says_the_version(tmp_path: Path) -> None:
    cluster, config = written(tmp_path, node("n1")), configuration(tmp_path)
    (tmp_path / "bayplan.yaml").write_text('kubernetesVersion: "1.35"\n')
    assert OLD_TEXT in why(cluster, "--config", config)
    (tmp_path / "bayplan.yaml").write_text('kubernetesVersion: "1.9"\n')
    [line] = refusal("why", "big", cluster, "--config", config)
    assert line.startswith(
        f'{tmp_path}/bayplan.yaml: kubernetesVersion: found "1.9", wanted "1.34"'
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kubernetesVersion: 1.36\n", "kubernetesVersion: found 1.36; write it in quotes"),
        ("kubernetes: x\n", 'kubernetes: unknown field; did you mean "kubernetesVersion"?'),
        ("- 1\n", 'wanted one document, as kubernetesVersion: "1.36"'),
    ],
)
def test_a_wrong_file_beside_the_configuration_is_refused(
    text: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "bayplan.yaml").write_text(text)
    assert refusal("config", "check", configuration(tmp_path)) == [
        f"{tmp_path}/bayplan.yaml: {complaint}"
    ]


def test_a_version_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    config = configuration(tmp_path, plugins={"podGroupPostFilter": {"enabled": []}})
    assert bayplan("config", "check", config).exit_code == 0
    [line] = refusal("config", "check", config, "--kubernetes", "1.36")
    assert "profiles[0].plugins.podGroupPostFilter: unknown field" in line
    gate = ("--feature-gates", "GangScheduling=true,GenericWorkload=true")
    assert bayplan("config", "check", configuration(tmp_path), *gate).exit_code == 2
    older = bayplan("config", "check", configuration(tmp_path), *gate, "--kubernetes", "1.36")
    assert older.exit_code == 0, older.stderr


def test_a_run_answers_later_as_the_version_it_was_made_as(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"))
    answer("simulate", cluster, "--kubernetes", "1.35", "--out", tmp_path / "run")
    assert "kube-scheduler 1.35 (the run was made as 1.35)" in why(tmp_path / "run")


def test_versions_are_compared(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"))
    versions = ("--kubernetes", "1.35", "--kubernetes", "1.37")
    assert answer("compare", cluster, *versions).startswith("1.37 against 1.35:")
