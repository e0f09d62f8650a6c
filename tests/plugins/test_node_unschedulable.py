"""NodeUnschedulable compared with a plain rule; tests/parity has recorded answers and hints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import ActionType, QueueingHint
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.testing import node, pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    lent,
    rejected,
    unresolvable,
)

PLUGIN = NodeUnschedulable(None, NO_HANDLE)
REASON = "node(s) were unschedulable"
KEY = "node.kubernetes.io/unschedulable"


@given(
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.booleans(),
    st.lists(st.integers(0, 7), unique=True),
)
def test_exactly_the_cordoned_nodes_are_rejected(
    cordoned: list[bool], tolerated: bool, expected_value: list[int]
) -> None:
    nodes = lent(node(f"n{i}", unschedulable=closed) for i, closed in enumerate(cordoned))
    who = pod(tolerations=[{"key": KEY, "operator": "Exists"}] if tolerated else [])
    expected = [f"n{i}" for i, closed in enumerate(cordoned) if closed and not tolerated]
    assert rejected(PLUGIN, who, nodes) == unresolvable(expected, REASON)
    assert filter_is_row_wise(PLUGIN, who, nodes, [p for p in expected_value if p < len(nodes)])


# ---- hints ---------------------------------------------------------------------------------

QUEUE, QUEUE_SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP


@pytest.mark.parametrize(("key", "expected"), [(KEY, QUEUE), ("other", QUEUE_SKIP)])
def test_a_new_toleration_helps_if_it_tolerates_the_taint(key: str, expected: QueueingHint) -> None:
    new = pod(tolerations=[{"key": key, "operator": "Exists"}])
    event = ("TargetPod", ActionType.UPDATE_POD_TOLERATION)
    assert hint(PLUGIN, event, new, pod(), new) is expected


def test_the_signature_tells_whether_the_taint_is_tolerated() -> None:
    foreign = pod(tolerations=[{"key": "x", "operator": "Exists"}])
    tolerating = pod(tolerations=[{"key": KEY, "operator": "Exists"}])
    everything = pod(tolerations=[{"operator": "Exists"}])
    assert PLUGIN.sign_pod(foreign) == PLUGIN.sign_pod(pod())
    assert PLUGIN.sign_pod(tolerating) != PLUGIN.sign_pod(pod())
    assert PLUGIN.sign_pod(tolerating) == PLUGIN.sign_pod(everything)
