"""The cache: objects of the API and assumed pods, compared with a model that counts pod by pod.

The loan of a cycle, and what-ifs over it. Rows F-044, F-045 and F-047 of the checklist.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from bayplan.api.objects import ZONE_LABEL, Node
from bayplan.state.cache import Cache, NodeNotFound, Snapshot
from bayplan.state.change_log import ChangeLog, Facet
from bayplan.state.nodes import LoanEnded
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted
from tests.state.cluster_model import (
    Model,
    Values,
    by_facet,
    expected,
    expected_draw_order,
    values_of_nodes,
)

# ---- a pod's life ------------------------------------------------------------------------------


def cache_of(*names: str) -> Cache:
    cache = Cache()
    for name in names:
        cache.add_node(node(name))
    return cache


def requested(cache: Cache) -> dict[str, int]:
    """Node name → millicores that its pods request."""
    snapshot = cache.lend()
    amounts = dict(
        zip(snapshot.nodes.names(), snapshot.nodes.requested("cpu").tolist(), strict=True)
    )
    snapshot.end()
    return amounts


def test_a_pod_confirmed_meanwhile_is_not_forgotten() -> None:
    cache = cache_of("a")
    assumed = pod("p", node="a", requests={"cpu": 2})
    cache.assume(assumed)
    cache.add_pod(assumed)
    cache.forget(assumed)
    assert requested(cache) == {"a": 2000}


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"labels": {"x": "1"}}, True, id="labels"),
        pytest.param({"requests": {"cpu": 1}}, True, id="requests"),
        pytest.param({"terminating": True}, True, id="a deletion timestamp"),
    ],
)
def test_an_update_changes_the_row_where_something_counted_changed(
    after: dict[str, Any], changes: bool
) -> None:
    cache = cache_of("a")
    cache.add_pod(pod("p", node="a"))
    generation = cache.table.log.generation
    update = pod("p", node="a", **after)
    cache.update_pod(update)
    assert (cache.table.log.generation > generation) is changes
    assert cache.pod(update.uid) is update


def test_the_error_for_an_invalid_request_names_the_pod() -> None:
    cache = cache_of("a")
    cache.assume(pod("p", node="a"))
    with pytest.raises(AssertionError, match=r"default/p.* already placed"):
        cache.assume(pod("p", node="a"))
    with pytest.raises(AssertionError, match=r"default/q.* not placed"):
        cache.update_pod(pod("q", node="a"))


def test_during_a_loan_events_are_refused_but_the_cycle_may_assume_and_forget() -> None:
    cache = cache_of("a")
    placed, assumed = pod("p", node="a"), pod("q", node="a")
    cache.add_pod(placed)
    snapshot = cache.lend()
    events = (
        lambda: cache.add_node(node("b")),
        lambda: cache.update_node(node("a")),
        lambda: cache.remove_node("a"),
        lambda: cache.add_pod(pod("r", node="a")),
        lambda: cache.update_pod(placed),
        lambda: cache.remove_pod(placed.uid),
        cache.lend,
    )
    for event in events:
        with pytest.raises(AssertionError, match="while it is lent"):
            event()
    cache.assume(assumed)
    assert [each.name for each in snapshot.node("a").pods] == ["p", "q"]
    cache.forget(assumed)
    assert [each.name for each in snapshot.node("a").pods] == ["p"]


# ---- everything, in any order ------------------------------------------------------------------

NODE_NAMES = [f"n{index}" for index in range(3)]
POD_NAMES = [f"p{index}" for index in range(8)]
#: So short that some readers are older than the log.
LOG_LENGTH = 12


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["taints"] = [{"key": draw(st.sampled_from("kl")), "effect": "NoSchedule"}]
    if draw(st.booleans()):
        spec["unschedulable"] = True
    return node(
        name,
        labels=draw(st.sampled_from([{}, {ZONE_LABEL: "za"}, {ZONE_LABEL: "zb", "disk": "ssd"}])),
        allocatable=draw(st.sampled_from([{}, {"cpu": "4"}, {"example.com/gpu": 2}])),
        images=draw(st.sampled_from([{}, {"i": 5}, {"i": 6, "j": 1}])),
        **spec,
    )


WEB = {"app": "web"}
HOST_PORTS = [[], [80], [{"hostPort": 80, "hostIP": "10.0.0.1"}]]
AFFINITIES: list[dict[str, Any] | None] = [
    None,
    {"podAntiAffinity": {REQUIRED: [term(WEB), term(WEB)]}},
    {"podAffinity": {REQUIRED: [term(WEB)], PREFERRED: [weighted(5, term({}))]}},
]


@st.composite
def pods(draw: st.DrawFn, name: str, on: str) -> PodInfo:
    return pod(
        name,
        node=on,
        namespace="default",
        labels=draw(st.sampled_from([{}, WEB, {"app": "db"}])),
        requests=draw(st.sampled_from([{}, {"cpu": "300m"}, {"cpu": 1, "example.com/gpu": 1}])),
        affinity=draw(st.sampled_from(AFFINITIES)),
        terminating=draw(st.booleans()),
        host_ports=draw(st.sampled_from(HOST_PORTS)),
    )


def has_equal_counts(one: PodInfo, other: PodInfo) -> bool:
    """Whether two versions of a pod have the same values in every column."""
    return (one.node_name, one.labels, one.spec, one.is_terminating) == (
        other.node_name,
        other.labels,
        other.spec,
        other.is_terminating,
    )


NAMES = st.sampled_from(NODE_NAMES)
#: A placed pod may name a node that was never added.
PLACES = st.sampled_from([*NODE_NAMES, "ghost"])


class CacheMachine(RuleBasedStateMachine):
    """The cache and the model get the same events and must always have the same values."""

    @initialize(capacity=st.sampled_from([1, 2, 64]))
    def start(self, capacity: int) -> None:
        self.cache = Cache(capacity)
        table = self.cache.table
        table.log = ChangeLog(table._row_generations, LOG_LENGTH)
        self.model = Model()
        #: Generation → facet → node name → column → value at that generation.
        self.facet_values: dict[int, dict[Facet, dict[str, Values]]] = {0: by_facet({})}
        self.rows: dict[str, int] = {}
        self.new_count = 0

    # ---- nodes ----

    @rule(name=NAMES, data=st.data())
    def add_or_update_node(self, name: str, data: st.DataObject) -> None:
        drawn = data.draw(nodes(name))
        if name in self.model.nodes:
            self.cache.update_node(drawn)
        else:
            self.cache.add_node(drawn)
        self.model.nodes.pop(name, None)
        self.model.nodes[name] = drawn

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.nodes)))
        self.cache.remove_node(name)
        del self.model.nodes[name], self.rows[name]

    # ---- pods ----

    @rule(name=st.sampled_from(POD_NAMES), place=PLACES, data=st.data())
    def pod_from_the_api(self, name: str, place: str, data: st.DataObject) -> None:
        drawn = data.draw(pods(name, place))
        old = self.model.pods.get(drawn.uid)
        if old is None or data.draw(st.booleans()):
            self.cache.add_pod(drawn)
        else:
            self.cache.update_pod(drawn)
        self.model.assumed.discard(drawn.uid)
        if old is not None and has_equal_counts(old, drawn):
            self.model.pods[drawn.uid] = drawn  # its position among its node's pods does not change
        else:
            self.model.place(drawn)

    @rule(places=st.lists(PLACES, max_size=20), copies=st.integers(1, 5), data=st.data())
    def new_pods_from_the_api(self, places: list[str], copies: int, data: st.DataObject) -> None:
        many: list[PodInfo] = []
        for place in places:
            drawn = data.draw(pods("many", place))
            for _ in range(copies):
                self.new_count += 1
                key = f"default/many-{self.new_count}"
                many.append(replace(drawn, key=key, uid=f"uid-{key}"))
        self.cache.add_pods(many)
        for each in many:
            self.model.place(each)

    @rule(name=st.sampled_from(POD_NAMES), place=PLACES, data=st.data())
    def assume(self, name: str, place: str, data: st.DataObject) -> None:
        drawn = data.draw(pods(name, place))
        if drawn.uid not in self.model.pods:
            self.cache.assume(drawn)
            self.model.place(drawn)
            self.model.assumed.add(drawn.uid)

    @precondition(lambda self: self.model.pods)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.model.pods)))
        self.cache.forget(self.model.pods[uid])
        if uid in self.model.assumed:
            self.model.assumed.discard(uid)
            del self.model.pods[uid]

    @precondition(lambda self: self.model.pods)
    @rule(labels=st.sampled_from([{}, WEB, {"app": "db"}]), data=st.data())
    def a_pod_gets_labels(self, labels: dict[str, str], data: st.DataObject) -> None:
        old = self.model.pods[data.draw(st.sampled_from(sorted(self.model.pods)))]
        new = replace(old, shape=old.shape.with_labels(labels, None))
        self.cache.add_pod(new)
        self.model.assumed.discard(old.uid)
        self.model.pods[old.uid] = new

    @precondition(lambda self: self.model.assumed)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.model.assumed)))
        self.cache.add_pod(self.model.pods[uid])
        self.model.assumed.discard(uid)

    @rule(name=st.sampled_from(POD_NAMES))
    def remove_pod(self, name: str) -> None:
        uid = f"uid-default/{name}"
        assert self.cache.remove_pod(uid) is self.model.pods.pop(uid, None)
        self.model.assumed.discard(uid)

    # ---- what-ifs ----

    @rule(data=st.data(), count=st.integers(1, 5))
    def trial(self, data: st.DataObject, count: int) -> None:
        what_if = self.model.copy()
        snapshot = self.cache.lend()
        with snapshot.trial() as trial:
            for index in range(count):
                placed = [p for p in what_if.pods.values() if p.node_name in what_if.nodes]
                if placed and data.draw(st.booleans()):
                    gone = data.draw(st.sampled_from(placed))
                    trial.remove(gone)
                    del what_if.pods[gone.uid]
                elif what_if.nodes:
                    drawn = data.draw(pods(f"tried-{index}", ""))
                    name = data.draw(st.sampled_from(sorted(what_if.nodes)))
                    what_if.place(trial.assume(drawn, name))
            assert values_of_nodes(snapshot.nodes) == expected(what_if)
        snapshot.end()

    # ---- invariants ----

    @invariant()
    def columns_have_the_values_of_the_model(self) -> None:
        snapshot = self.cache.lend()
        nodes = snapshot.nodes
        columns = values_of_nodes(nodes)
        assert columns == expected(self.model)
        assert [nodes.name(i) for i in nodes.table.draw_order()] == expected_draw_order(self.model)
        order = np.arange(len(nodes))[::-2]
        assert values_of_nodes(nodes.take(order)) == {
            nodes.name(i): columns[nodes.name(i)] for i in order
        }
        snapshot.end()
        self.facet_values[self.cache.table.log.generation] = by_facet(columns)

    @invariant()
    def the_row_of_a_node_does_not_change(self) -> None:
        rows = {name: self.cache.table.row_of[name] for name in self.model.nodes}
        assert {name: rows[name] for name in self.rows} == self.rows
        assert len(set(self.cache.table.row_of.values())) == len(self.cache.table.row_of)
        self.rows = rows

    @invariant()
    def every_row_has_a_node_or_pods(self) -> None:
        node_names = set(self.model.nodes) | {pod.node_name for pod in self.model.pods.values()}
        assert set(self.cache.table.row_of) == node_names

    @invariant()
    def pods_and_assumptions_are_those_of_the_model(self) -> None:
        assert {each.uid: each for each in self.cache.pods()} == self.model.pods
        assert self.cache.assumed_count == len(self.model.assumed)
        assert all(self.cache.is_assumed(uid) for uid in self.model.assumed)

    @invariant()
    def the_log_names_every_row_that_changed(self) -> None:
        log, row_of = self.cache.table.log, self.cache.table.row_of
        now = self.facet_values[log.generation]
        for since, before in self.facet_values.items():
            for facet, parts in now.items():
                rows = set(log.rows_since(since, facet).tolist())
                changed = {name for name in parts if parts[name] != before[facet].get(name)}
                assert {row_of[name] for name in changed} <= rows, (since, facet)

    @invariant()
    def generations_never_go_back(self) -> None:
        newest = max(self.facet_values)
        table = self.cache.table
        assert table.log.generation >= newest
        for name in self.model.nodes:
            assert 0 < table.generation_of(table.row_of[name]) <= table.log.generation

    def teardown(self) -> None:
        """A new cache with the same objects, without holes and history, has the same values."""
        fresh = Cache()
        for each in self.model.nodes.values():
            fresh.add_node(each)
        for placed in self.model.pods.values():
            fresh.add_pod(placed)
        assert values_of_nodes(fresh.lend().nodes) == values_of_nodes(self.cache.lend().nodes)


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=30)


# ---- snapshot -------------------------------------------------------------------------------


AWAY = {"podAntiAffinity": {REQUIRED: [term({"app": "web"})]}}


def pods_on(snapshot: Snapshot, name: str) -> list[str]:
    return [each.name for each in snapshot.node(name).pods]


def test_nodes_are_looked_up_by_name_and_a_name_without_a_node_has_none() -> None:
    cache = cache_of("a", "b")
    cache.add_pod(pod("p", node="ghost"))
    snapshot = cache.lend()
    assert (snapshot.node("b").name, snapshot.node_count) == ("b", 2)
    for ghost in ("ghost", "never"):
        with pytest.raises(NodeNotFound, match=ghost):
            snapshot.node(ghost)


def test_nodes_with_affinity_are_listed() -> None:
    """F-045"""
    cache = cache_of("n1", "n2")
    placed = pod("p", node="n2", affinity=AWAY)
    cache.add_pod(placed)
    snapshot = cache.lend()
    assert snapshot.rows_with_affinity.tolist() == [1]
    assert snapshot.rows_with_required_anti_affinity.tolist() == [1]
    snapshot.end()
    cache.remove_pod(placed.uid)
    snapshot = cache.lend()
    assert snapshot.rows_with_affinity.tolist() == []
    assert snapshot.rows_with_required_anti_affinity.tolist() == []


def test_a_snapshot_does_not_change_until_it_is_returned() -> None:
    """F-047: an event during the loan changes the next snapshot only."""
    cache = cache_of("a")
    snapshot = cache.lend()
    with pytest.raises(AssertionError, match="while it is lent"):
        cache.add_node(node("b"))
    assert snapshot.nodes.names() == ["a"]
    snapshot.end()
    cache.add_node(node("b"))
    assert cache.lend().nodes.names() == ["a", "b"]


def test_a_returned_snapshot_raises_at_every_access() -> None:
    snapshot = cache_of("a").lend()
    snapshot.end()
    questions = (
        lambda: snapshot.nodes,
        lambda: snapshot.node_count,
        lambda: snapshot.node("a"),
        snapshot.trial,
        lambda: snapshot.rows_with_affinity,
    )
    for question in questions:
        with pytest.raises(LoanEnded):
            question()


# ---- trials ------------------------------------------------------------------------------------


def test_a_trial_changes_the_snapshot_at_once_and_is_undone_at_its_end() -> None:
    cache = cache_of("a", "b")
    old = pod("old", node="a", requests={"cpu": 2})
    cache.add_pod(old)
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        placed = trial.assume(pod("new", requests={"cpu": 3}), "b")
        trial.remove(old)
        assert placed.node_name == "b"
        assert snapshot.nodes.requested("cpu").tolist() == [0, 3000]
        assert (pods_on(snapshot, "a"), pods_on(snapshot, "b")) == ([], ["new"])
    assert snapshot.nodes.requested("cpu").tolist() == [2000, 0]
    assert (pods_on(snapshot, "a"), pods_on(snapshot, "b")) == (["old"], [])


def test_an_undo_increases_generations() -> None:
    cache = cache_of("a", "b")
    snapshot = cache.lend()
    before = cache.table.log.generation
    with snapshot.trial() as trial:
        trial.assume(pod("new"), "a")
        within = snapshot.node("a").generation
    assert before < within < snapshot.node("a").generation
    assert cache.table.log.rows_since(before, 4095).tolist() == [0]


@pytest.mark.parametrize("removed", [["p"], ["q"], ["r"], ["r", "p"], ["p", "q", "r"]])
def test_restored_pods_are_in_the_order_of_their_arrival(removed: list[str]) -> None:
    cache = cache_of("a")
    pods = {name: pod(name, node="a") for name in ("p", "q", "r")}
    for each in pods.values():
        cache.add_pod(each)
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        for name in removed:
            trial.remove(pods[name])
        trial.assume(pod("new"), "a")
    assert pods_on(snapshot, "a") == ["p", "q", "r"]


def test_committed_changes_are_not_undone() -> None:
    cache = cache_of("a")
    snapshot = cache.lend()
    with snapshot.trial() as trial:
        trial.assume(pod("one"), "a")
        trial.commit()
        trial.assume(pod("two"), "a")
    assert pods_on(snapshot, "a") == ["one"]


def test_a_node_is_present_until_it_is_removed() -> None:
    cache = cache_of("a")
    cache.add_pod(pod("p", node="a"))
    assert cache.node("a") is not None
    cache.remove_node("a")
    assert (cache.node("a"), cache.node("ghost")) == (None, None)
    assert len(cache.lend().nodes) == 0


def test_a_snapshot_lists_the_rows_that_changed_since_another_one() -> None:
    cache = Cache()
    for name in ("n1", "n2"):
        cache.add_node(node(name))
    before = cache.lend()
    generation = before.generation
    before.end()
    cache.add_pod(pod("p", node="n2"))
    snapshot = cache.lend()
    assert snapshot.rows_since(generation, Facet.PODS).tolist() == [cache.table.row_of["n2"]]
    assert snapshot.rows_since(generation, Facet.TAINTS).tolist() == []
    snapshot.end()
