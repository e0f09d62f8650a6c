"""Queueing hints of InterPodAffinity; the recorded ones are compared by the parity suite."""

from typing import Any

import pytest

from bayplan.api.objects import Node
from bayplan.framework.events import QueueingHint
from bayplan.plugins.inter_pod_affinity.plugin import Labels, after_assigned_pod, after_node
from bayplan.state.pods import PodInfo
from tests.kit.objects import node, pod
from tests.plugins.affinity_kit import AffinityCluster
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP

WEB, FRONT, DB = {"app": "web"}, {"tier": "front"}, {"app": "db"}
TEAM_A = {"matchLabels": {"team": "a"}}
NOT_TEAM_B = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}


def near(*terms: dict[str, Any], **more: Any) -> PodInfo:
    return pod("waiting", affinity={"podAffinity": {REQUIRED: list(terms)}}, **more)


def away(*terms: dict[str, Any], **more: Any) -> PodInfo:
    return pod("waiting", affinity={"podAntiAffinity": {REQUIRED: list(terms)}}, **more)


def on_a(labels: dict[str, str] | None = None, **more: Any) -> PodInfo:
    return pod("other", "a", labels=labels, **more)


TEAMS = {"default": {"team": "b"}, "team-a": {"team": "a"}}


def labels_of(namespace: str) -> Labels:
    return TEAMS.get(namespace, {})


REFUSES_WEB = {"podAntiAffinity": {REQUIRED: [term(WEB)]}}
BROKEN = {
    "topologyKey": "k",
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]},
}


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        # A pod came.
        pytest.param(near(term(WEB)), None, on_a(WEB), QUEUE, id="a wanted pod came"),
        pytest.param(near(term(WEB)), None, on_a(DB), SKIP, id="another pod came"),
        pytest.param(
            near(term(WEB), term(FRONT)), None, on_a(WEB), SKIP, id="it must match all terms"
        ),
        pytest.param(
            near(term(WEB), term(FRONT)), None, on_a(WEB | FRONT), QUEUE, id="and now it does"
        ),
        pytest.param(away(term(WEB)), None, on_a(DB), SKIP, id="who keeps away waits for none"),
        pytest.param(near(term(WEB)), None, pod("other", labels=WEB), SKIP, id="it has no node"),
        # A pod changed.
        pytest.param(near(term(WEB)), on_a(DB), on_a(WEB), QUEUE, id="it begins to match"),
        pytest.param(near(term(WEB)), on_a(WEB), on_a(WEB | FRONT), SKIP, id="it matched before"),
        pytest.param(away(term(WEB)), on_a(WEB), on_a(DB), QUEUE, id="it ceases to be unwanted"),
        pytest.param(
            away(term(WEB), term(FRONT)), on_a(WEB), on_a(FRONT), SKIP, id="unwanted otherwise"
        ),
        # A pod left.
        pytest.param(away(term(WEB)), on_a(WEB), None, QUEUE, id="an unwanted pod left"),
        pytest.param(away(term(WEB), term(DB)), on_a(DB), None, QUEUE, id="any term will do"),
        pytest.param(near(term(WEB)), on_a(WEB), None, SKIP, id="a wanted pod left"),
        pytest.param(
            pod("waiting", labels=WEB), on_a(DB, affinity=REFUSES_WEB), None, QUEUE, id="refuser"
        ),
        pytest.param(
            pod("waiting", labels=DB), on_a(DB, affinity=REFUSES_WEB), None, SKIP, id="of others"
        ),
        # What does not parse.
        pytest.param(near(BROKEN), None, on_a(DB), QUEUE, id="the pod's own terms are unclear"),
        pytest.param(
            pod("waiting"),
            on_a(affinity={"podAffinity": {REQUIRED: [BROKEN]}}),
            None,
            QUEUE,
            id="those of the pod that left are",
        ),
        pytest.param(
            pod("waiting", affinity={"podAffinity": {PREFERRED: [weighted(1, BROKEN)]}}),
            None,
            on_a(DB),
            SKIP,
            id="preferred terms do not matter",
        ),
    ],
)
def test_another_pod(
    waiting: PodInfo, old: PodInfo | None, new: PodInfo | None, hint: QueueingHint
) -> None:
    assert after_assigned_pod(waiting, old, new, labels_of) is hint


def test_a_nomination_is_a_place() -> None:
    nominated = pod("other", labels=WEB, nominated_node="a")
    assert after_assigned_pod(near(term(WEB)), None, nominated, labels_of) is QUEUE


def in_team_a(labels: dict[str, str]) -> PodInfo:
    return pod("other", "a", namespace="team-a", labels=labels)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        pytest.param(
            near(term(WEB, namespaceSelector=TEAM_A)),
            None,
            in_team_a(WEB),
            QUEUE,
            id="a namespace that really matches: upstream misses it",
        ),
        pytest.param(
            near(term(WEB, namespaceSelector=TEAM_A)), None, on_a(WEB), SKIP, id="one that does not"
        ),
        pytest.param(
            near(term(WEB, namespaceSelector={})), None, in_team_a(WEB), QUEUE, id="any namespace"
        ),
        pytest.param(
            near(term(WEB, namespaceSelector=NOT_TEAM_B)),
            None,
            on_a(WEB),
            QUEUE,
            id="one that matches only without its labels: as upstream",
        ),
        pytest.param(
            away(term(WEB, namespaceSelector=TEAM_A)),
            in_team_a(WEB),
            in_team_a(DB),
            QUEUE,
            id="it ceases to be unwanted there",
        ),
        pytest.param(
            away(term(WEB, namespaceSelector=TEAM_A)), in_team_a(WEB), None, QUEUE, id="it left"
        ),
        pytest.param(
            pod("waiting", namespace="team-a", labels=WEB),
            on_a(affinity={"podAntiAffinity": {REQUIRED: [term(WEB, namespaceSelector=TEAM_A)]}}),
            None,
            QUEUE,
            id="who refused this pod's namespace left",
        ),
    ],
)
def test_namespaces_are_asked_for_their_labels(
    waiting: PodInfo, old: PodInfo | None, new: PodInfo | None, hint: QueueingHint
) -> None:
    assert after_assigned_pod(waiting, old, new, labels_of) is hint


PLAIN = node("n")


def labelled(**labels: str) -> Node:
    return node("n", labels=labels)


NEAR, AWAY = near(term(WEB, key="k")), away(term(WEB, key="k"))


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        pytest.param(NEAR, None, labelled(k="1"), QUEUE, id="a node in a wanted domain came"),
        pytest.param(NEAR, None, PLAIN, SKIP, id="a node outside came"),
        pytest.param(NEAR, PLAIN, labelled(k="1"), QUEUE, id="it joins a wanted domain"),
        pytest.param(NEAR, labelled(k="1"), labelled(k="2"), QUEUE, id="it moves to another"),
        pytest.param(NEAR, labelled(k="1"), PLAIN, SKIP, id="it leaves"),
        pytest.param(NEAR, labelled(k="1"), labelled(k="1", x="1"), SKIP, id="another label"),
        pytest.param(AWAY, None, PLAIN, QUEUE, id="any node may take who keeps away"),
        pytest.param(AWAY, PLAIN, labelled(k="1"), SKIP, id="it joins a domain"),
        pytest.param(AWAY, labelled(k="1"), PLAIN, QUEUE, id="it leaves the domain"),
        pytest.param(AWAY, labelled(k="1"), labelled(k="2"), QUEUE, id="it changes domains"),
        pytest.param(AWAY, labelled(k="1"), labelled(k="1", x="1"), SKIP, id="it stays"),
        pytest.param(pod("waiting"), None, labelled(k="1"), SKIP, id="a pod without terms"),
        pytest.param(near(BROKEN), None, PLAIN, QUEUE, id="what does not parse"),
    ],
)
def test_a_node(waiting: PodInfo, old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert after_node(waiting, old, new) is hint


def test_the_plugin_asks_with_its_namespaces() -> None:
    plugin = AffinityCluster([node("a")], namespaces=TEAMS).plugin()
    assigned, own, nodes = (registered.hint for registered in plugin.events_to_register())
    assert assigned is not None
    assert own is not None
    assert nodes is not None
    waiting = near(term(WEB, namespaceSelector=TEAM_A))
    assert assigned(waiting, None, in_team_a(WEB)) is QUEUE
    assert assigned(waiting, None, on_a(WEB)) is SKIP
    assert own(pod("waiting", labels=WEB), pod("waiting"), pod("waiting", labels=WEB)) is QUEUE
    assert nodes(AWAY, None, PLAIN) is QUEUE
