"""NodeNameOrder: among equals the smallest name."""

from bayplan.framework.cycle_state import CycleState
from bayplan.plugins.node_name import NodeNameOrder
from bayplan.testing import SampleCluster, node, plugin, pod
from tests.engine.kit import Engine, waiting_pod

TIE_BREAK = {"enabled": [{"name": "NodeNameOrder"}]}


def first_of(*names: str, positions: list[int] | None = None) -> str:
    found = SampleCluster().add(*map(node, names))
    nodes = found.lend().nodes
    if positions is not None:
        nodes = nodes.take(positions)
    key = plugin(NodeNameOrder, cluster=found).tie_break(CycleState(), pod(), nodes)
    assert sorted(key.tolist()) == [0] * (len(nodes) - 1) + [1]
    return nodes.name(int(key.argmax()))


def test_names_are_compared_letter_by_letter() -> None:
    assert first_of("node-9", "node-10", "node-2") == "node-10"
    assert first_of("b", "a", "c", positions=[2, 0]) == "b"


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
