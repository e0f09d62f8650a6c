"""Queueing hints of InterPodAffinity; the recorded ones are compared by the parity suite."""

from typing import Any

import pytest

from bayplan.api.objects import Node
from bayplan.framework.events import QueueingHint
from bayplan.plugins.inter_pod_affinity.plugin import Labels, after_assigned_pod, after_node
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
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


def on_a(labels: Labels | None = None, **more: Any) -> PodInfo:
    return pod("other", node="a", labels=labels or {}, **more)


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
        # A pod is added.
        pytest.param(near(term(WEB)), None, on_a(WEB), QUEUE, id="a matching pod is added"),
        pytest.param(near(term(WEB)), None, on_a(DB), SKIP, id="another pod is added"),
        pytest.param(
            near(term(WEB), term(FRONT)),
            None,
            on_a(WEB),
            SKIP,
            id="a pod that matches one of two terms is added",
        ),
        pytest.param(
            near(term(WEB), term(FRONT)),
            None,
            on_a(WEB | FRONT),
            QUEUE,
            id="a pod that matches both terms is added",
        ),
        pytest.param(
            away(term(WEB)), None, on_a(DB), SKIP, id="anti-affinity waits for no added pod"
        ),
        pytest.param(
            near(term(WEB)),
            None,
            pod("other", labels=WEB),
            SKIP,
            id="a pod without a node is added",
        ),
        # A pod is updated.
        pytest.param(near(term(WEB)), on_a(DB), on_a(WEB), QUEUE, id="the labels begin to match"),
        pytest.param(
            near(term(WEB)), on_a(WEB), on_a(WEB | FRONT), SKIP, id="the labels matched before"
        ),
        pytest.param(
            away(term(WEB)),
            on_a(WEB),
            on_a(DB),
            QUEUE,
            id="the labels cease to match anti-affinity",
        ),
        pytest.param(
            away(term(WEB), term(FRONT)),
            on_a(WEB),
            on_a(FRONT),
            SKIP,
            id="the labels match anti-affinity as before",
        ),
        # A pod is deleted.
        pytest.param(
            away(term(WEB)),
            on_a(WEB),
            None,
            QUEUE,
            id="a pod that matches anti-affinity is deleted",
        ),
        pytest.param(
            away(term(WEB), term(DB)),
            on_a(DB),
            None,
            QUEUE,
            id="a pod that matches one of two anti-affinity terms is deleted",
        ),
        pytest.param(
            near(term(WEB)), on_a(WEB), None, SKIP, id="a pod that matches affinity is deleted"
        ),
        pytest.param(
            pod("waiting", labels=WEB),
            on_a(DB, affinity=REFUSES_WEB),
            None,
            QUEUE,
            id="a pod whose anti-affinity matches is deleted",
        ),
        pytest.param(
            pod("waiting", labels=DB),
            on_a(DB, affinity=REFUSES_WEB),
            None,
            SKIP,
            id="a pod whose anti-affinity does not match is deleted",
        ),
        # Terms that do not parse.
        pytest.param(near(BROKEN), None, on_a(DB), QUEUE, id="the pod's own terms do not parse"),
        pytest.param(
            pod("waiting"),
            on_a(affinity={"podAffinity": {REQUIRED: [BROKEN]}}),
            None,
            QUEUE,
            id="the terms of the deleted pod do not parse",
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
def test_events_of_another_pod(
    waiting: PodInfo, old: PodInfo | None, new: PodInfo | None, hint: QueueingHint
) -> None:
    assert after_assigned_pod(waiting, old, new, labels_of) is hint


def test_a_nominated_pod_counts_on_its_node() -> None:
    nominated = pod("other", labels=WEB, nominated_node="a")
    assert after_assigned_pod(near(term(WEB)), None, nominated, labels_of) is QUEUE


def in_team_a(labels: dict[str, str]) -> PodInfo:
    return pod("other", node="a", namespace="team-a", labels=labels)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        pytest.param(
            near(term(WEB, namespaceSelector=TEAM_A)),
            None,
            in_team_a(WEB),
            QUEUE,
            id="a namespace that matches, which upstream misses",
        ),
        pytest.param(
            near(term(WEB, namespaceSelector=TEAM_A)),
            None,
            on_a(WEB),
            SKIP,
            id="a namespace that does not match",
        ),
        pytest.param(
            near(term(WEB, namespaceSelector={})), None, in_team_a(WEB), QUEUE, id="any namespace"
        ),
        pytest.param(
            near(term(WEB, namespaceSelector=NOT_TEAM_B)),
            None,
            on_a(WEB),
            QUEUE,
            id="a namespace that matches only without its labels, as upstream",
        ),
        pytest.param(
            away(term(WEB, namespaceSelector=TEAM_A)),
            in_team_a(WEB),
            in_team_a(DB),
            QUEUE,
            id="the labels cease to match in the namespace",
        ),
        pytest.param(
            away(term(WEB, namespaceSelector=TEAM_A)),
            in_team_a(WEB),
            None,
            QUEUE,
            id="the pod is deleted",
        ),
        pytest.param(
            pod("waiting", namespace="team-a", labels=WEB),
            on_a(affinity={"podAntiAffinity": {REQUIRED: [term(WEB, namespaceSelector=TEAM_A)]}}),
            None,
            QUEUE,
            id="a pod whose anti-affinity selects this pod's namespace is deleted",
        ),
    ],
)
def test_hints_read_the_labels_of_namespaces(
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
        pytest.param(NEAR, None, labelled(k="1"), QUEUE, id="a node of a domain is added"),
        pytest.param(NEAR, None, PLAIN, SKIP, id="a node outside of all domains is added"),
        pytest.param(NEAR, PLAIN, labelled(k="1"), QUEUE, id="a node joins a domain"),
        pytest.param(
            NEAR, labelled(k="1"), labelled(k="2"), QUEUE, id="a node moves to another domain"
        ),
        pytest.param(NEAR, labelled(k="1"), PLAIN, SKIP, id="a node leaves its domain"),
        pytest.param(NEAR, labelled(k="1"), labelled(k="1", x="1"), SKIP, id="another label"),
        pytest.param(AWAY, None, PLAIN, QUEUE, id="any added node may help anti-affinity"),
        pytest.param(
            AWAY, PLAIN, labelled(k="1"), SKIP, id="with anti-affinity a node joins a domain"
        ),
        pytest.param(
            AWAY, labelled(k="1"), PLAIN, QUEUE, id="with anti-affinity a node leaves its domain"
        ),
        pytest.param(
            AWAY,
            labelled(k="1"),
            labelled(k="2"),
            QUEUE,
            id="with anti-affinity a node changes its domain",
        ),
        pytest.param(
            AWAY,
            labelled(k="1"),
            labelled(k="1", x="1"),
            SKIP,
            id="with anti-affinity a node stays in its domain",
        ),
        pytest.param(pod("waiting"), None, labelled(k="1"), SKIP, id="a pod without terms"),
        pytest.param(near(BROKEN), None, PLAIN, QUEUE, id="terms that do not parse"),
    ],
)
def test_events_of_a_node(
    waiting: PodInfo, old: Node | None, new: Node, hint: QueueingHint
) -> None:
    assert after_node(waiting, old, new) is hint


def test_the_plugins_hints_use_its_namespaces() -> None:
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
