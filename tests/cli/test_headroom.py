"""`bayplan headroom`: a table and a document."""

import json
from pathlib import Path

from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import pod


def test_headroom_is_a_table_and_a_document(cluster: Path, web: Path, tmp_path: Path) -> None:
    small = write_objects(tmp_path / "small.yaml", pod("small", cpu="1"))
    lines = answer("headroom", "-f", web, "-f", small, cluster).splitlines()
    assert lines[0] == f"how many more pods fit into {cluster}"
    assert [line.split()[:3] for line in lines if line.startswith(("web", "small"))] == [
        ["web", "2", "1500m"],
        ["small", "5", "1"],
    ]
    document = json.loads(answer("headroom", "-f", small, cluster, "-o", "json", "--limit", "3"))
    assert document["kind"] == "Headroom"
    assert document["shapes"][0]["max"] == {
        "workload": "Pod default/small",
        "count": 3,
        "isLimit": True,
        "nodes": {"n2": 3},
    }
