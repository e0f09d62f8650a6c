"""The result cache of a profile: rows that are evaluated again, bounds, counts, comparisons."""

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, Node, Pod
from bayplan.engine.ranking.evaluation_plan import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    OTHER_PLUGINS,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
)
from bayplan.engine.reuse.cache import HINT_USED, mismatches
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, ScalarFilterPlugin, SignPlugin
from bayplan.framework.status import SKIP, Status, unschedulable
from bayplan.ports import EventType
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import api_pod, node
from tests.engine.cached_attempts import Attempts, CountingFilter
from tests.engine.kit import Engine, reuse_of, waiting_pod
from tests.framework.answering import answering
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

#: Upstream: metrics.go, reasons of batch_cache_flushed_total (v1.37).
UPSTREAM = {
    "pod_failed",
    "pod_skipped",
    "pod_nominated",
    "node_missing",
    "empty_list",
    "expired",
    "pod_incompatible",
    "pod_not_batchable",
    "filter_error",
    "prescore_error",
    "rescore_error",
    "normalize_error",
}
OURS = (EXTREME_MOVED, NODES_CAME_OR_WENT, OTHER_PLUGINS, PLUGIN_FAILED, TOO_MUCH_CHANGED)


def test_each_reason_is_one_of_upstreams_and_all_are_distinct() -> None:
    assert len({*OURS} & UPSTREAM) == len(OURS)


# ---- comparison with a fresh evaluation -----------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        pytest.param(
            {"filter": None, "score": 2},
            ["Bad", "Rank"],
            id="all wrong plugins are reported in order",
        ),
        pytest.param(
            {"score": 2, "pre_score": SKIP}, [], id="a plugin that skips now is not compared"
        ),
        pytest.param({"filter": RuntimeError("boom")}, [], id="a failing plugin is not reported"),
    ],
)
def test_a_comparison_reports_plugins_that_answer_otherwise(
    changes: dict[str, Any], wrong: list[str]
) -> None:
    answers: dict[str, Any] = {"filter": unschedulable("no"), "score": 1, "pre_score": None}

    def say(key: str) -> Callable[..., Any]:
        def answer(*_: Any) -> Any:
            if isinstance(answers[key], Exception):
                raise answers[key]
            return answers[key]

        return answer

    def of_n2(state: Any, pod: Any, node: NodeInfo) -> Any:
        return say("filter")() if node.name == "n2" else None

    signs: dict[str, Any] = {"sign_pod": lambda _: (), "caching": Caching(facets=Facet.LABELS)}
    rank = answering("Rank", score_node=say("score"), pre_score=say("pre_score"), **signs)
    bad = answering("Bad", filter_node=of_n2, **signs)
    attempts = Attempts(rank, bad, nodes={"n1": {}, "n2": {}, "n3": {}})
    attempts.attempt()
    answers.update(changes)
    state, pod, nodes = CycleState(), attempts.pod, attempts.cluster.lend().nodes
    attempts.framework.run_pre_filter(state, pod, nodes)
    attempts.framework.run_pre_score(state, pod, nodes)
    assert mismatches(attempts.entry, attempts.framework, state, pod, nodes=nodes) == wrong


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
