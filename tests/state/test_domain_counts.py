"""Pods by domain equal a new count, after any sequence of changes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.selectors import Selector
from bayplan.state.cache import Cache
from bayplan.state.domain_counts import DomainTables, PodSet
from bayplan.testing import node, pod

ALL = PodSet(None, Selector())
NODES = [f"n{number}" for number in range(5)]
ZONES = st.sampled_from([None, "z1", "z2", "z3"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES), ZONES),
        st.tuples(st.just("gone"), st.sampled_from(NODES), st.none()),
        st.tuples(st.just("pod"), st.sampled_from(NODES), st.none()),
        st.tuples(st.just("left"), st.sampled_from(NODES), st.none()),
        st.tuples(st.just("check"), st.just(""), st.none()),
    ),
    max_size=60,
)


class CountedCluster:
    """A cluster with its expected counts."""

    def __init__(self) -> None:
        self.cache = Cache(capacity=2)
        self.zones: dict[str, str | None] = {}
        self.uids: dict[str, list[str]] = {name: [] for name in NODES}
        self.made_count = 0

    def step(self, what: str, name: str, zone: str | None) -> None:
        cache, new_node = self.cache, node(name or "x", labels={"zone": zone} if zone else {})
        if what == "node":
            (cache.update_node if name in self.zones else cache.add_node)(new_node)
            self.zones[name] = zone
        elif what == "gone" and name in self.zones:
            cache.remove_node(name)
            del self.zones[name]
        elif what == "pod":
            self.made_count += 1
            made = pod(f"p{self.made_count}", node=name)
            cache.add_pod(made)
            self.uids[name].append(made.uid)
        elif what == "left" and self.uids[name]:
            cache.remove_pod(self.uids[name].pop())
        elif what == "check":
            self.check()

    def check(self) -> None:
        expected = Counter[str]()
        for name, zone in self.zones.items():
            if zone is not None:
                expected[zone] += len(self.uids[name])
        snapshot = self.cache.lend()
        nodes = snapshot.nodes
        result = nodes.pods.by_domain(ALL, "zone")
        values = nodes.labels.values("zone")
        snapshot.end()
        totals = {} if result is None else dict(zip(values, result.tolist(), strict=False))
        assert +Counter(totals) == +expected
        assert result is None or (result[-1] == 0 and len(result) == len(values) + 1)


@given(STEPS)
def test_domains_count_their_pods_after_any_sequence_of_changes(
    steps: list[tuple[str, str, str | None]],
) -> None:
    world = CountedCluster()
    for step in steps:
        world.step(*step)
    world.check()


def test_many_changes_at_once_are_counted_together() -> None:
    world = CountedCluster()
    world.step("node", "n1", "z1")
    world.check()
    for _ in range(200):
        world.step("pod", "n1", None)
    for number in range(100):
        world.cache.add_node(node(f"more{number}", labels={"zone": "z2"}))
        world.zones[f"more{number}"] = "z2"
        world.uids[f"more{number}"] = []
    world.check()


def test_writing_to_a_returned_array_does_not_change_the_counts() -> None:
    world = CountedCluster()
    world.step("node", "n1", "z1")
    world.step("pod", "n1", None)
    nodes = world.cache.lend().nodes
    result = nodes.pods.by_domain(ALL, "zone")
    assert result is not None
    result += 7
    again = nodes.pods.by_domain(ALL, "zone")
    assert again is not None
    assert again.tolist() == [1, 0]


@pytest.mark.parametrize("tables_max", [1, 2])
def test_the_least_recently_used_table_is_dropped(tables_max: int) -> None:
    world = CountedCluster()
    world.step("node", "n1", "z1")
    world.step("pod", "n1", None)
    table = world.cache.table
    tables = DomainTables(tables_max)
    column = table.selector_counts.counter(ALL).column
    for what in "abcab":
        result = tables.of(what, table.log, column, table.label_column("zone"))
        assert result is not None
        assert result.tolist() == [1, 0]
    assert len(tables) == tables_max
