"""WhatIf documents: decoding, refusals, the command line's scaling, and the schema."""

from typing import Any

import pytest

import bayplan
from bayplan.problems import BadInputError
from bayplan.sim.input.sources import OWN_API_VERSION, WHAT_IF, own_kind
from bayplan.sim.input.what_if import (
    NewNodes,
    Scaling,
    WhatIf,
    decode_what_if,
    parse_scaling,
    what_if_schema,
)
from tests.kit.manifests import node
from tests.sim.manifests import controller


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": OWN_API_VERSION, "kind": WHAT_IF, "metadata": {"name": "x"}, "spec": spec}


def refusals(value: dict[str, Any]) -> list[str]:
    _, problems = decode_what_if(value)
    return list(map(str, problems))


def test_a_document_has_all_changes() -> None:
    scaling = {"kind": "Deployment", "name": "web", "replicas": 20}
    change, problems = decode_what_if(
        document(
            until="10m",
            add=[{"count": 3, "like": "n9"}, {"like": "n8"}],
            drain=["n7"],
            scale=[scaling],
        )
    )
    assert not problems
    assert change == WhatIf(
        until="10m",
        add=(NewNodes(template="n9", count=3), NewNodes(template="n8")),
        drain=("n7",),
        scale=(Scaling(kind="Deployment", name="web", replicas=20, namespace="default"),),
    )
    assert change.until_seconds == 600.0
    assert not change.is_empty
    assert WhatIf(until=5).is_empty


def test_changes_can_be_written_as_a_document_and_read_back() -> None:
    change = WhatIf(
        add=(NewNodes(template="n9", count=3),),
        scale=(parse_scaling("sts/db=0", "shop"),),
        apply=({"kind": "Pod"},),
        until=60.0,
    )
    assert decode_what_if(change.document()) == (change, [])
    assert WhatIf().document()["spec"] == {}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (document(drian=["n7"]), 'did you mean "drain"?'),
        (document(drain="n7"), 'spec.drain: "n7"; wanted a list'),
        (document(add=[{"like": "n9", "count": 0}]), "spec.add[0].count"),
        (document(until="soon"), 'spec.until: found "soon", wanted a duration'),
        (
            document(scale=[{"kind": "Deploymnt", "name": "web", "replicas": 1}]),
            'spec.scale[0].kind: found "Deploymnt", wanted a kind that has replicas; did you mean',
        ),
        ({**document(), "apiVersion": "bayplan.dev/v2"}, "apiVersion: found"),
    ],
)
def test_problems_have_their_place(value: dict[str, Any], problem: str) -> None:
    [line] = refusals(value)
    assert problem in line


def test_a_document_is_recognized_in_any_version() -> None:
    assert own_kind({**document(), "apiVersion": "bayplan.dev/v2"}) == WHAT_IF
    assert not own_kind({**document(), "apiVersion": "v1"})
    assert not own_kind([])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deploy/web=20", "Deployment"),
        ("StatefulSet/web=20", "StatefulSet"),
        ("replicaset.apps/web=20", "ReplicaSet"),
    ],
)
def test_a_scaling_of_the_command_line(text: str, kind: str) -> None:
    scaling = parse_scaling(text, "shop")
    assert scaling == Scaling(kind=kind, name="web", replicas=20, namespace="shop")


@pytest.mark.parametrize("text", ["web=20", "deploy/web", "deploy/web=-1", "daemonset/web=2"])
def test_another_scaling_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match=r"--scale: found .*, wanted KIND/NAME=REPLICAS"):
        parse_scaling(text)


def test_the_schema_refuses_what_the_decoder_refuses() -> None:
    schema = what_if_schema()
    parts = schema["$defs"]
    assert parts["WhatIf"]["additionalProperties"] is False
    assert set(parts["WhatIf"]["properties"]) >= {"drain", "remove", "add", "scale", "apply"}
    assert parts["NewNodes"]["required"] == ["like"]
    assert parts["Scaling"]["properties"]["kind"]["enum"][0] == "Deployment"


# ---- in scenario files ---------------------------------------------------------------------


def test_a_document_among_the_inputs_of_a_simulation_is_played() -> None:
    cluster = [
        node("n1", labels={"kubernetes.io/hostname": "n1"}),
        controller("ReplicaSet", "web", replicas=2, selector={"matchLabels": {"app": "web"}}),
    ]
    metadata = {"name": "n1", "labels": {"a": "b"}}
    labelled_node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    change = document(
        add=[{"like": "n1", "count": 1}],
        scale=[{"kind": "ReplicaSet", "name": "web", "replicas": 3}],
        apply=[labelled_node],
        drain=["n1"],
    )
    result = bayplan.simulate(*cluster, change).summary
    assert result.nodes == 2
    running = [pod for pod in result.pods.values() if pod.deleted_at is None]
    assert [pod.node for pod in running] == ["n1-new-1"] * 3


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"add": [{"like": "n2"}]}, 'spec.add[0].like: found "n2", wanted a node'),
        ({"drain": ["n11"]}, "Node n11 is not there at that time"),
        ({"drian": []}, 'did you mean "drain"?'),
        ({"apply": [{"kind": "Pod"}]}, "object 2"),
    ],
)
def test_invalid_changes_of_a_simulation_are_refused(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        bayplan.simulate(node("n1"), document(**spec))
    assert problem in str(refusal.value)


def test_a_document_may_end_the_simulation() -> None:
    assert bayplan.simulate(node("n1"), document(until="90s")).summary.simulated_seconds == 90.0
