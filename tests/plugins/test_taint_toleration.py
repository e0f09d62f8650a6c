"""TaintToleration compared with a plain rule, and its hints; tests/parity has recorded answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import Node
from bayplan.framework.events import ActionType, QueueingHint
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.testing import node, pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    lent,
    rejected,
    score_is_row_wise,
    scored,
    unresolvable,
)

PLUGIN = TaintToleration(None, NO_HANDLE)
REASON = "node(s) had untolerated taint(s)"


def taint(key: str, effect: str = "NoSchedule", value: str | None = None) -> dict[str, Any]:
    return {"key": key, "value": value, "effect": effect}


# ---- the plain rule ----------------------------------------------------------------


def covers(toleration: dict[str, Any], each: dict[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", each["effect"]):
        return False
    if toleration.get("key") not in (None, "", each["key"]):
        return False
    operator = toleration.get("operator") or "Equal"
    same_value = (toleration.get("value") or "") == (each["value"] or "")
    return operator == "Exists" or (operator == "Equal" and same_value)


def untolerated(taints: list[Any], tolerations: list[Any], effects: set[str]) -> int:
    return sum(
        each["effect"] in effects and not any(covers(t, each) for t in tolerations)
        for each in taints
    )


HARD, SOFT = {"NoSchedule", "NoExecute"}, {"PreferNoSchedule"}
OPTIONAL = st.sampled_from([None, "", "a", "b"])
TAINTS = st.builds(
    taint,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "Unheard"]),
    OPTIONAL,
)
TOLERATIONS = st.fixed_dictionaries(
    {
        "key": OPTIONAL,
        "operator": st.sampled_from([None, "", "Equal", "Exists", "Gt"]),
        "value": OPTIONAL,
        "effect": st.sampled_from([None, "", "NoSchedule", "PreferNoSchedule"]),
    }
)
CLUSTERS = st.lists(st.lists(TAINTS, max_size=3), min_size=1, max_size=8)
POSITIONS = st.lists(st.integers(0, 7), unique=True)


@given(CLUSTERS, st.lists(TOLERATIONS, max_size=3), POSITIONS)
def test_the_result_for_all_nodes_equals_the_rule_for_each_node(
    cluster: list[list[Any]], tolerations: list[Any], expected: list[int]
) -> None:
    nodes = lent(node(f"n{i}", taints=taints) for i, taints in enumerate(cluster))
    who, positions = pod(tolerations=tolerations), [p for p in expected if p < len(nodes)]
    hard = [f"n{i}" for i, each in enumerate(cluster) if untolerated(each, tolerations, HARD)]
    assert rejected(PLUGIN, who, nodes) == unresolvable(hard, REASON)
    assert scored(PLUGIN, who, nodes) == {
        f"n{i}": untolerated(each, tolerations, SOFT) for i, each in enumerate(cluster)
    }
    assert filter_is_row_wise(PLUGIN, who, nodes, positions)
    assert score_is_row_wise(PLUGIN, who, nodes, positions)


# ---- hints ---------------------------------------------------------------------------------

QUEUE, QUEUE_SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
OPEN, CLOSED = node(), node(taints=[taint("a")])
SOFTLY = node(taints=[taint("a", "PreferNoSchedule")])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, OPEN, QUEUE, id="a node without taints was added"),
        pytest.param(None, SOFTLY, QUEUE, id="a node with a soft taint was added"),
        pytest.param(None, CLOSED, QUEUE_SKIP, id="a tainted node was added"),
        pytest.param(CLOSED, OPEN, QUEUE, id="the taint was removed"),
        pytest.param(OPEN, SOFTLY, QUEUE_SKIP, id="no taint before and after"),
        pytest.param(OPEN, CLOSED, QUEUE_SKIP, id="the taint was added"),
        pytest.param(CLOSED, CLOSED, QUEUE_SKIP, id="tainted before and after"),
        pytest.param(node(unschedulable=True), OPEN, QUEUE_SKIP, id="a node was uncordoned"),
    ],
)
def test_events_of_nodes_that_queue_the_pod(
    old: Node | None, new: Node, expected: QueueingHint
) -> None:
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_TAINT
    assert hint(PLUGIN, ("Node", action), pod(), old, new) is expected


def test_a_tainted_node_queues_pods_that_tolerate_the_taint() -> None:
    who = pod(tolerations=[{"key": "a", "operator": "Exists"}])
    assert hint(PLUGIN, ("Node", ActionType.ADD), who, None, CLOSED) is QUEUE


# ---- signature -----------------------------------------------------------------------------


@given(CLUSTERS, st.lists(TOLERATIONS, max_size=3), st.lists(TOLERATIONS, max_size=3))
def test_equal_signatures_mean_equal_answers(
    cluster: list[list[Any]], one: list[Any], other: list[Any]
) -> None:
    pods = pod(tolerations=one), pod(tolerations=[*reversed(one), *other])
    nodes = lent(node(f"n{i}", taints=taints) for i, taints in enumerate(cluster))
    if PLUGIN.sign_pod(pods[0]) == PLUGIN.sign_pod(pods[1]):
        assert rejected(PLUGIN, pods[0], nodes) == rejected(PLUGIN, pods[1], nodes)
        assert scored(PLUGIN, pods[0], nodes) == scored(PLUGIN, pods[1], nodes)
