"""Cycles that combine cached and evaluated plugins, and whole attempts with reuse.

Most tests run once with reuse and once without; both outcomes must be equal.
test_reuse_machine.py tests this for drawn events. This module holds the cases of KEP-5598 and
those in which a cache of results fails most easily.
"""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any

import msgspec
import pytest

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import (
    SERVICE,
    Pod,
)
from bayplan.engine.reuse_steps import score_uncached
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, ScalarFilterPlugin, ScalarScorePlugin, SignPlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, Record
from bayplan.queue.nominator import Nominator
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod
from tests.engine.cached_attempts import (
    COUNTING,
    FIT,
    OFF,
    CountingFilter,
    nodes,
)
from tests.engine.kit import Engine, reuse_of, waiting_pod
from tests.framework.answering import answering, plugins_of
from tests.plugins.devices_kit import claim as device_claim
from tests.plugins.devices_kit import class_of, exactly, slice_of
from tests.scenarios.world import PROFILE

# ---- evaluated plugins beside cached ones ---------------------------------------------------


POD = pod("p")


def raising(*_: Any) -> Any:
    raise OSError("disk")


def framework(*plugins: Any) -> Framework:
    return Framework(plugins_of(*plugins), Nominator())


def three() -> NodeView:
    return SampleCluster().add(*(node(n) for n in ("n1", "n2", "n3"))).lend().nodes


def test_evaluated_plugins_score_in_columns_and_a_failing_plugin_is_named() -> None:
    run = framework(answering("A", score_node=7), answering("B", score=raising))
    state, nodes = CycleState(), three()
    good, bad = run.calls(state, POD).score
    columns = score_uncached(run, [good], state, POD, nodes=nodes)
    assert isinstance(columns, list)
    assert [(each.name, each.weighted.tolist()) for each in columns] == [("A", [7, 7, 7])]
    failed = score_uncached(run, [good, bad], state, POD, nodes=nodes)
    assert isinstance(failed, Status)
    assert failed.plugin == "B"


# ---- whole attempts -------------------------------------------------------------------------


#: The bytes of results for a few dozen signatures on five nodes.
BYTES_MAX = 40_000

#: Upstream's default profile with the counting plugin.
DEFAULT_PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": COUNTING}]}}}
#: Pods of one template that a ranking and arrays answer before cells are made.
CELLS_AFTER = 9
TWENTY = 20

Scenario = Callable[[Engine], Any]


def engine_of(*plugins: Any, **options: Any) -> Engine:
    return Engine(plugins=[COUNTING, *plugins], classes=[CountingFilter], **options)


def same_outcome(scenario: Scenario, *plugins: Any, **options: Any) -> tuple[Any, Engine]:
    """(the result of a scenario, equal with and without reuse; the engine with reuse)."""
    on = engine_of(*plugins, **options)
    off = engine_of(*plugins, gates=OFF, **options)
    result, expected = scenario(on), scenario(off)
    assert result == expected
    assert reuse_of(off).row_counts()[COUNTING].cached == 0
    return result, on


def evaluated_rows(engine: Engine, name: str = COUNTING) -> int:
    return reuse_of(engine).row_counts()[name].evaluated


def equal_pod(name: str, **options: Any) -> Pod:
    return waiting_pod(name, **{"cpu": "500m", "memory": "1Gi", **options})


def many(engine: Engine, node_count: int = 50, pod_count: int = TWENTY, **options: Any) -> Any:
    """Place pods of one signature on nodes. Returns their nodes in order."""
    engine.add(*nodes(node_count))
    places: dict[str, str] = {}
    for number in range(pod_count):
        engine.add(equal_pod(f"p{number}", **options))
        places |= engine.bound()
    assert len(places) == pod_count
    return places


def placed(engine: Engine, *pods: Pod) -> dict[str, str]:
    """Place pods one after the other."""
    places: dict[str, str] = {}
    for each in pods:
        engine.add(each)
        places |= engine.bound()
    return places


# ---- pods that reuse applies to -------------------------------------------------------------


def test_the_default_profile_needs_no_configuration_for_reuse() -> None:
    """B-001: upstream's spread defaults leave every pod without a signature there."""
    engine = engine_of(profile=DEFAULT_PROFILE)
    many(engine, pod_count=2)
    assert engine.metric("bayplan_reuse_possible_total", profile=PROFILE) == 1
    assert engine.metric("bayplan_reuse_rows_cached_total", profile=PROFILE, plugin=FIT) > 0
    assert engine.metric("bayplan_reuse_entries", profile=PROFILE) == 1


SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
NEAR = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "topologyKey": "topology.kubernetes.io/zone",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                },
            }
        ]
    }
}


@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        pytest.param("PodTopologySpread", {"spread": [SPREAD]}, id="a spread constraint"),
        pytest.param("InterPodAffinity", {"affinity": NEAR}, id="a pod affinity"),
    ],
)
def test_beside_a_plugin_of_scope_cluster_all_other_results_are_reused(
    plugin: str, options: Any
) -> None:
    """B-009, B-010, B-014."""
    _, engine = same_outcome(
        lambda each: many(each, labels={"app": "web"}, **options), (FIT, 1), (plugin, 1)
    )
    assert evaluated_rows(engine) == 50 + 19
    assert reuse_of(engine).row_counts()[plugin].cached == 0


def test_services_and_default_constraints_do_not_prevent_reuse() -> None:
    """B-050."""

    def scenario(engine: Engine) -> Any:
        meta = {"name": "s", "namespace": "default"}
        engine.put(SERVICE, {"metadata": meta, "spec": {"selector": {"app": "web"}}})
        return many(engine, labels={"app": "web"})

    _, engine = same_outcome(scenario, profile=DEFAULT_PROFILE)
    assert evaluated_rows(engine) == 50 + 19
    # Once as a Filter and once as a Score.
    assert evaluated_rows(engine, FIT) == 2 * (50 + 19)
    # Until its constraints are evaluated by cell: the first pod, the next one, for which the nodes
    # are ranked, and those that come before cells are made.
    assert evaluated_rows(engine, "PodTopologySpread") == (2 + CELLS_AFTER) * 50


class Unsigned(ScalarFilterPlugin):
    """A plugin without a signature."""

    name = "Unsigned"
    call_count = 0

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.call_count += 1
        return None


def test_a_plugin_without_a_signature_is_evaluated_in_full_each_time() -> None:
    """B-016, B-017, B-025, B-067."""
    engine = Engine(plugins=[COUNTING, "Unsigned", (FIT, 1)], classes=[CountingFilter, Unsigned])
    many(engine)
    assert engine.plugin("Unsigned").call_count == TWENTY * 50
    assert evaluated_rows(engine) == 50 + 19
    assert evaluated_rows(engine, FIT) == 2 * (50 + 19)
    assert reuse_of(engine).framework.sign_pod(pod("x")).unsigned == ("Unsigned",)


# ---- KEP-5598: create, update, nominate -----------------------------------------------------


def test_a_full_node_is_rejected_and_the_other_results_stay() -> None:
    """B-022, and the counts of S-08 A: three nodes, four pods with one host port."""

    def scenario(engine: Engine) -> Any:
        engine.add(*nodes(3))
        places = placed(
            engine, *(equal_pod(f"p{n}", cpu="100m", host_ports=[80]) for n in range(4))
        )
        assert sorted(places.values()) == ["n0", "n1", "n2"]
        return places, engine.attempts("p3")[0].message

    (_, message), engine = same_outcome(scenario, "NodePorts", (FIT, 1))
    text = "3 node(s) didn't have free ports for the requested pod ports."
    assert message == f"0/3 nodes are available: {text}"
    assert evaluated_rows(engine, "NodePorts") == 3 + 1 + 1 + 1


#: Functions that write the journal's lines of best nodes, at most five nodes.
LINES = ("RankedNodes._line", "RankedNodes._line.<locals>.<listcomp>", "WeightedScore.line")
LINES += ("RankedNodes.lines_at",)
LINES += ("CachedScores.of_row", "WeightedScore._normal", "_normalized_one", "normalized")


def calls_of_a_repeat(engine: Engine, node_count: int) -> Counter[str]:
    """Calls of Python functions other than LINES in one more attempt at a cached signature."""
    many(engine, node_count, pod_count=5)
    engine.add(equal_pod("last"))
    counts = Counter[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_qualname not in LINES:
            counts[frame.f_code.co_qualname] += 1

    gc.disable()
    sys.setprofile(note)
    try:
        engine.scheduler.schedule_one()
    finally:
        sys.setprofile(None)
        gc.enable()
    assert list(engine.bound()) == ["last"]
    return counts


@pytest.mark.parametrize("options", [{}, {"profile": DEFAULT_PROFILE}], ids=["plain", "default"])
def test_a_repeat_runs_no_python_per_node(options: Any) -> None:
    """B-032: a repeat takes the same steps on a cluster of twenty times the size."""
    few, more = (calls_of_a_repeat(engine_of((FIT, 1), **options), count) for count in (60, 1200))
    assert few == more


# ---- what plugins read outside of the row ---------------------------------------------------


def test_a_device_claim_of_a_pod_is_evaluated_and_everything_else_is_reused() -> None:
    """B-040: twenty pods, each with a claim of its own."""

    def scenario(engine: Engine) -> Any:
        engine.put(DEVICE_CLASS, class_of())
        for number in range(50):
            engine.put(RESOURCE_SLICE, slice_of(f"n{number}", "a"))
        for number in range(TWENTY):
            engine.put(RESOURCE_CLAIM, device_claim(f"c{number}", exactly()))
        engine.add(*nodes(50))
        claims = ([{"name": "g", "resourceClaimName": f"c{n}"}] for n in range(TWENTY))
        pods = (equal_pod(f"p{n}", spec={"resourceClaims": each}) for n, each in enumerate(claims))
        places = placed(engine, *pods)
        # One device per node: devices of other pods count, although no row records them.
        assert len(set(places.values())) == TWENTY
        return places

    _, engine = same_outcome(scenario, "DynamicResources", (FIT, 1))
    assert evaluated_rows(engine) == 50 + 19
    # Filter and Score of each node, and again of each node that got a pod.
    assert evaluated_rows(engine, FIT) == 2 * 50 + 2 * 19
    assert evaluated_rows(engine, "DynamicResources") == TWENTY * 50


# ---- switches -------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", ["OpportunisticBatching", "SchedulerOpportunisticBatching"])
def test_the_gate_has_upstreams_name_and_the_name_of_the_kep(gate: str) -> None:
    """B-068."""
    engine = engine_of((FIT, 1), gates={gate: False})
    many(engine, pod_count=3)
    assert reuse_of(engine).bytes_used == 0
    assert reuse_of(engine).row_counts()[COUNTING].cached == 0
    assert engine.metric("bayplan_reuse_possible_total", profile=PROFILE) == 2


@pytest.mark.parametrize("is_on", [True, False])
def test_obstacles_to_reuse_are_counted_with_reuse_on_and_off(is_on: bool) -> None:
    """B-039: shapes, possible reuse, and the obstacles."""
    gates = {"OpportunisticBatching": is_on}
    plugins = [(FIT, 1), "Unsigned", "Wide"]
    engine = Engine(plugins=plugins, classes=[Unsigned, Wide], gates=gates)
    many(engine, pod_count=3)

    def metric_of(name: str, **labels: str) -> float:
        return engine.metric(name, profile=PROFILE, **labels)

    prevented = "bayplan_reuse_prevented_total"
    assert metric_of(prevented, plugin="Unsigned", reason="unsigned") == 3
    assert metric_of(prevented, plugin="Wide", reason="across_nodes") == 3
    reused = [label for label in reuse_of(engine).prevented_counts() if label[0] == FIT]
    assert reused == []
    assert metric_of("bayplan_reuse_possible_total") == 2
    assert metric_of("bayplan_reuse_entries") == 1
    saved = reuse_of(engine).row_counts()[FIT].cached
    assert (saved > 0) is is_on


class Wide(ScalarFilterPlugin, SignPlugin):
    """Accepts every node, and may read other nodes."""

    name = "Wide"
    scope = "cluster"

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_reuse_is_configured_per_profile() -> None:
    """B-069."""
    plugins = {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": n} for n in ("PrioritySort", FIT, "DefaultBinder")],
        }
    }
    profiles = [
        {"schedulerName": PROFILE, "plugins": plugins},
        {"schedulerName": "other", "plugins": plugins, "reuse": False},
    ]
    engine = Engine(config={"profiles": profiles})
    engine.add(*nodes(5))
    for number in range(4):
        engine.add(equal_pod(f"a{number}"), equal_pod(f"b{number}", scheduler_name="other"))
    assert len(engine.bound()) == 8
    on, off = engine.scheduler.reuse(PROFILE), engine.scheduler.reuse("other")
    assert (on.possible_count, off.possible_count) == (3, 3)
    assert on.row_counts()[FIT].cached > 0
    assert off.row_counts()[FIT].cached == 0


# ---- lifetime of signatures -----------------------------------------------------------------


class Labelled(ScalarFilterPlugin, SignPlugin):
    """Signs a value that occurs nowhere else."""

    name = "Labelled"

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return "signed and sealed"


def test_no_record_contains_a_signature() -> None:
    """B-018: signatures are compared within one process only, and may differ in the next."""
    schema = msgspec.json.schema(Record)
    assert "attempt" in str(schema)
    assert "sign" not in str(schema).lower().replace("assign", "")
    engine = Engine(plugins=["Labelled", (FIT, 1)], classes=[Labelled])
    many(engine, 3, 6)
    assert reuse_of(engine).attempt_counts["hint_used"] > 0
    written = msgspec.json.encode(list(engine.journal.records)).decode()
    assert "default/p5" in written
    assert "sealed" not in written


# ---- incomplete signatures ------------------------------------------------------------------


class Forgetful(ScalarScorePlugin, SignPlugin):
    """Reads an annotation that it does not sign."""

    name = "Forgetful"
    caching = Caching(facets=Facet.LABELS)

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if pod.annotations.get("favourite") == node.name else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_a_wrong_signature_is_detected_within_a_thousand_attempts() -> None:
    """B-073."""
    engine = Engine(plugins=[("Forgetful", 1)], classes=[Forgetful])
    engine.add(*nodes(3))
    for number in range(1001):
        engine.add(waiting_pod(f"p{number}", annotations={"favourite": f"n{number % 2}"}))
        engine.run()
    labels = {"profile": PROFILE, "plugin": "Forgetful"}
    assert engine.metric("bayplan_reuse_mismatch_total", **labels) == 1
    [text] = [text for text in engine.texts() if "sign_pod" in text]
    assert "plugin Forgetful" in text
    assert "pod default/p" in text


# ---- bounds ---------------------------------------------------------------------------------


def test_ten_times_more_signatures_than_fit_into_the_cache_change_no_decision() -> None:
    """B-079: the oldest entry is evicted first."""

    def scenario(engine: Engine) -> Any:
        engine.add(*nodes(5, pods=1000))
        places: dict[str, str] = {}
        for number in range(400):
            engine.add(
                equal_pod(f"p{number}", cpu="1m", memory="1Mi", labels={"kind": str(number)})
            )
            places |= engine.bound()
            assert reuse_of(engine).bytes_used <= BYTES_MAX
        return places

    _, engine = same_outcome(scenario, (FIT, 1), config={"reuse": {"maxBytes": BYTES_MAX}})
    reuse = reuse_of(engine)
    assert 2 <= len(reuse) <= 400 / 10
    assert reuse.dropped_counts["bytes"] == 400 - len(reuse)
    newest, oldest = (
        pod("x", cpu="1m", memory="1Mi", labels={"kind": kind}) for kind in ("399", "0")
    )
    assert reuse.entry_for(newest).generation >= 0
    assert reuse.entry_for(oldest).generation < 0


# ---- runs of pods that name their node, and of pods that fit nowhere -------------------------


def both_outcomes(**options: Any) -> tuple[list[AttemptRecord], int]:
    """The first attempts at ten equal pods on three nodes, the same with and without reuse; and how
    many of them needed no cycle."""

    def records_of(engine: Engine) -> list[AttemptRecord]:
        engine.add(*nodes(3))
        placed(engine, *(equal_pod(f"p{n}", **options) for n in range(10)))
        return [engine.attempts(f"p{n}")[0] for n in range(10)]

    on = engine_of(profile=DEFAULT_PROFILE)
    off = engine_of(profile=DEFAULT_PROFILE, gates=OFF)
    records = records_of(on)
    assert records == records_of(off)
    assert off.scheduler._attempts.runs.attempt_count == 0
    return records, on.scheduler._attempts.runs.attempt_count


def test_pods_that_name_their_node_go_there_without_a_cycle_until_it_is_full() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    records, run_count = both_outcomes(affinity={"nodeAffinity": rule})
    assert [each.node for each in records] == ["n1"] * 8 + [""] * 2
    assert "1 Insufficient cpu" in records[-1].message
    assert run_count == 6


def test_pods_that_fit_nowhere_fail_without_a_cycle() -> None:
    records, run_count = both_outcomes(cpu=50)
    [message] = {each.message for each in records}
    assert message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert run_count >= 5
