"""`bayplan config rbac`."""

from pathlib import Path

import yaml

from tests.cli.command_line import answer, profile, refusal, written


def test_roles_and_bindings_are_printed_ready_to_apply(tmp_path: Path) -> None:
    config = written(tmp_path / "c.yaml", profile())
    text = answer("config", "rbac", config, "--name", "x", "--namespace", "y")
    found = list(yaml.safe_load_all(text))
    kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert [manifest["kind"] for manifest in found] == kinds
    assert found[3]["metadata"] == {"name": "x", "namespace": "y"}
    assert found[3]["subjects"][0]["name"] == "bayplan"


def test_a_bad_configuration_has_no_roles(tmp_path: Path) -> None:
    config = written(tmp_path / "c.yaml", profile(filter=["NodeNam"]))
    assert 'did you mean "NodeName"' in refusal("config", "rbac", config)[0]
