"""`bayplan capture`: files and messages."""

import stat
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from bayplan.adapters.live.errors import UnreachableError
from bayplan.api.objects import POD
from bayplan.cli import capture
from bayplan.model.capture import Capture
from tests.cli.command_line import answer, bayplan, profile, refusal, write_objects
from tests.serving.confidential import NODE
from tests.serving.confidential import POD as POD_MANIFEST


@pytest.fixture
def listed_kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The requested kinds; the cluster has one node and one pod."""
    kinds: list[list[str]] = []

    async def captured(client: object, requested: Iterable[str]) -> Capture:
        kinds.append(list(requested))
        return Capture([NODE, POD_MANIFEST], ["example.com/v1 Wish"], {})

    monkeypatch.setattr(capture, "capture", captured)
    cluster = {"server": "http://127.0.0.1:1"}
    config = write_objects(
        tmp_path / "kubeconfig",
        {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        },
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return kinds


def test_the_file_is_private_to_its_owner_and_its_objects_are_counted(
    listed_kinds: list[list[str]], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    result = bayplan("capture", "-o", file)
    assert (result.exit_code, result.stdout) == (0, "")
    assert list(yaml.safe_load_all(file.read_text())) == [NODE, POD_MANIFEST]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert result.stderr.splitlines() == [
        "bayplan: the API server does not have example.com/v1 Wish",
        "bayplan: 1 Node, 1 Pod",
    ]
    assert "apps/v1 ReplicaSet" in listed_kinds[0]


def test_kinds_that_the_configured_plugins_do_not_read_are_not_listed(
    listed_kinds: list[list[str]], tmp_path: Path
) -> None:
    config = profile()
    config["profiles"][0]["plugins"]["multiPoint"] = {"disabled": [{"name": "PodTopologySpread"}]}
    answer("capture", "--config", write_objects(tmp_path / "c.yaml", config))
    assert "apps/v1 ReplicaSet" not in listed_kinds[0]


def test_a_redacted_capture_lists_the_unredacted_fields_and_can_be_simulated(
    listed_kinds: list[list[str]], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    result = bayplan("capture", "--redact", "-o", file)
    assert "bayplan: kept: label keys" in result.stderr
    assert "hunter2" not in file.read_text()
    assert "node-1" in file.read_text()
    assert "node-1" in answer("simulate", file, "-o", "json")


def test_failures_are_reported_in_one_line(
    listed_kinds: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = refusal("capture", "-o", tmp_path / "no" / "such")
    assert lines[-1].endswith("cannot be written: No such file or directory")

    async def unreachable(client: object, kinds: Iterable[str]) -> Capture:
        raise UnreachableError(f"GET {POD}: no answer")

    monkeypatch.setattr(capture, "capture", unreachable)
    result = bayplan("capture")
    assert (result.exit_code, result.stderr) == (3, f"bayplan: GET {POD}: no answer\n")
