"""The result cache of a profile: rows that are evaluated again, bounds, counts, comparisons."""

from collections.abc import Hashable
from typing import Any

import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, Node, Pod
from bayplan.engine.ranking.evaluation_plan import TOO_MUCH_CHANGED
from bayplan.engine.reuse.cache import (
    HINT_USED,
    mismatches,
)
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    PreScorePlugin,
    ScalarFilterPlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Status, unschedulable
from bayplan.ports import EventType
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import api_pod, node
from tests.engine.cached_attempts import Attempts, Bad, CountingFilter, Rank
from tests.engine.kit import Engine, reuse_of, waiting_pod
from tests.plugins.volume_kit import (
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)
from tests.scenarios.world import PROFILE

# ---- comparison with a fresh evaluation -----------------------------------------------------


THREE: dict[str, dict[str, str]] = {"n1": {"rank": "1"}, "n2": {"bad": "x"}, "n3": {"rank": "3"}}


class UnsignedFilter(Bad):
    """Rejects the node ``mood``, which it does not sign."""

    mood = ""

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        status = super().filter_node(state, pod, node)
        return status if node.name != self.mood else None


class UnsignedScore(Rank):
    """Adds ``more`` to the score, which it does not sign."""

    more = 0

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return super().score_node(state, pod, node) + self.more


class SkippedScore(UnsignedScore, PreScorePlugin):
    """Skips in PreScore."""

    name = "Silent"

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return SKIP


def mismatches_of(attempts: Attempts) -> list[str]:
    """The mismatches found with the state of an attempt without reuse."""
    state, nodes = CycleState(), attempts.cluster.lend().nodes
    attempts.framework.run_pre_filter(state, attempts.pod, nodes)
    attempts.framework.run_pre_score(state, attempts.pod, nodes)
    return mismatches(attempts.entry, attempts.framework, state, attempts.pod, nodes=nodes)


def after_an_attempt(*plugins: Any) -> Attempts:
    attempts = Attempts(*plugins, nodes=THREE)
    attempts.attempt()
    return attempts


def test_all_wrong_plugins_are_reported_in_order() -> None:
    attempts = after_an_attempt(UnsignedScore, UnsignedFilter)
    attempts.plugin("Rank").more = 1
    attempts.plugin("Bad").mood = "n2"
    assert mismatches_of(attempts) == ["Bad", "Rank"]


def test_a_plugin_that_skips_this_attempt_is_not_compared() -> None:
    attempts = after_an_attempt(Bad, SkippedScore)
    silent_scores = attempts.entry.caches.scores["Silent"]
    silent_scores.learn_one(0, 1)
    attempts.plugin("Silent").more = 7
    assert mismatches_of(attempts) == []


def test_a_plugin_that_fails_during_the_comparison_is_not_reported() -> None:
    attempts = after_an_attempt(Bad, Rank)
    attempts.plugin("Bad").failure = RuntimeError("boom")
    assert mismatches_of(attempts) == []


# ---- reuse ----------------------------------------------------------------------------------


SERVICE = "v1 Service"
DEFAULT_VOLUME_PLUGINS = [
    ("NodeResourcesFit", 1),
    "VolumeRestrictions",
    "NodeVolumeLimits",
    ("VolumeBinding", 1),
    "VolumeZone",
    ("DynamicResources", 1),
]


def engine_of(node_count: int, **options: Any) -> Engine:
    engine = Engine(
        plugins=["CountingFilter", ("NodeResourcesFit", 1)], classes=[CountingFilter], **options
    )
    engine.add(*(small(f"n{number}") for number in range(node_count)))
    return engine


def small(name: str, **options: Any) -> Node:
    return node(name, cpu=4, memory="8Gi", **options)


def equal(name: str, kind: str = "a", cpu: Any = "500m") -> Pod:
    return waiting_pod(name, cpu=cpu, memory="1Gi", labels={"kind": kind})


def evaluated_rows(engine: Engine) -> int:
    """Rows that the counting filter evaluated, by its own count and by the metrics."""
    count: int = engine.plugin("CountingFilter").call_count
    assert reuse_of(engine).row_counts()["CountingFilter"].evaluated == count or not is_on(engine)
    return count


def is_on(engine: Engine) -> bool:
    return reuse_of(engine).is_on


def test_without_reuse_the_number_of_remembered_signatures_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bayplan.engine.reuse.cache._SEEN_MAX", 3)
    engine = engine_of(2, profile={"reuse": False})
    for kind in ("a", "b", "c", "d", "a", "d"):
        engine.add(equal(f"{kind}{len(engine.journal.records)}", kind, cpu="10m"))
        engine.run()
        assert len(reuse_of(engine)) <= 3
    # The first signature had been dropped when it returned.
    assert reuse_of(engine).possible_count == 1


def test_results_with_too_many_distinct_rejections_are_cached_and_not_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bayplan.engine.ranking.node_feasibility._NUMBER_MAX", 2)
    engine = engine_of(0)
    engine.add(small("n0"), *(node(f"x{n}", cpu=n, memory=f"{n}Mi") for n in range(3)))
    for number in range(3):
        engine.add(equal(f"a{number}", cpu=2))
        engine.run()
    assert reuse_of(engine).attempt_counts[HINT_USED] == 0
    assert reuse_of(engine).flushed_counts[TOO_MUCH_CHANGED] == 2
    assert evaluated_rows(engine) == 4 + 2


class Another(ScalarFilterPlugin, SignPlugin):
    """Accepts every node, looks no object up, and counts its calls."""

    name = "Another"
    call_count = 0

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.call_count += 1
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_an_object_drops_only_the_cached_results_of_plugins_that_read_its_kind() -> None:
    engine = Engine(plugins=["CountingFilter", "Another"], classes=[CountingFilter, Another])
    engine.add(*(small(f"n{number}") for number in range(5)), equal("a0"))
    engine.run()
    engine.put(SERVICE, {"metadata": {"name": "s", "namespace": "default"}, "spec": {}})
    engine.add(equal("a1"))
    engine.run()
    assert engine.plugin("CountingFilter").call_count == 5 + 5
    assert engine.plugin("Another").call_count == 5 + 1


def test_a_cache_too_small_for_one_entry_stores_nothing() -> None:
    engine = engine_of(5, config={"reuse": {"maxBytes": 1}})
    for number in range(3):
        engine.add(equal(f"a{number}"))
    assert len(engine.bound()) == 3
    assert evaluated_rows(engine) == 15
    assert reuse_of(engine).bytes_used == 0
    assert any("reuse.maxBytes is 1" in text for text in engine.texts())


def test_pods_on_unknown_nodes_may_outgrow_the_ranking() -> None:
    engine = engine_of(60)
    for number in range(3):
        engine.add(equal(f"a{number}"))
        engine.run()
    engine.add(*(api_pod(f"lost{number}", node=f"ghost{number}") for number in range(8)))
    engine.add(equal("a3"))
    assert engine.bound()["a3"]
    # The row of a2, and not that of an unknown node.
    assert evaluated_rows(engine) == 60 + 3


class ForgetfulFilter(ScalarFilterPlugin, SignPlugin):
    """Reads a label that it does not sign."""

    name = "CountingFilter"

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        return unschedulable("bad") if pod.labels.get("kind") == node.name else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_checks_are_rarer_in_a_cluster_with_more_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.engine.reuse.cache.CHECK_PERIOD", 5)
    monkeypatch.setattr("bayplan.engine.reuse.cache.CHECK_NODES", 2)
    engine = Engine(plugins=["CountingFilter"], classes=[ForgetfulFilter])
    engine.add(*(small(f"n{number}") for number in range(3)))
    labels = {"profile": PROFILE, "plugin": "CountingFilter"}
    counts: list[float] = []
    for number in range(10):
        engine.add(equal(f"a{number}", f"n{number % 3}"))
        engine.run()
        counts.append(engine.metric("bayplan_reuse_mismatch_total", **labels))
    assert counts == [0] * 9 + [1]


def test_metrics_show_the_benefit_of_reuse() -> None:
    engine = engine_of(5)
    for number in range(4):
        engine.add(equal(f"a{number}"))
        engine.run()
    engine.update(small("n0", labels={"zone": "z"}))
    engine.add(small("n9"), equal("a9"))
    engine.run()

    def metric_of(name: str, **labels: str) -> float:
        return engine.metric(name, profile=PROFILE, **labels)

    attempts = "scheduler_batch_attempts_total"
    results = ("no_hint", "hint_used", "hint_not_used")
    assert [metric_of(attempts, result=result) for result in results] == [1, 2, 2]
    assert metric_of("scheduler_batch_cache_flushed_total", reason="node_missing") == 1
    assert metric_of("scheduler_get_node_hint_duration_seconds_count", hinted="hint") == 2
    assert metric_of("bayplan_reuse_entries") == 1
    assert metric_of("bayplan_reuse_possible_total") == 4
    assert metric_of("bayplan_reuse_bytes") == reuse_of(engine).bytes_used > 0
    evaluated_count = metric_of("bayplan_reuse_rows_evaluated_total", plugin="CountingFilter")
    cached_count = metric_of("bayplan_reuse_rows_cached_total", plugin="CountingFilter")
    assert evaluated_count == evaluated_rows(engine) == 5 + 1 + 1 + 1 + 3
    assert evaluated_count + cached_count == 4 * 5 + 6


STORAGE_EVENTS = [
    claim("c", bound_to="pv"),
    volume("pv"),
    storage_class(),
    csi_node("n1", {"disk.test": 1}),
    csi_driver(),
    capacity("room", "5Gi"),
    attachment("a", "n1", "pv"),
]


def add_storage(engine: Engine) -> None:
    for content in STORAGE_EVENTS:
        engine.put(f"{content['apiVersion']} {content['kind']}", content)


def test_pods_without_volumes_keep_their_ranking_when_storage_changes() -> None:
    engine = Engine(plugins=DEFAULT_VOLUME_PLUGINS)
    engine.add(*(small(f"n{number}") for number in range(9)))
    engine.add(*(equal(f"a{number}") for number in range(3)))
    engine.run()
    reuse = reuse_of(engine)
    hinted = reuse.attempt_counts[HINT_USED]
    for number in range(4):
        add_storage(engine)
        engine.add(equal(f"b{number}"))
        engine.run()
    assert reuse.attempt_counts[HINT_USED] == hinted + 4
    assert not reuse.dropped_counts
    assert not reuse.flushed_counts


def test_pods_with_a_claim_are_evaluated_again_when_the_claim_changes() -> None:
    engine = Engine(plugins=DEFAULT_VOLUME_PLUGINS)
    engine.add(*(small(f"n{number}", labels={"zone": "ab"[number % 2]}) for number in range(4)))
    add_storage(engine)
    engine.add(*(with_claim(f"a{number}") for number in range(3)))
    engine.run()
    engine.put(PERSISTENT_VOLUME, volume("pv", zone="b"), EventType.MODIFIED)
    engine.add(*(with_claim(f"b{number}") for number in range(4)))
    assert set(engine.bound().values()) == {"n1", "n3"}


def with_claim(name: str) -> Pod:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return waiting_pod(name, cpu="500m", spec={"volumes": volumes})


# ---- rankings that are shared, and caching that does not pay ------------------------------------


def test_pods_that_differ_in_labels_that_no_plugin_reads_share_a_ranking() -> None:
    plugins = ["NodeResourcesFit", "InterPodAffinity"]
    engine = Engine(plugins=plugins, gates={"OpportunisticBatching": True})
    engine.add(*(node(f"n{index}", cpu=9) for index in range(3)))
    for index, app in enumerate("aabcd"):
        engine.add(waiting_pod(f"p{index}", cpu=1, labels={"app": app}))
        engine.run()
    reuse = reuse_of(engine)
    rankings = [ranking for entry in reuse.entries() for ranking in entry.rankings.values()]
    assert (len(reuse), len(rankings), reuse.attempt_counts["hint_used"]) == (4, 1, 3)


def test_without_the_gate_no_result_is_cached() -> None:
    engine = Engine(plugins=["NodeResourcesFit"], gates={"OpportunisticBatching": False})
    engine.add(*(node(f"n{index}", cpu=9) for index in range(3)))
    engine.add(*(waiting_pod(f"p{index}", cpu=1) for index in range(3)))
    engine.run()
    assert not reuse_of(engine).attempt_counts["hint_used"]
    assert not is_on(engine)


def test_signatures_that_occur_once_are_not_cached_for_long() -> None:
    engine = Engine(plugins=["NodeResourcesFit"], gates={"OpportunisticBatching": True})
    engine.add(*(node(f"n{index}", cpu=9) for index in range(3)))
    for index in range(40):
        engine.add(waiting_pod(f"p{index}", cpu=f"{index + 1}m"))
        engine.run()
    cached = [bool(entry.caches.all) for entry in reuse_of(engine).entries()]
    assert cached[0] and not cached[-1]
