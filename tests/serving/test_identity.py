"""Where a replica runs and who it is."""

from pathlib import Path

import pytest

from bayplan.serving.identity import new_identity, own_namespace


def test_the_namespace_is_the_pods_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    file = tmp_path / "namespace"
    assert own_namespace(file) == "kube-system"
    file.write_text("schedulers\n")
    assert own_namespace(file) == "schedulers"
    monkeypatch.setenv("POD_NAMESPACE", "elsewhere")
    assert own_namespace(file) == "elsewhere"


def test_no_two_lives_of_a_pod_are_the_same_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "bayplan-0")
    one, other = new_identity(), new_identity()
    assert one != other
    assert one.startswith("bayplan-0_")
