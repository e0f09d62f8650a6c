"""`bayplan whatif`: answers, documents and refusals."""

import json
from pathlib import Path

import pytest

from tests.adapters.manifests import node
from tests.cli.command_line import answer, refusal, write_objects
from tests.whatif.clusters import budget, owned_pod


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    nodes = [node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(1, 5)]
    pods = [
        owned_pod("web-a", "n1", "3"),
        owned_pod("db-0", "n2", "2"),
        owned_pod("big-a", "n3", "2"),
    ]
    return write_objects(tmp_path / "cluster.yaml", *nodes, *pods, budget("db", 1))


def test_drain_each_prints_a_row_per_node(cluster: Path) -> None:
    lines = answer("whatif", cluster, "--drain-each").splitlines()
    assert lines[0] == f"3 of 4 nodes of {cluster} can be drained"
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("n")}
    assert rows["n1"] == ["yes", "1"]
    assert rows["n2"][:3] == ["no", "0", "1"]
    assert "default/db-0: budget default/db allows no disruption" in " ".join(lines)


def test_remove_each_by_domain_is_a_document(cluster: Path) -> None:
    printed = answer("whatif", cluster, "--remove-each", "--topology-key", "zone", "-o", "json")
    document = json.loads(printed)
    assert (document["kind"], document["action"]) == ("DepartureReport", "remove")
    rows = {row["name"]: row for row in document["departures"]}
    assert (rows["a"]["canGo"], rows["a"]["nodes"]) == (True, 2)
    assert [left["pod"] for left in rows["b"]["leftOver"]] == ["default/web-a"]
    table = answer("whatif", cluster, "--remove-each", "--topology-key", "zone")
    assert table.startswith(f"1 of 2 domains of zone of {cluster} can go\n")


def test_a_question_without_a_change_is_refused(cluster: Path) -> None:
    assert refusal("whatif", cluster) == ["found no change, wanted --drain-each or --remove-each"]
