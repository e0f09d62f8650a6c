"""`bayplan headroom`: a table and a document."""

import json
from pathlib import Path

from tests.cli.command_line import answer, refusal, write_objects
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


def test_a_workload_of_the_cluster_is_named_as_in_why(cluster: Path, web: Path) -> None:
    both = (cluster, web)
    (line,) = [
        each for each in answer("headroom", "deploy/web", *both).splitlines() if "web" in each
    ][1:]
    assert line.split()[0] == "web"
    assert line.split()[2] == "1500m"
    assert "not counted" not in answer("headroom", "-f", web, *both)
    (unknown,) = refusal("headroom", "deploy/wbe", *both)
    assert 'no Deployment default/wbe; did you mean "Deployment default/web"?' in unknown
    (of_pod,) = refusal("headroom", "pod/web", *both)
    assert of_pod == "found pod/web, wanted a workload, as deployment/web, or pods in a file (-f)"


def test_a_name_where_a_question_takes_files_only_leads_to_the_questions_that_take_it(
    cluster: Path,
) -> None:
    for command in (("fit", "--cpu", "1"), ("whatif", "--drain-each")):
        (line,) = refusal(*command, "deployment/web", cluster)
        assert line.startswith("found deployment/web, wanted files of the cluster")
        assert "`bayplan headroom deployment/web`" in line
        assert "`bayplan why deployment/web`" in line
