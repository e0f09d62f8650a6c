"""Questions read the further fields that plugins declare, wherever the cluster comes from."""

from pathlib import Path
from typing import Any

import bayplan
from bayplan.whatif.cluster import ClusterOptions
from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import Content, node, pod
from tests.model.declared_fields import CONFIG, VERSION, KubeletVersion
from tests.whatif.clusters import deployment

OPTIONS: ClusterOptions = {"config": CONFIG, "plugins": [KubeletVersion]}


def node_of_version(name: str, version: str = VERSION) -> Content:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return node(name, status={"allocatable": allocatable, "nodeInfo": {"kubeletVersion": version}})


def test_the_fields_of_files_are_read() -> None:
    objects = (node_of_version("old", "v1.29.0"), node_of_version("new"), pod("waiting"))
    with bayplan.Cluster.from_files(*objects, **OPTIONS) as cluster:
        assert cluster.why("waiting").node == "new"
        assert cluster.fit(deployment("web", 2)).fits
        assert not cluster.fit(deployment("web", 5)).fits


def test_the_fields_of_a_run_are_read_also_those_that_its_own_plugins_did_not_declare(
    tmp_path: Path,
) -> None:
    path = write_objects(tmp_path / "cluster.yaml", node_of_version("new"), pod("placed"))
    answer("simulate", path, "--out", tmp_path / "run")
    with bayplan.Cluster.from_run(tmp_path / "run", **OPTIONS) as cluster:
        assert cluster.fit(deployment("web", 3)).fits


def test_a_changed_node_has_its_fields_as_they_are_now() -> None:
    def applied(**parts: Any) -> Content:
        meta = {"name": "n1", "labels": {"disk": "ssd"}}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, **parts}

    with bayplan.Cluster.from_files(node_of_version("n1"), pod("waiting"), **OPTIONS) as cluster:
        [move] = cluster.whatif(apply=applied()).placed_before
        assert move.target == "n1"
        older = applied(status={"nodeInfo": {"kubeletVersion": "v1.29.0"}})
        with cluster.trial():
            moves = cluster.whatif(apply=[older, deployment("web", 1)]).left_over
            assert ["kubelet v1.29.0" in each.message for each in moves] == [True]
