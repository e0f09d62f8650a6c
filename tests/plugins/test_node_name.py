"""NodeName: the node that a pod names. NodeNameOrder: the smallest name among equal nodes."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.plugins.node_name import NodeName
from bayplan.testing import node, pod
from tests.engine.kit import Engine, waiting_pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    lent,
)

PLUGIN = NodeName(None, NO_HANDLE)
NODES = [node("n1"), node("n2"), node("n3")]


@given(st.sampled_from(["", "n1", "n3", "ghost"]), st.lists(st.integers(0, 2), unique=True))
def test_selected_nodes_have_the_same_results_as_among_all_nodes(
    name: str, positions: list[int]
) -> None:
    assert filter_is_row_wise(PLUGIN, pod(node=name), lent(NODES), positions)


# ---- NodeNameOrder --------------------------------------------------------------------------


TIE_BREAK = {"enabled": [{"name": "NodeNameOrder"}]}


def test_among_equal_nodes_the_smallest_name_is_taken_whatever_the_seed() -> None:
    for seed in range(5):
        profile = {"plugins": {"multiPoint": _MULTI_POINT, "tieBreak": TIE_BREAK}}
        engine = Engine(seed=seed, profile=profile)
        engine.add(node("c"), node("a"), node("b"), waiting_pod())
        assert engine.bound() == {"p": "a"}
        (record,) = engine.attempts()
        assert (record.tied_count, record.tied_index) == (1, 0)
        [step] = record.tie_break
        assert (step.key, step.equal_count, step.left_count) == ("NodeNameOrder", 3, 1)
        assert record.scores[0].node == "a"


_MULTI_POINT = {
    "disabled": [{"name": "*"}],
    "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
}
