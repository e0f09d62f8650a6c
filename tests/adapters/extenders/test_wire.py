"""The JSON that is sent to extenders and read from them."""

import json
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObjects
from bayplan.adapters.extenders.wire import NonsenseError, PodGoneError, decoded, encoded
from bayplan.api.objects import POD, Pod
from bayplan.clock import ManualClock
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb, NamedVictims, Victims
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import pod
from tests.kit import manifests

FILTER, PRIORITIZE = ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE
PREEMPT, BIND = ExtenderVerb.PREEMPT, ExtenderVerb.BIND


def cluster() -> EmbeddedCluster:
    """Two nodes, and pods that carry more than a scheduler reads."""
    embedded = EmbeddedCluster(ManualClock())
    for name in ("n1", "n2"):
        node = manifests.node(name)
        node["metadata"]["managedFields"] = [{"manager": "kubelet"}]
        node["status"]["nodeInfo"] = {"kernelVersion": "6.1"}
        embedded.create(node)
    for name in ("p", "v"):
        waiting = manifests.pod(name)
        waiting["spec"]["dnsPolicy"] = "Default"
        embedded.create(waiting)
    return embedded


def compiled(embedded: EmbeddedCluster, name: str = "p") -> PodInfo:
    pod = next(each.object for each in embedded.objects(POD) if each.key.name == name)
    assert isinstance(pod, Pod)
    return pod_info(pod)


def encoded_request(
    verb: ExtenderVerb, *names: str, by_name: bool = True, **more: Any
) -> dict[str, Any]:
    embedded = cluster()
    request = AskExtender(1, "far", verb, compiled(embedded), names, **more)
    return json.loads(encoded(request, StoredObjects(embedded.get), by_name=by_name))


@pytest.mark.parametrize("verb", [FILTER, PRIORITIZE])
def test_an_extender_with_a_node_cache_gets_node_names(verb: ExtenderVerb) -> None:
    args = encoded_request(verb, "n1", "n2")
    assert sorted(args) == ["NodeNames", "Nodes", "Pod"]
    assert (args["Nodes"], args["NodeNames"]) == (None, ["n1", "n2"])


def test_the_pod_is_sent_complete() -> None:
    result = encoded_request(FILTER, "n1")["Pod"]
    assert result["metadata"]["name"] == "p"
    assert result["metadata"]["resourceVersion"]
    assert result["spec"]["dnsPolicy"] == "Default"
    assert "kind" not in result


def test_an_extender_without_a_node_cache_gets_complete_nodes() -> None:
    args = encoded_request(PRIORITIZE, "n1", "n2", by_name=False)
    assert args["NodeNames"] is None
    assert args["Nodes"]["metadata"] == {}
    first, second = args["Nodes"]["items"]
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("n1", "n2")
    assert first["status"]["nodeInfo"] == {"kernelVersion": "6.1"}
    assert "managedFields" not in first["metadata"]


def test_a_deleted_node_is_not_sent() -> None:
    items = encoded_request(FILTER, "n1", "n9", by_name=False)["Nodes"]["items"]
    assert [item["metadata"]["name"] for item in items] == ["n1"]


def test_a_call_about_a_deleted_pod_is_refused() -> None:
    request = AskExtender(1, "far", FILTER, pod("other"), ("n1",))
    with pytest.raises(PodGoneError, match="pod default/other is gone"):
        encoded(request, StoredObjects(cluster().get), by_name=True)


def test_a_binding_needs_no_objects() -> None:
    request = AskExtender(0, "far", BIND, pod("gone"), ("n1",))
    assert json.loads(encoded(request, StoredObjects(cluster().get), by_name=False)) == {
        "PodName": "gone",
        "PodNamespace": "default",
        "PodUID": "uid-default/gone",
        "Node": "n1",
    }


def test_victims_are_sent_by_uid() -> None:
    victim = pod("v", uid="u1")
    args = encoded_request(PREEMPT, victims={"n1": Victims((victim,), 2)})
    assert args["NodeNameToVictims"] is None
    meta = {"n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2}}
    assert args["NodeNameToMetaVictims"] == meta


def test_complete_victims_are_sent_to_an_extender_without_a_node_cache() -> None:
    args = encoded_request(PREEMPT, by_name=False, victims={"n1": Victims((pod("v"),))})
    assert args["NodeNameToMetaVictims"] is None
    result = args["NodeNameToVictims"]["n1"]
    assert result["NumPDBViolations"] == 0
    assert [each["spec"]["dnsPolicy"] for each in result["Pods"]] == ["Default"]


# ---- answers -------------------------------------------------------------------------------


def read(verb: ExtenderVerb, answer: Any, *, by_name: bool = True) -> ExtenderAnswer:
    return decoded(verb, json.dumps(answer).encode(), by_name=by_name)


@pytest.mark.parametrize(
    "answer",
    [
        {
            "NodeNames": ["n1"],
            "FailedNodes": {"n2": "a"},
            "FailedAndUnresolvableNodes": {"n3": "b"},
        },
        {
            "nodenames": ["n1"],
            "failedNodes": {"n2": "a"},
            "failedAndUnresolvableNodes": {"n3": "b"},
        },
        {
            "Nodes": {"items": [{"metadata": {"name": "n1"}, "spec": {"podCIDR": "::"}}]},
            "NodeNames": None,
            "FailedNodes": {"n2": "a"},
            "FailedAndUnresolvableNodes": {"n3": "b"},
            "Error": "",
            "Comment": ["of its own"],
        },
    ],
    ids=["as upstream writes it", "in small letters", "with nodes in place of names"],
)
def test_a_filter_result_is_decoded(answer: dict[str, Any]) -> None:
    expected = ExtenderAnswer(
        node_names=frozenset({"n1"}), failed={"n2": "a"}, failed_and_unresolvable={"n3": "b"}
    )
    assert read(FILTER, answer) == expected


def test_names_do_not_count_for_an_extender_that_got_complete_nodes() -> None:
    assert read(FILTER, {"NodeNames": ["n1"]}, by_name=False).node_names == frozenset()


@pytest.mark.parametrize("answer", [None, {}, {"Nodes": None}, {"Nodes": {"items": None}}])
def test_a_result_without_a_list_leaves_no_node(answer: Any) -> None:
    assert read(FILTER, answer) == ExtenderAnswer()


def test_an_error_in_the_result_is_returned() -> None:
    assert read(FILTER, {"Error": "no licence", "NodeNames": ["n1"]}).error == "no licence"
    assert read(BIND, {"Error": "no licence"}).error == "no licence"
    assert read(BIND, {"Error": ""}).error == read(BIND, {}).error == ""


def test_priorities_are_decoded() -> None:
    answer = [{"Host": "n1", "Score": 3}, {"host": "n2", "score": 8}, {"Host": "n3"}]
    assert read(PRIORITIZE, answer).scores == (("n1", 3), ("n2", 8), ("n3", 0))
    assert read(PRIORITIZE, None).scores == ()


def test_victims_are_decoded() -> None:
    answer = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}}
    assert read(PREEMPT, answer).victims == {"n1": NamedVictims(("u",), 1)}
    small = {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "u"}]}, "n2": None}}
    assert read(PREEMPT, small).victims == {"n1": NamedVictims(("u",)), "n2": NamedVictims(())}
    assert read(PREEMPT, {}).victims == {}


@pytest.mark.parametrize(
    ("verb", "body", "message"),
    [
        (FILTER, b"", "truncated"),
        (FILTER, b"<html>", "malformed"),
        (FILTER, b"[1]", "Expected `object | null`"),
        (FILTER, b'{"NodeNames": "n1"}', "NodeNames: Expected `array | null`"),
        (FILTER, b'{"FailedNodes": {"n1": 1}}', "FailedNodes: Expected `str`"),
        (FILTER, b'{"NodeNames": ["\xff"]}', "utf-8"),
        (PRIORITIZE, b'{"Host": "n1"}', "Expected `array | null`"),
        (PRIORITIZE, b'[{"Host": "n1", "Score": 1.5}]', "Expected `int`"),
        (PRIORITIZE, b'[{"Host": "n1", "Score": "8"}]', "Expected `int`"),
        (PREEMPT, b'{"NodeNameToMetaVictims": {"n1": {"Pods": [7]}}}', "Expected `object`"),
        (BIND, b"fine!", "malformed"),
        (BIND, b"[" * 100_000, "Expected `object | null`"),
    ],
)
def test_an_invalid_answer_is_refused_with_the_actual_value(
    verb: ExtenderVerb, body: bytes, message: str
) -> None:
    with pytest.raises(NonsenseError, match=message.replace("|", r"\|")):
        decoded(verb, body, by_name=True)
