"""`bayplan.simulate`: the command's arguments and results, from Python."""

import json
from pathlib import Path
from typing import Any

import pytest

import bayplan
from bayplan.config import ConfigError
from bayplan.framework.plugin import ScalarScorePlugin
from bayplan.problems import BadInputError
from tests.cli.command_line import answer, profile, write_objects
from tests.kit.manifests import node, pod
from tests.sim.manifests import controller, scenario

LARGE = pod("large", cpu="64")


class PreferN2(ScalarScorePlugin):
    """Prefers the node n2."""

    name = "PreferN2"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 100 * (node.name == "n2")


def test_the_result_is_that_of_the_command(tmp_path: Path) -> None:
    path = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), pod("a"), LARGE)
    printed = json.loads(answer("simulate", path, "--seed", "7", "-o", "json"))
    result = bayplan.simulate(path, seed=7)
    assert result.summary.digest == printed["digest"]
    assert result.summary.placements == printed["placements"]
    assert str(result).startswith("1 of 2 pods placed on 2 nodes\n")
    assert repr(result) == "Result(1 placed, 1 waiting)"
    assert "1 of 2 pods placed on 2 nodes" in result._repr_html_()


def test_objects_are_read_as_those_of_files() -> None:
    result = bayplan.simulate(node("n1"), {"kind": "List", "apiVersion": "v1", "items": [pod("a")]})
    [row] = result.placements.to_dict("records")
    assert row == {"pod": "default/a", "node": "n1", "bound_at": 0.0}


def test_the_timeline_has_every_decision_in_order() -> None:
    timeline = bayplan.simulate(node("n1"), pod("a"), LARGE).timeline
    rows = timeline[["subject", "event", "result", "node"]].to_dict("records")
    assert list(map(tuple, map(dict.values, rows))) == [
        ("default/a", "attempt", "scheduled", "n1"),
        ("default/a", "binding", "bound", "n1"),
        ("default/large", "attempt", "unschedulable", ""),
    ]


def test_why_explains_a_pod_and_names_similar_ones() -> None:
    result = bayplan.simulate(node("n1"), pod("a"), pod("here", nodeName="n1"), LARGE)
    assert "Insufficient cpu" in str(result.why("large"))
    assert str(result.why("default/a")) == str(result.why("a"))
    assert str(result.why("here")) == (
        "default/here came with a node, n1: there was nothing to decide"
    )
    with pytest.raises(BadInputError, match=r"no decision about default/larg; .* default/large"):
        result.why("larg")


def test_a_configuration_and_a_plugin_may_be_values_of_the_program() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    result = bayplan.simulate(
        *nodes, pod("a"), config=profile(score=["PreferN2"]), plugins=[PreferN2]
    )
    assert result.summary.placements == {"default/a": "n2"}


def test_a_written_run_can_be_explained_later(tmp_path: Path) -> None:
    result = bayplan.simulate(node("n1"), pod("a"), out=tmp_path / "run")
    rows = (tmp_path / "run" / "placements.csv").read_text().splitlines()
    assert rows[1] == "default/a,n1,0.0,placed"
    assert answer("why", "default/a", "--run", tmp_path / "run") == f"{result.why('a')}\n"


def test_options_end_the_run_and_say_whether_pods_come_back() -> None:
    web = controller("ReplicaSet", replicas=1, selector={"matchLabels": {"app": "web"}})
    deletion = scenario({"at": 5, "delete": [{"kind": "Node", "name": "n1"}]})
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"expansion": "once"}, 1),
        ({"until": 4}, 1),
    ]
    for options, count in cases:
        assert bayplan.simulate(node("n1"), web, deletion, **options).summary.counts.pods == count
    late = bayplan.simulate(node("n1"), web, deletion, recreate_after="7s").summary.pods
    assert sorted(one.created_at or 0.0 for one in late.values()) == [0.0, 12.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": "soon"}, 'time: found "soon", wanted "arrivals" or "trace"'),
        ({"pod_gc_period": "soon"}, 'pod_gc_period: found "soon", wanted a duration'),
        ({"until": "soon"}, 'until: found "soon", wanted a duration'),
        ({"expansion": "twice"}, 'expansion: found "twice", wanted one of controllers, once'),
        ({"config": "nowhere.yaml"}, "nowhere.yaml: cannot be read: No such file"),
        ({"plugins": ["nowhere.py"]}, "nowhere.py: cannot be read: no such file"),
        ({"plugins": [PreferN2], "out": "run"}, "only if its plugins are in files"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        bayplan.simulate(node("n1"), **arguments)


def test_a_wrong_configuration_is_refused() -> None:
    with pytest.raises(ConfigError, match="profile"):
        bayplan.simulate(node("n1"), config={"profile": []})


def test_wrong_objects_are_refused_by_their_number() -> None:
    with pytest.raises(BadInputError, match="object 2"):
        bayplan.simulate(node("n1"), {"kind": "Pod"})


def test_a_claim_that_a_dump_has_for_a_waiting_pod_is_used(tmp_path: Path) -> None:
    """A controller deletes such a claim if it does not see the pod."""
    file = tmp_path / "dump.yaml"
    file.write_text(
        """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "9"}}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpu}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: p-gpu-x2vbn
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: p-uid, controller: true}]
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: p-uid}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
  containers: [{name: c, image: app, resources: {claims: [{name: gpu}]}}]
status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: p-gpu-x2vbn}]}
"""
    )
    assert bayplan.simulate(file).summary.placements == {"default/p": "n1"}
