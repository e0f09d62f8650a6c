"""`bayplan config rbac`."""

from pathlib import Path

import yaml

from tests.cli.command_line import answer, profile, refusal, write_objects


def test_roles_and_bindings_are_printed_ready_to_apply(tmp_path: Path) -> None:
    own = {**profile(), "profiles": [{"schedulerName": "own"}]}
    config = write_objects(tmp_path / "c.yaml", own)
    text = answer("config", "rbac", config, "--name", "x", "--namespace", "y")
    results = list(yaml.safe_load_all(text))
    kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert [manifest["kind"] for manifest in results] == kinds
    assert results[3]["metadata"] == {"name": "x", "namespace": "y"}
    assert results[3]["subjects"][0]["name"] == "bayplan"


def test_an_invalid_configuration_has_no_roles(tmp_path: Path) -> None:
    config = write_objects(tmp_path / "c.yaml", profile(filter=["NodeNam"]))
    assert 'did you mean "NodeName"' in refusal("config", "rbac", config)[0]


def test_the_lease_of_kube_scheduler_is_in_its_namespace(tmp_path: Path) -> None:
    text = answer(
        "config", "rbac", write_objects(tmp_path / "c.yaml", profile()), "--namespace", "y"
    )
    role, binding = list(yaml.safe_load_all(text))[2:]
    assert role["rules"][-1]["resourceNames"] == ["kube-scheduler"]
    assert [manifest["metadata"]["namespace"] for manifest in (role, binding)] == [
        "kube-system"
    ] * 2
    assert binding["subjects"][0]["namespace"] == "y"


def test_the_role_of_a_shadow_has_no_writing_verbs(tmp_path: Path) -> None:
    config = write_objects(tmp_path / "c.yaml", profile())
    role, binding = yaml.safe_load_all(answer("config", "rbac", config, "--read-only"))
    assert [role["kind"], binding["kind"]] == ["ClusterRole", "ClusterRoleBinding"]
    verbs = {tuple(rule["verbs"]) for rule in role["rules"]}
    assert verbs == {("get", "list", "watch")}
    resources = {name for rule in role["rules"] for name in rule["resources"]}
    assert {"pods", "nodes", "namespaces", "priorityclasses"} <= resources
    assert {"deployments", "daemonsets", "statefulsets", "jobs"} <= resources
    assert {"limitranges", "resourcequotas", "runtimeclasses"} <= resources
    assert not [name for name in resources if "/" in name]
