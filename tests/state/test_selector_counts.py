"""Counters follow every placement, compared with a count of all pods one by one."""

from collections import Counter as Tally
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayplan.api.selectors import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    IN,
    NOT_IN,
    NOTHING,
    Requirement,
    Selector,
    map_selector,
)
from bayplan.state.domain_counts import INDEXED_KEYS_MAX, PodCounter, PodSet, SelectorCounts
from bayplan.state.pods import PodInfo
from bayplan.testing import pod

CAPACITY = 4


def pods_of(namespace: str | None, selector: Selector, **fields: Any) -> PodSet:
    return PodSet(None if namespace is None else frozenset((namespace,)), selector, **fields)


def counts(*placed: tuple[int, PodInfo], counters_max: int = 8) -> SelectorCounts:
    selector_counts = SelectorCounts(CAPACITY, counters_max)
    for row, each in placed:
        selector_counts.add(row, each)
    return selector_counts


def column(counts: SelectorCounts, pods: PodSet) -> list[int]:
    return counts.counts(pods).tolist()


WEB = map_selector({"app": "web"})
ANY_WEB = pods_of(None, WEB)


# ---- against counting one by one -----------------------------------------------------------

label_sets = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from("xyz"))
rows = st.integers(0, CAPACITY - 1)
namespaces = st.sampled_from(["a", "b"])
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(["app", "tier"]),
        st.sampled_from([IN, NOT_IN]),
        st.sampled_from([("x",), ("x", "y")]),
    ),
    st.builds(
        Requirement, st.sampled_from(["app", "tier"]), st.sampled_from([EXISTS, DOES_NOT_EXIST])
    ),
)
selectors = st.one_of(
    st.builds(lambda parts: Selector(tuple(parts)), st.lists(requirements, max_size=2)),
    st.just(NOTHING),
)
pod_sets = st.builds(
    PodSet, st.none() | st.frozensets(namespaces, max_size=2), selectors, st.booleans()
)


class Placements(RuleBasedStateMachine):
    """Pods are added and removed in any order. Counters are read at any time; few are cached."""

    cached_max = 3

    def __init__(self) -> None:
        super().__init__()
        self.capacity = CAPACITY
        self.counts = SelectorCounts(self.capacity, self.cached_max)
        self.placed: list[tuple[int, PodInfo]] = []
        self.cached: dict[PodSet, PodCounter] = {}  # least recently read first
        self.number = 0

    @rule(row=rows, namespace=namespaces, labels=label_sets, terminating=st.booleans())
    def add(self, row: int, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.number += 1
        name = f"p{self.number}"
        added = pod(name, namespace=namespace, labels=labels, terminating=terminating)
        self.counts.add(row, added)
        self.placed.append((row, added))

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.placed) - 1))
        self.counts.remove(*self.placed.pop(index))

    @rule(pods=pod_sets)
    def read(self, pods: PodSet) -> None:
        counter = self.counts.counter(pods)
        assert self.cached.pop(pods, counter) is counter
        self.cached[pods] = counter
        while len(self.cached) > self.cached_max:
            self.cached.pop(next(iter(self.cached)))

    @precondition(lambda self: self.capacity == CAPACITY)
    @rule()
    def grow(self) -> None:
        self.capacity *= 2
        self.counts.grow(self.capacity)

    @invariant()
    def cached_counters_are_right(self) -> None:
        for pods, counter in self.cached.items():
            tally = Tally(row for row, each in self.placed if matches(pods, each))
            assert counter.column.lent.tolist() == [tally[row] for row in range(self.capacity)]
            assert counter.total == tally.total()


def matches(pods: PodSet, each: PodInfo) -> bool:
    if each.is_terminating and not pods.with_terminating:
        return False
    named = pods.namespaces is None or each.namespace in pods.namespaces
    return named and pods.selector.matches(each.labels)


TestPlacements = Placements.TestCase


# ---- examples ------------------------------------------------------------------------------


def test_a_counter_that_was_dropped_is_current_when_it_is_read_again() -> None:
    web = pod("a", labels={"app": "web"})
    row_counts = counts((2, web), counters_max=1)
    left = row_counts.counter(ANY_WEB)
    row_counts.counter(pods_of(None, EVERYTHING))
    row_counts.add(3, web)
    row_counts.add(3, pod("b", labels={"app": "web", "tier": "front"}))
    assert left.column.lent.tolist() == [0, 0, 1, 0], "a counter that was dropped is not updated"
    assert column(row_counts, ANY_WEB) == [0, 0, 1, 2]


def test_counts_are_right_beyond_the_limit_of_indexed_labels() -> None:
    row_counts = counts((0, pod("a", labels={"app": "web"})), counters_max=1000)
    for number in range(2 * INDEXED_KEYS_MAX):
        assert not column(row_counts, pods_of("default", map_selector({f"key{number}": "v"})))[0]
    late = pod("b", labels={"app": "web", "key0": "v", f"key{2 * INDEXED_KEYS_MAX - 1}": "v"})
    row_counts.add(1, late)
    assert column(row_counts, pods_of("default", map_selector({"key0": "v"}))) == [0, 1, 0, 0]
    assert column(row_counts, pods_of("default", WEB)) == [1, 1, 0, 0]
    assert len(row_counts._namespaces["default"]._by_label) <= INDEXED_KEYS_MAX


def test_labels_that_no_pod_has_any_more_use_no_memory() -> None:
    web, other = pod("a", labels={"app": "web"}), pod("b")
    result = counts((0, web), (0, other))
    result.counter(pods_of("default", WEB))
    result.remove(0, web)
    assert not result._namespaces["default"].carrying(("app", "web"))
    result.remove(0, other)
    assert not result._namespaces
