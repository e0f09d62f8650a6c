"""`bayplan.Cluster`: questions, placements that stay, and tables."""

import asyncio
from pathlib import Path
from typing import Any

import pandas
import pytest

import bayplan
from bayplan.adapters.live.credentials import CredentialsError
from bayplan.problems import BadInputError
from tests.cli.command_line import answer, profile, write_objects
from tests.kit.manifests import node, pod
from tests.whatif.clusters import deployment, owned_pod

NODES = [node("n1"), node("n2")]


def test_files_objects_and_runs_are_clusters(tmp_path: Path) -> None:
    path = write_objects(tmp_path / "cluster.yaml", *NODES)
    with bayplan.Cluster.from_files(path, pod("a", cpu="1", nodeName="n1")) as cluster:
        assert repr(cluster) == f"Cluster({path}: 2 nodes, 1 pods, 0 waiting)"
    answer("simulate", path, "--out", tmp_path / "run")
    with bayplan.Cluster.from_run(tmp_path / "run") as cluster:
        assert list(cluster.nodes["node"]) == ["n1", "n2"]


def test_tables_are_data_frames() -> None:
    running = owned_pod("web-a", "n1", "1500m")
    with bayplan.Cluster.from_files(*NODES, running, pod("big", cpu="8")) as cluster:
        assert isinstance(cluster.nodes, pandas.DataFrame)
        nodes = cluster.nodes.set_index("node")
        assert nodes.loc["n1", ["pods", "cpu", "cpu_requested"]].tolist() == [1, 4.0, 1.5]
        assert bool(nodes.loc["n2", "schedulable"])
        pods = cluster.pods.set_index("pod")
        assert pods.loc["default/web-a", "workload"] == "ReplicaSet default/web"
        assert pods.loc["default/big", "node"] == ""
        assert cluster.placements.to_dict("records") == [{"pod": "default/web-a", "node": "n1"}]


def test_questions_change_nothing() -> None:
    with bayplan.Cluster.from_files(*NODES) as cluster:
        assert cluster.fit(deployment("web", 8)).fits
        answer = cluster.fit(deployment("web", 1, "3"), max=True)
        assert answer.max is not None
        assert answer.max.count == 2
        assert [one.max.count for one in cluster.headroom(pod("small")).shapes] == [8]
        assert all(row.can_go for row in cluster.drain_each().departures)
        assert all(row.can_go for row in cluster.remove_each().departures)
        assert cluster.pods.empty


def test_placements_last_until_the_end_of_a_trial() -> None:
    with bayplan.Cluster.from_files(*NODES) as cluster:
        with cluster.trial():
            assert cluster.schedule(deployment("web", 6)).fits
            assert len(cluster.placements) == 6
            assert not cluster.fit(deployment("api", 3)).fits
            cluster.schedule(pod("a", cpu="1"))
            with pytest.raises(BadInputError, match="Pod default/a is in the cluster already"):
                cluster.schedule(pod("a", cpu="1"))
        assert cluster.placements.empty
        assert cluster.fit(deployment("api", 3)).fits
        cluster.schedule(pod("a", cpu="3"))
        assert len(cluster.placements) == 1


def test_pods_that_wait_are_scheduled_without_an_argument() -> None:
    with bayplan.Cluster.from_files(*NODES, deployment("web", 9)) as cluster:
        answer = cluster.schedule()
        assert [len(answer.pods), len(answer.left_over)] == [9, 1]
        assert len(cluster.placements) == 8


def test_the_configuration_determines_the_placements() -> None:
    packing = profile()
    packing["profiles"][0]["pluginConfig"] = [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}],
                }
            },
        }
    ]
    with bayplan.Cluster.from_files(*NODES, config=packing) as cluster:
        cluster.schedule(deployment("web", 4, "500m"))
        assert cluster.nodes["pods"].tolist() in ([4, 0], [0, 4])


def test_answers_are_texts_and_shown_in_notebooks() -> None:
    with bayplan.Cluster.from_files(*NODES) as cluster:
        answer = cluster.fit(pod("huge", cpu="64"))
        assert str(answer).startswith("0 of 1 pod fits into the cluster\n")
        assert answer._repr_html_().startswith("<pre")
        assert "nodes of the cluster can be drained" in str(cluster.drain_each())
        assert "how many more pods fit into the cluster" in cluster.headroom(pod("a"))._repr_html_()


def test_changes_are_keywords_or_a_document() -> None:
    with bayplan.Cluster.from_files(*NODES, owned_pod("web-a", "n1")) as cluster:
        by_name = cluster.whatif(drain=["n1"], add=[bayplan.NewNodes(template="n2")])
        assert [(move.source, move.pod) for move in by_name.moves] == [("n1", "default/web-a")]
        assert by_name.after.nodes == 3
        document = bayplan.WhatIf(add=(bayplan.NewNodes(template="n2"),))
        assert cluster.whatif(document, drain=["n1"]) == by_name
        shapes = cluster.whatif(cordon=["n1"], shapes=[pod("small", cpu="1")])
        assert shapes.before.headroom == {"small": 7}
        assert len(cluster.nodes) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"add": 1}, r"add: found 1, wanted bayplan.NewNodes\("),
        ({"add": "n1"}, r"add: found 'n1', wanted bayplan.NewNodes\("),
        ({"scale": {"deployment/web": 3}}, r"scale: found \{.*\}, wanted bayplan.Scaling\("),
        ({"drain": ["n1", 3]}, "drain: found 3, wanted the name of a node, or several"),
        ({"cordon": None}, "cordon: found None, wanted the name of a node"),
        ({"apply": "web.yaml"}, "apply: found 'web.yaml', wanted the content of an object"),
        (
            {"scale": bayplan.Scaling(kind="Deployment", name="web", replicas=-1)},
            r"scale: Expected `int` >= 0 - at `\$.replicas`",
        ),
        ({"darin": "n1"}, 'there is no change darin; did you mean "drain"?'),
    ],
)
def test_a_change_of_another_type_says_what_is_wanted(
    changes: dict[str, Any], message: str
) -> None:
    with (
        bayplan.Cluster.from_files(*NODES) as cluster,
        pytest.raises(BadInputError, match=message.replace("?", r"\?")),
    ):
        cluster.whatif(**changes)


def test_why_explains_a_pending_pod_and_a_bound_one() -> None:
    objects = [*NODES, pod("large", cpu="5"), owned_pod("web-a", "n1")]
    with bayplan.Cluster.from_files(*objects) as cluster:
        assert "Insufficient cpu: 2 nodes, the nearest lacks 1" in str(cluster.why("large"))
        assert cluster.why("default/large").fixes
        assert "n1" in str(cluster.why("web-a"))
        with pytest.raises(BadInputError, match=r"there is no pod default/larg; .*default/large"):
            cluster.why("larg")


def test_a_live_cluster_that_cannot_be_read_raises(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nowhere"):
        bayplan.Cluster.from_kubeconfig(tmp_path / "nowhere")


def test_questions_can_be_asked_while_an_event_loop_runs() -> None:
    async def ask() -> tuple[str, bool, int]:
        with bayplan.Cluster.from_files("examples/quickstart") as cluster:
            why = cluster.why("no-toleration").result
            changed = cluster.whatif(drain=["general-a1"], until="1m")
            return why, cluster.fit(cpu="1", memory="1Gi").fits, changed.after.schedulable_nodes

    result, fits, schedulable_count = asyncio.run(ask())
    assert (result, fits, schedulable_count) == ("unschedulable", True, 10)
