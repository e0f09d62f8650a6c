"""Helpful events: pods that begin or cease to match, and domains that appear or vanish."""

from collections.abc import Mapping
from typing import Any

import pytest

from bayplan.api.objects import SERVICE, ZONE_LABEL, Node
from bayplan.framework.events import QueueingHint
from bayplan.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    DefaultConstraint,
    PodTopologySpreadArgs,
)
from bayplan.plugins.pod_topology_spread.plugin import SpreadHints
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import (
    NO_DEFAULTS,
    RACK,
    SpreadCluster,
    app_pod,
    constraint,
    labelled_node,
    rules,
)

WAITING = app_pod("waiting", spread=[constraint()])
HINTS = SpreadHints(rules())
WEB, OTHER = {"app": "a"}, {"app": "b"}


def is_queue(answer: QueueingHint) -> bool:
    return answer is QueueingHint.QUEUE


def test_the_events_are_those_that_change_domains_or_counts() -> None:
    results = {e.event.resource: str(e.event.action) for e in HINTS.events()}
    assert results == {
        "AssignedPod": "Add|Delete|UpdatePodLabel",
        "TargetPod": "UpdatePodLabel|UpdatePodToleration",
        "Node": "Add|Delete|UpdateNodeLabel|UpdateNodeTaint",
    }
    assert all(entry.hint is not None for entry in HINTS.events())


# ---- other pods ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "worth_it"),
    [
        pytest.param(app_pod("x", "n1", labels=WEB), True, id="a pod that counts"),
        pytest.param(
            app_pod("x", labels=WEB, nominated="n1"), True, id="a nominated pod that will count"
        ),
        pytest.param(app_pod("x", labels=WEB), False, id="a pod without a node"),
        pytest.param(app_pod("x", "n1", labels=OTHER), False, id="a pod that does not match"),
        pytest.param(
            app_pod("x", "n1", labels=WEB, namespace="other"),
            False,
            id="a pod of another namespace",
        ),
    ],
)
def test_adding_or_deleting_a_pod_helps_if_the_pod_counts(other: PodInfo, worth_it: bool) -> None:
    assert is_queue(HINTS.after_pod(WAITING, None, other)) is worth_it
    assert is_queue(HINTS.after_pod(WAITING, other, None)) is worth_it


@pytest.mark.parametrize(
    ("before", "after", "worth_it"),
    [
        pytest.param(WEB, OTHER, True, id="ceases to match"),
        pytest.param(OTHER, WEB, True, id="begins to match"),
        pytest.param(WEB, WEB | {"tier": "x"}, False, id="matches as before"),
        pytest.param(OTHER, {}, False, id="does not match as before"),
    ],
)
def test_new_labels_help_if_the_pod_begins_or_ceases_to_match(
    before: Mapping[str, str], after: Mapping[str, str], worth_it: bool
) -> None:
    old, new = app_pod("x", "n1", labels=before), app_pod("x", "n1", labels=after)
    assert is_queue(HINTS.after_pod(WAITING, old, new)) is worth_it


def test_soft_constraints_reject_no_node_and_queue_no_pod() -> None:
    waiting = app_pod(spread=[constraint(action=SOFT)])
    assert not is_queue(HINTS.after_pod(waiting, None, app_pod("x", "n1", labels=WEB)))


def test_defaults_follow_the_current_services() -> None:
    default = DefaultConstraint(max_skew=1, topology_key=ZONE_LABEL, when_unsatisfiable=HARD)
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default,))
    world = SpreadCluster()
    hints, placed = SpreadHints(rules(args, world)), app_pod("x", "n1", labels=WEB)
    assert not is_queue(hints.after_pod(app_pod(), None, placed))
    world.put(SERVICE, "web", WEB)
    assert is_queue(hints.after_pod(app_pod(), None, placed))


# ---- the pod itself --------------------------------------------------------------------------


def test_own_labels_help_if_the_pod_begins_or_ceases_to_match_itself() -> None:
    old, new = app_pod("waiting", labels=WEB), app_pod("waiting", labels=OTHER)
    assert is_queue(HINTS.after_own_update(WAITING, old, new))
    assert not is_queue(HINTS.after_own_update(WAITING, old, old))


@pytest.mark.parametrize(("policy", "worth_it"), [("Honor", True), ("Ignore", False)])
def test_own_tolerations_help_if_taints_are_honoured(policy: str, worth_it: bool) -> None:
    spread = [constraint(nodeTaintsPolicy=policy)]
    old = app_pod("waiting", spread=spread)
    new = app_pod("waiting", spread=spread, tolerations=[{"key": "k", "operator": "Exists"}])
    assert is_queue(HINTS.after_own_update(new, old, new)) is worth_it
    assert not is_queue(HINTS.after_own_update(old, old, app_pod("waiting", tolerations=[])))


# ---- nodes -----------------------------------------------------------------------------------

ZONED, MOVED, BARE = labelled_node(zone="z1"), labelled_node(zone="z2"), labelled_node()
TAINTED, RACKED = (
    labelled_node(zone="z1", taints=["k"]),
    labelled_node(zone="z1", labels={RACK: "r"}),
)


@pytest.mark.parametrize(
    ("old", "new", "worth_it"),
    [
        pytest.param(None, ZONED, True, id="a node of a domain is added"),
        pytest.param(None, BARE, False, id="a node outside of all domains is added"),
        pytest.param(ZONED, None, True, id="a node of a domain is deleted"),
        pytest.param(BARE, None, False, id="a node outside of all domains is deleted"),
        pytest.param(ZONED, BARE, True, id="a node leaves its domain"),
        pytest.param(BARE, ZONED, True, id="a node joins a domain"),
        pytest.param(ZONED, MOVED, True, id="a node moves to another domain"),
        pytest.param(ZONED, TAINTED, True, id="taints of a node change"),
        pytest.param(
            BARE,
            labelled_node(taints=["k"]),
            False,
            id="taints of a node outside of all domains change",
        ),
        pytest.param(ZONED, RACKED, False, id="an unrelated label changes"),
    ],
)
def test_an_update_of_a_node_helps_if_its_domain_or_taints_change(
    old: Node | None, new: Node | None, worth_it: bool
) -> None:
    assert is_queue(HINTS.after_node(WAITING, old, new)) is worth_it


# ---- what does not parse ---------------------------------------------------------------------


def test_every_event_queues_a_pod_whose_constraint_does_not_parse() -> None:
    broken: dict[str, Any] = {"matchExpressions": [{"key": "app", "operator": "Foo"}]}
    waiting = app_pod(spread=[constraint(labelSelector=broken)])
    hints = SpreadHints(rules(NO_DEFAULTS))
    assert is_queue(hints.after_pod(waiting, None, app_pod("x", "n1", labels=OTHER)))
    assert is_queue(hints.after_own_update(waiting, waiting, waiting))
    assert is_queue(hints.after_node(waiting, None, BARE))
