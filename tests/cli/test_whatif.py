"""`bayplan whatif`: answers, documents and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import answer, bayplan, profile, refusal, write_objects
from tests.kit.manifests import node, pod
from tests.whatif.clusters import budget, deployment, owned_pod


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
    assert rows["n2"][3:] == ["budget", "default/db"]
    wide = " ".join(answer("whatif", cluster, "--drain-each", "-o", "wide").split())
    assert "default/db-0: budget default/db allows no disruption" in wide
    assert answer("whatif", cluster, "--drain-each", "-o", "name") == "n1\nn3\nn4\n"


def test_remove_each_by_domain_is_a_document(cluster: Path) -> None:
    printed = answer("whatif", cluster, "--remove-each", "--topology-key", "zone", "-o", "json")
    document = json.loads(printed)
    assert (document["kind"], document["action"]) == ("DepartureReport", "remove")
    rows = {row["name"]: row for row in document["departures"]}
    assert (rows["a"]["canGo"], rows["a"]["nodes"]) == (True, 2)
    assert [left["pod"] for left in rows["b"]["leftOver"]] == ["default/web-a"]
    table = answer("whatif", cluster, "--remove-each", "--topology-key", "zone")
    assert table.startswith(f"1 of 2 domains of zone of {cluster} can go\n")


def test_changes_are_compared_with_the_unchanged_cluster(cluster: Path, tmp_path: Path) -> None:
    printed = answer("whatif", cluster, "--drain", "n1", "--add", "1", "--like", "n2", "-o", "json")
    document = json.loads(printed)
    assert (document["kind"], document["cluster"]) == ("WhatIfAnswer", str(cluster))
    assert document["change"]["drain"] == ["n1"]
    assert [document[state]["nodes"] for state in ("before", "after")] == [4, 5]
    assert [move["pod"] for move in document["moves"]] == ["default/web-a"]
    text = answer("whatif", cluster, "--remove", "n1", "--shapes", write_web(tmp_path))
    assert text.startswith(f"{cluster}: remove n1\n")
    assert "more pods such as web" in text


def test_a_mistake_in_what_is_applied_is_found_at_its_place(cluster: Path, tmp_path: Path) -> None:
    file = write_objects(tmp_path / "new.yaml", pod("good"), pod("Bad_Name"))
    place = f"{file}, document 2 (Pod default/Bad_Name): metadata.name: found"
    for until in ((), ("--until", "60s")):
        [line] = refusal("whatif", cluster, "--apply", file, *until)
        assert place in line


def test_nodes_that_are_added_twice_have_names_of_their_own(cluster: Path, tmp_path: Path) -> None:
    change = {"add": [{"like": "n2"}, {"like": "n2", "count": 2}]}
    document = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "WhatIf", "spec": change}
    file = write_objects(tmp_path / "change.yaml", document)
    for until in ((), ("--until", "60s")):
        printed = json.loads(answer("whatif", cluster, "-f", file, *until, "-o", "json"))
        assert [printed[state]["nodes"] for state in ("before", "after")] == [4, 7]


def test_what_is_applied_may_be_a_shape_as_well(cluster: Path, tmp_path: Path) -> None:
    both = write_objects(tmp_path / "extra.yaml", pod("extra"))
    options = ("--apply", both, "--shapes", both, "-o", "json")
    document = json.loads(answer("whatif", cluster, *options))
    assert [move["pod"] for move in document["moves"]] == ["default/extra"]
    before, after = (document[state]["headroom"]["extra"] for state in ("before", "after"))
    assert after == before - 1


def write_web(folder: Path) -> Path:
    return write_objects(folder / "web.yaml", deployment("web", 1))


def test_a_document_has_the_same_changes_as_options(cluster: Path, tmp_path: Path) -> None:
    web = deployment("api", 2)
    applied = write_objects(tmp_path / "api.yaml", web)
    change = {"add": [{"like": "n2", "count": 2}], "apply": [web], "drain": ["n1"]}
    file = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "WhatIf", "spec": change}
    written = write_objects(tmp_path / "change.yaml", file)
    options = ["--add", "2", "--like", "n2", "--apply", applied, "--drain", "n1"]
    assert answer("whatif", cluster, "-f", written) == answer("whatif", cluster, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "found no change, wanted one such as --drain NODE or --drain-each"),
        (("--drain-each", "--drain", "n1"), "found --drain-each and other changes, wanted one"),
        (("--add", "2"), "--add and --like: wanted both: how many nodes, and the node to copy"),
        (("--drain", "n11"), 'there is no node n11; did you mean "n1"?'),
        (
            ("--scale", "web=2"),
            '--scale: found "web=2", wanted KIND/NAME=REPLICAS, as in deploy/web=20',
        ),
        (
            ("--scale", "deploment/web=2"),
            (
                '--scale: found "deploment/web=2", wanted KIND/NAME=REPLICAS, as in deploy/web=20; '
                'did you mean "deployment"?'
            ),
        ),
    ],
)
def test_invalid_questions_are_refused(
    cluster: Path, options: tuple[str, ...], message: str
) -> None:
    assert refusal("whatif", cluster, *options) == [message]


def test_invalid_documents_are_refused_with_their_place(cluster: Path, tmp_path: Path) -> None:
    no_change = write_objects(tmp_path / "pod.yaml", node("n1"))
    [line] = refusal("whatif", cluster, "-f", no_change)
    assert line == f"{no_change}, document 1: wanted a WhatIf document"
    wrong = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "WhatIf", "spec": {"drian": ["n1"]}}
    [line] = refusal("whatif", cluster, "-f", write_objects(tmp_path / "w.yaml", wrong))
    assert 'did you mean "drain"?' in line


def test_a_cluster_that_cannot_be_read_ends_with_exit_code_3(tmp_path: Path) -> None:
    result = bayplan("whatif", "--drain-each", "--kubeconfig", tmp_path / "nowhere")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "nowhere" in result.stderr


def test_changes_are_simulated_until_a_time(cluster: Path) -> None:
    text = answer("whatif", cluster, "--remove", "n1", "--until", "30s")
    assert text.startswith(f"{cluster}: remove n1\n")
    [line] = refusal("whatif", cluster, "--remove", "n1", "--until", "soon")
    assert line.startswith('--until: found "soon", wanted a duration')


def configuration(path: Path, **fields: Any) -> Path:
    written = profile()
    written["profiles"] = [{"schedulerName": "default-scheduler", **fields}]
    return write_objects(path, written)


def test_a_configuration_alone_is_a_change(tmp_path: Path) -> None:
    """MostAllocated fills the node that is used; the default spreads."""
    used = owned_pod("web-1", "n1", "1")
    objects = [node("n1"), node("n2"), used, pod("waits", cpu="1")]
    cluster = write_objects(tmp_path / "cluster.yaml", *objects)
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    off = {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}}
    config = configuration(tmp_path / "most.yaml", pluginConfig=[args], plugins=off)
    lines = answer("whatif", cluster, "--config", config).splitlines()
    assert lines[0] == f"{cluster}: schedule the pods that wait with {config}"
    assert lines[1] == "1 pod that would get another node"
    assert "default/waits    n2     n1" in lines
    other = configuration(tmp_path / "other.yaml", schedulerName="mine")
    document = json.loads(answer("whatif", cluster, "--config", other, "-o", "json"))
    [left] = document["leftOver"]
    assert (left["pod"], left["source"]) == ("default/waits", "n2")
    assert left["message"] == "no profile is named default-scheduler; the profiles are mine"


@pytest.mark.parametrize("until", [(), ("--until", "10s")])
def test_nodes_that_are_not_there_are_all_named_with_what_may_be_meant(
    tmp_path: Path, until: tuple[str, ...]
) -> None:
    names = ["ip-10-0-0-1.eu.internal", "ip-10-0-0-2.eu.internal", "gpu"]
    cluster = write_objects(tmp_path / "cluster.yaml", *map(node, names))
    lines = refusal(
        "whatif", cluster, "--drain", "ip-10-0-0-2", "--remove", "nope", "--cordon", "gpu", *until
    )
    assert lines == [
        f'there is no node nope; wanted "gpu", "{names[0]}" or "{names[1]}"',
        'there is no node ip-10-0-0-2; did you mean "ip-10-0-0-2.eu.internal"?',
    ]
