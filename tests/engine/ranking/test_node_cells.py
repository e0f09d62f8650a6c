"""Pods with constraints get the same decisions from cells as from arrays over all nodes.

Two schedulers, one with reuse and one without, place pods of a few templates with drawn constraints
while pods and nodes come, go and change. `Pair` compares every verdict, score and journal line, and
validates the cells after each step.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from bayplan.api.objects import HOSTNAME_LABEL, NODE, POD, SERVICE, ZONE_LABEL, decode
from bayplan.clock import ManualClock
from bayplan.config import config_from
from bayplan.config.schema import API_VERSION, KIND
from bayplan.engine.ranking import node_cells, topology_counts
from bayplan.engine.ranking.node_cells import CellAnswer, NodeCells, nth_of
from bayplan.engine.ranking.score_index import PlaceBlocks
from bayplan.engine.reuse import entry as reuse_entry
from bayplan.engine.scheduler import Scheduler
from bayplan.journal import Journal, MemorySink, NoteRecord
from bayplan.plugins.pod_topology_spread.domain_rules import SpreadDomainRules
from bayplan.plugins.registry import default_registry
from bayplan.ports import BindPod, EventType, WatchEvent
from bayplan.testing import PodOptions, api_pod, node
from tests.engine.reuse_pair import Pair
from tests.seeded import depth

RACK = "rack"
KEYS = (HOSTNAME_LABEL, ZONE_LABEL, RACK)
APPS = ("a", "b")
SEQUENCES = depth(15, 60)

_ATTRACTS, _REPELS = ("podAffinity",), ("podAntiAffinity",)

keys = st.sampled_from(KEYS)
apps = st.sampled_from(APPS)


def _selector(app: str) -> Mapping[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}}


@st.composite
def spread(draw: st.DrawFn) -> Mapping[str, Any]:
    constraint = {
        **_selector(draw(apps)),
        "topologyKey": draw(keys),
        "maxSkew": draw(st.integers(1, 3)),
        "whenUnsatisfiable": draw(st.sampled_from(("DoNotSchedule", "ScheduleAnyway"))),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw(st.booleans()):
        constraint["minDomains"] = draw(st.integers(1, 4))
    if draw(st.integers(0, 3)) == 0:
        constraint["nodeTaintsPolicy"] = "Honor"
    return constraint


@st.composite
def terms(draw: st.DrawFn) -> Mapping[str, Any]:
    required = [
        {**_selector(draw(apps)), "topologyKey": draw(keys)}
        for _ in range(draw(st.sampled_from((0, 0, 1, 2))))
    ]
    preferred = [
        {
            "weight": draw(st.integers(1, 100)),
            "podAffinityTerm": {**_selector(draw(apps)), "topologyKey": draw(keys)},
        }
        for _ in range(draw(st.sampled_from((0, 1, 2))))
    ]
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }


@st.composite
def node_affinity(draw: st.DrawFn) -> Mapping[str, Any]:
    values = draw(st.lists(st.sampled_from(("r0", "r1", "r2", "r3")), min_size=1, unique=True))
    term = {"matchExpressions": [{"key": RACK, "operator": "In", "values": values}]}
    if draw(st.booleans()):
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"weight": draw(st.integers(1, 100)), "preference": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}


@st.composite
def templates(draw: st.DrawFn) -> PodOptions:
    options: dict[str, Any] = {"cpu": "100m", "labels": {"app": draw(apps)}}
    if draw(st.booleans()):
        options["spread"] = draw(
            st.lists(spread(), min_size=1, max_size=2, unique_by=lambda c: c["topologyKey"])
        )
    if draw(st.booleans()):
        names = draw(
            st.sampled_from(
                (("podAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity"))
            )
        )
        options["affinity"] = {name: draw(terms()) for name in names}
    if draw(st.integers(0, 5)) == 0:
        options["node_selector"] = {RACK: "r0"}
    if draw(st.integers(0, 2)) == 0:
        options["affinity"] = {**options.get("affinity", {}), "nodeAffinity": draw(node_affinity())}
    return PodOptions(**options)


numbers = st.integers(0, 50)
steps = st.one_of(
    *(st.tuples(st.just("pods come"), numbers, st.sampled_from((1, 3, 6, 9))) for _ in range(6)),
    *(st.tuples(st.just("a run comes"), numbers, st.sampled_from((3, 6, 9))) for _ in range(3)),
    st.tuples(st.just("a pod is on a node"), numbers, numbers),
    st.tuples(st.just("a pod goes"), numbers, numbers),
    st.tuples(st.just("a pod begins to terminate"), numbers, numbers),
    st.tuples(st.just("a pod changes its labels"), numbers, numbers),
    st.tuples(st.just("a node changes its labels"), numbers, numbers),
    st.tuples(st.just("a node is cordoned"), numbers, numbers),
    st.tuples(st.just("a node gets a taint"), numbers, numbers),
    st.tuples(st.just("a node comes or goes"), numbers, numbers),
    st.tuples(st.just("a service comes or goes"), numbers, numbers),
)


class World:
    """The pair, and what it knows."""

    def __init__(
        self,
        tally: Counter[str],
        pods: Sequence[PodOptions],
        node_count: int,
        *,
        has_zones: bool = True,
    ) -> None:
        self.pair = Pair(tally, is_plain=True, has_keys=False, bytes_max=1 << 26, refuses=False)
        self._templates = pods
        self._has_zones = has_zones
        self._nodes: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, PodOptions] = {}
        self._has_service = False
        self._name_count = 0
        for index in range(node_count):
            self._set_node(f"n{index}", EventType.ADDED, index, is_cordoned=False)

    def _set_node(self, name: str, event: EventType, number: int, *, is_cordoned: bool) -> None:
        labels = {ZONE_LABEL: f"z{number % 3}", RACK: f"r{number % 5}"}
        if number % 17 == 16:
            del labels[RACK]
        if not self._has_zones and number < 40:
            del labels[ZONE_LABEL]
        options = {"cpu": 2 + number % 3, "labels": labels, "unschedulable": is_cordoned}
        self._nodes[name] = options
        self.pair.node(event, node(name, **options))

    def _add_pod(self, number: int, **more: Any) -> None:
        self._name_count += 1
        name = f"p{self._name_count}"
        self._pods[name] = PodOptions(**{**self._templates[number % len(self._templates)], **more})
        self.pair.pod(EventType.ADDED, api_pod(name, **self._pods[name]))

    def _add_run(self, number: int, count: int) -> None:
        """The first pod gets a cycle. The equal pods behind it are placed together."""
        for _ in range(count):
            self._add_pod(number)
        for _ in range(count):
            self.pair.schedule_run(count, is_watched=False)
        self._schedule(0)

    def play(self, what: str, number: int, other: int) -> None:
        names = sorted(self._nodes)
        name = names[other % len(names)]
        placed = sorted(self._pods)
        if what == "pods come":
            for _ in range(other):
                self._add_pod(number)
                self._schedule(1)
        elif what == "a run comes":
            self._add_run(number, other)
        elif what == "a pod is on a node":
            self._add_pod(number, node=name)
        elif what == "a pod goes" and placed:
            gone = placed[number % len(placed)]
            self.pair.pod(EventType.DELETED, api_pod(gone, **self._pods.pop(gone)))
        elif what == "a pod begins to terminate" and placed:
            self._change_pod(placed[number % len(placed)], terminating=True)
        elif what == "a pod changes its labels" and placed:
            self._change_pod(placed[number % len(placed)], labels={"app": APPS[other % 2]})
        elif what == "a node changes its labels":
            self._set_node(name, EventType.MODIFIED, number, is_cordoned=False)
        elif what == "a node gets a taint":
            options = {**self._nodes[name], "taints": ["old=a:NoSchedule"] if number % 2 else []}
            self._nodes[name] = options
            self.pair.node(EventType.MODIFIED, node(name, **options))
        elif what == "a node is cordoned":
            old = int(self._nodes[name]["labels"].get(ZONE_LABEL, "z0")[1:])
            self._set_node(name, EventType.MODIFIED, old, is_cordoned=number % 2 == 0)
        elif what == "a node comes or goes" and number % 2 and len(names) > 3:
            options = self._nodes.pop(name)
            self.pair.node(EventType.DELETED, node(name, **options))
        elif what == "a node comes or goes":
            self._name_count += 1
            self._set_node(f"m{self._name_count}", EventType.ADDED, number, is_cordoned=False)
        elif what == "a service comes or goes":
            self._toggle_service()
        self._schedule(2)

    def _toggle_service(self) -> None:
        metadata = {"name": "s", "namespace": "default"}
        service = decode(SERVICE, {"metadata": metadata, "spec": {"selector": {"app": "a"}}})
        event = EventType.DELETED if self._has_service else EventType.ADDED
        self._has_service = not self._has_service
        self.pair.tell(event, SERVICE, service)

    def _change_pod(self, name: str, **more: Any) -> None:
        self._pods[name] = PodOptions(**{**self._pods[name], **more})
        self.pair.pod(EventType.MODIFIED, api_pod(name, **self._pods[name]))

    def _schedule(self, count: int) -> None:
        self.pair.schedule(count)
        for effect in self.pair.compare([f"uid-default/{name}" for name in self._pods]):
            if isinstance(effect, BindPod):
                # The API server copies the zone to the labels of the pod.
                zone = self._nodes[effect.node_name]["labels"].get(ZONE_LABEL, "")
                labels = {**self._pods[effect.pod.name].get("labels", {}), ZONE_LABEL: zone}
                self._change_pod(effect.pod.name, node=effect.node_name, labels=labels)
                self.pair.finish(effect.pod.uid, None)


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the answers of cells, which are made for the second pod of a template each time."""
    counts: Counter[str] = Counter()
    answer = NodeCells.answer

    def counted(self: NodeCells) -> CellAnswer | None:
        result = answer(self)
        counts["answers" if result is not None else "no answers"] += 1
        return result

    monkeypatch.setattr(NodeCells, "answer", counted)
    monkeypatch.setattr(reuse_entry, "_CELLS_PATIENCE_MIN", 0)
    monkeypatch.setattr(reuse_entry, "_CELLS_PATIENCE_MAX", 0)
    # There are few pods on few nodes; everything is cached anyway.
    monkeypatch.setattr("bayplan.engine.reuse.cache._BALANCE_MAX", 10**9)
    return counts


def _play(tally: Counter[str], sequence_count: int) -> None:
    """Raises AssertionError where the two schedulers differ."""

    # Sequences are long, so they are not shrunk.
    @settings(
        max_examples=sequence_count,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
    )
    @given(
        pods=st.lists(templates(), min_size=1, max_size=3),
        node_count=st.integers(5, 12),
        has_zones=st.integers(0, 2).map(bool),
        sequence=st.lists(steps, min_size=8, max_size=20),
    )
    def check(
        pods: list[PodOptions],
        node_count: int,
        sequence: list[tuple[str, int, int]],
        *,
        has_zones: bool,
    ) -> None:
        world = World(tally, pods, node_count, has_zones=has_zones)
        for step in sequence:
            world.play(*step)
        world.pair.close()

    check()


#: Of FEW_DOMAINS.
FEW = [
    pytest.param(64, id="every label has few domains"),
    pytest.param(4, id="hosts are single nodes"),
]


@pytest.mark.parametrize("few_domains", FEW)
def test_cells_change_no_decision(
    tally: Counter[str], monkeypatch: pytest.MonkeyPatch, few_domains: int
) -> None:
    monkeypatch.setattr(topology_counts, "FEW_DOMAINS", few_domains)
    _play(tally, SEQUENCES)


def a_count_stays(patch: pytest.MonkeyPatch) -> None:
    """A placed pod is not counted."""
    patch.setattr(topology_counts.TopologyCount, "change_of", lambda count, table, row: 0)


def a_node_stays_in_its_cell(patch: pytest.MonkeyPatch) -> None:
    """The counts of a node change, and its cell does not."""
    patch.setattr(NodeCells, "_move", lambda cells, row: None)


def a_run_does_not_count_its_pods(patch: pytest.MonkeyPatch) -> None:
    """A run chooses as if the domains of the pods before had not got one more pod."""

    def deaf(cells: NodeCells, row: int, steps: Sequence[int]) -> None:
        cells.generation += 1

    patch.setattr(NodeCells, "move", deaf)


def a_pod_counts_on_an_excluded_node(patch: pytest.MonkeyPatch) -> None:
    """A pod on a node that the node affinity excludes counts for its domain."""
    patch.setattr(topology_counts.TopologyCount, "includes", lambda count, row: True)


def an_excluded_domain_counts(patch: pytest.MonkeyPatch) -> None:
    """A domain without a node that the node affinity includes has the fewest pods."""
    patch.setattr(topology_counts.TopologyCount, "of_domains", lambda count: count.by_domain)


def verdicts_stay_with_the_cells(patch: pytest.MonkeyPatch) -> None:
    """Verdicts that follow from the counts of domains are evaluated once."""
    always = property(lambda counts: True, lambda counts, are_enough: None)
    patch.setattr(node_cells._Counts, "are_keys_enough", always)


def cells_outlive_a_distinct_term(patch: pytest.MonkeyPatch) -> None:
    """A pod with terms that no placed pod had is placed, and nothing follows."""
    patch.setattr(reuse_entry.ObjectGeneration, "now_of_distinct_terms", lambda generation: 0)


@pytest.mark.parametrize(
    ("plant", "few_domains"),
    [
        pytest.param(a_count_stays, 64, id="a count stays"),
        pytest.param(a_run_does_not_count_its_pods, 64, id="a run does not count its pods"),
        pytest.param(a_node_stays_in_its_cell, 4, id="a node stays in its cell"),
        pytest.param(verdicts_stay_with_the_cells, 64, id="verdicts stay with the cells"),
    ],
)
def test_a_planted_fault_is_found(
    tally: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    few_domains: int,
) -> None:
    monkeypatch.setattr(topology_counts, "FEW_DOMAINS", few_domains)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _play(tally, 500)


def _place_a_distinct_term(tally: Counter[str]) -> None:
    """Pods of one template have cells when a pod appears that keeps them out of a zone."""
    spreading = PodOptions(
        cpu="100m",
        labels={"app": "a"},
        spread=[
            {
                **_selector("a"),
                "topologyKey": RACK,
                "maxSkew": 5,
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
    )
    term = {**_selector("a"), "topologyKey": ZONE_LABEL}
    excluding = PodOptions(
        cpu="100m",
        labels={"app": "b"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    world = World(tally, [spreading, excluding], 6)
    world.play("pods come", 0, 6)
    assert tally["answers"], "there were no cells"
    world.play("a pod is on a node", 1, 0)
    world.play("pods come", 0, 6)
    world.pair.close()


def test_a_distinct_term_of_a_placed_pod_drops_the_cells(tally: Counter[str]) -> None:
    _place_a_distinct_term(tally)


def test_cells_that_outlive_a_distinct_term_are_found(
    tally: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells_outlive_a_distinct_term(monkeypatch)
    with pytest.raises(AssertionError):
        _place_a_distinct_term(tally)


#: Spreads over zones, and prefers nodes beside pods of another app.
_WITH_BOTH = PodOptions(
    cpu="100m",
    labels={"app": "a"},
    spread=[
        {
            **_selector("a"),
            "topologyKey": ZONE_LABEL,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ],
    affinity={
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 9, "podAffinityTerm": {**_selector("b"), "topologyKey": HOSTNAME_LABEL}}
            ]
        }
    },
)


def _begin_to_score(tally: Counter[str]) -> None:
    """InterPodAffinity skips until the first pod of the other app comes."""
    other = PodOptions(cpu="100m", labels={"app": "b"})
    world = World(tally, [_WITH_BOTH, other], node_count=7)
    world.play("pods come", 0, 6)
    world.play("a pod is on a node", 1, 3)
    world.play("pods come", 0, 6)
    world.pair.close()


def test_a_plugin_that_begins_to_score_is_called(tally: Counter[str]) -> None:
    _begin_to_score(tally)
    assert tally["answers"] > 4, tally


def test_cells_that_do_not_notice_that_a_plugin_begins_to_score_are_detected(
    tally: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_cells._CountedRules, "check", lambda rules: None)
    with pytest.raises(AssertionError):
        _begin_to_score(tally)


def _spread_in_racks(tally: Counter[str]) -> None:
    """Pods spread over the zones of two racks, which have nodes in two of three zones. Pods that
    match come to another rack of one of these zones."""
    rack = {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r0", "r3"]}]}
    required = {"nodeSelectorTerms": [rack]}
    labels = {"app": "a"}
    bound = PodOptions(
        cpu="100m",
        labels=labels,
        spread=[
            {
                **_selector("a"),
                "topologyKey": ZONE_LABEL,
                "maxSkew": 3,
                "whenUnsatisfiable": "DoNotSchedule",
            }
        ],
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    )
    world = World(tally, [bound, PodOptions(cpu="100m", labels=labels)], node_count=9)
    world.play("pods come", 0, 6)
    for _ in range(3):
        world.play("a pod is on a node", 1, 6)
    world.play("pods come", 0, 6)
    world.pair.close()


def test_pods_and_domains_of_excluded_nodes_do_not_count(tally: Counter[str]) -> None:
    _spread_in_racks(tally)
    assert tally["answers"] > 8, tally


@pytest.mark.parametrize("plant", [a_pod_counts_on_an_excluded_node, an_excluded_domain_counts])
def test_excluded_nodes_that_count_are_detected(
    tally: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _spread_in_racks(tally)


@given(
    places=st.lists(st.integers(0, 500), min_size=1, max_size=40, unique=True),
    owners=st.lists(st.integers(0, 2), min_size=40, max_size=40),
    in_blocks=st.booleans(),
)
def test_the_drawn_place_is_that_of_all_parts_together(
    places: list[int], owners: list[int], in_blocks: bool
) -> None:
    parts: list[Any] = [array("i") for _ in range(3)]
    for place, owner in zip(sorted(places), owners, strict=False):
        parts[owner].append(place)
    parts = [part for part in parts if len(part)]
    if in_blocks:
        parts[0] = PlaceBlocks(parts[0])
    assert [nth_of(parts, index) for index in range(len(places))] == sorted(places)


def test_a_check_reports_rules_that_answer_otherwise_than_their_plugin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reuse_entry, "_CELLS_PATIENCE_MIN", 0)
    monkeypatch.setattr("bayplan.engine.reuse.cache.CHECK_PERIOD", 8)
    monkeypatch.setattr(SpreadDomainRules, "rejections", lambda rules, cells: ())
    sink = MemorySink()
    scheduler = Scheduler(
        config_from({"apiVersion": API_VERSION, "kind": KIND}),
        default_registry(),
        ManualClock(),
        journal=Journal([sink]),
        raise_bugs=True,
    )
    for index in range(6):
        labels = {ZONE_LABEL: f"z{index % 3}"}
        scheduler.handle(WatchEvent(EventType.ADDED, NODE, node(f"n{index}", labels=labels)))
    constraint = {
        **_selector("a"),
        "topologyKey": ZONE_LABEL,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
    }
    for number in range(9):
        one = api_pod(f"p{number}", cpu="100m", labels={"app": "a"}, spread=[constraint])
        scheduler.handle(WatchEvent(EventType.ADDED, POD, one))
        scheduler.schedule_one()
    cache = scheduler.reuse("default-scheduler")
    assert cache.mismatch_counts["PodTopologySpread"] == 1
    [text] = [r.text for r in sink.records if isinstance(r, NoteRecord) and "rules" in r.text]
    assert "PodTopologySpread" in text
