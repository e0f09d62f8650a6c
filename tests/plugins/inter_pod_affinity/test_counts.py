"""Amounts by topology domain, compared with dictionaries."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.selectors import Selector
from bayplan.plugins.inter_pod_affinity.plugin import DomainCounts
from bayplan.state.cache import Cache
from bayplan.state.domain_counts import PodSet
from bayplan.state.nodes import NodeView
from bayplan.testing import node, pod

Zones = list[str | None]
ZONES: st.SearchStrategy[Zones] = st.lists(
    st.sampled_from([None, "z1", "z2", "z3"]), min_size=1, max_size=8
)


#: A selector of all pods.
ALL = PodSet(None, Selector())


def view(zones: Zones, amounts: list[int] | None = None) -> NodeView:
    """Nodes in zones, each with a number of pods."""
    cache = Cache()
    for index, zone in enumerate(zones):
        cache.add_node(node(f"n{index}", labels={"zone": zone} if zone else {}))
        for number in range(amounts[index] if amounts is not None else 0):
            cache.add_pod(pod(f"p{index}-{number}", node=f"n{index}"))
    return cache.lend().nodes


@given(zones=ZONES, data=st.data())
def test_each_node_gets_the_count_of_its_domain(zones: Zones, data: st.DataObject) -> None:
    count = len(zones)
    amounts = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    nodes, counts, expected = view(zones, amounts), DomainCounts(), Counter[str | None]()
    for _ in range(data.draw(st.integers(0, 3))):
        weight = data.draw(st.sampled_from([1, 5, -3]))
        counts.count(nodes, "zone", ALL, weight)
        for zone, amount in zip(zones, amounts, strict=True):
            expected[zone] += weight * amount if zone is not None else 0
    assert counts.of(nodes, "zone").tolist() == [expected[zone] for zone in zones]
    assert counts.present(nodes, "zone").tolist() == [expected[zone] > 0 for zone in zones]
    assert counts.is_empty is not any(expected.values())


def test_all_nodes_of_a_domain_have_an_amount_added_to_the_domain() -> None:
    nodes, counts = view(["z1", "z2", "z2", None]), DomainCounts()
    z2 = nodes.info(1).label_id("zone")
    counts.add("zone", z2, 2)
    counts.add("zone", nodes.info(3).label_id("zone"), 7)
    assert counts.of(nodes, "zone").tolist() == [0, 2, 2, 0]
    counts.add("zone", z2, -2)
    assert counts.is_empty
