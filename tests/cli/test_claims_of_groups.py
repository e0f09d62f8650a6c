"""Questions read the claims of a group as its scheduler does: gate DRAWorkloadResourceClaims."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.command_line import bayplan
from tests.kit.group_claims import GATES, group, members, one_device
from tests.kit.manifests import Content, node


def written(path: Path, *contents: Iterable[Content]) -> Path:
    path.write_text("".join(f"---\n{json.dumps(one)}\n" for part in contents for one in part))
    return path


def config(folder: Path, *, is_on: bool) -> list[str | Path]:
    gates = {**GATES, "DRAWorkloadResourceClaims": is_on}
    version = "kubescheduler.config.k8s.io/v1"
    content = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "featureGates": gates}
    path = folder / "config.yaml"
    path.write_text(json.dumps(content))
    return ["--config", path]


@pytest.mark.parametrize("is_on", [True, False])
def test_why_and_fit_count_the_device_of_a_group_once_with_the_gate(
    tmp_path: Path, is_on: bool
) -> None:
    gates, nodes = config(tmp_path, is_on=is_on), [node("n1"), node("n2")]
    waiting = written(tmp_path / "waiting.yaml", nodes, one_device(), [group()], members())
    fits = (
        "fits now: an attempt would place it on n1"
        in bayplan("why", "default/a", waiting, *gates).stdout
    )
    assert fits is is_on
    empty = written(tmp_path / "empty.yaml", nodes, one_device())
    with_group = written(tmp_path / "group.yaml", nodes, one_device(), [group()])
    own = written(tmp_path / "own.yaml", members())
    both = written(tmp_path / "both.yaml", [group()], members())
    for cluster, workload in ((empty, both), (with_group, own)):
        fitting = "2 pods fit" if is_on else "0 of 2 pods fit"
        assert fitting in bayplan("fit", cluster, "-f", workload, *gates).stdout
