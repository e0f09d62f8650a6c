"""DefaultPreemption: eligible pods, messages and results."""

from typing import Any

import pytest

from bayplan.framework.events import QueueingHint
from bayplan.framework.preemption import Candidates, Victims
from bayplan.framework.status import Code, Status
from bayplan.plugins.default_preemption.plugin import DefaultPreemptionArgs
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import EARLY, LATER, LATEST, budget, scene, started

GOING: dict[str, Any] = {
    "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
}
HIGH = pod("p", cpu=2, priority=9)


def test_the_least_important_pods_make_room() -> None:
    over = scene(
        node("n1", cpu=2), pod("low", cpu=2, node="n1", priority=1), node("n2", cpu=2),
        pod("lower", cpu=2, node="n2"),
    )  # fmt: skip
    result = over.attempt(HIGH)
    expected = "preemption: found a potential placement for pod on node n2, preempting 1 victims"
    assert (result.nominated, result.message) == ("n2", expected)
    assert over.cluster.metrics.value("scheduler_preemption_attempts_total") == 1
    assert over.cluster.metrics.value("scheduler_preemption_victims_sum") == 1


def test_no_pod_is_evicted_for_a_pod_that_never_preempts() -> None:
    over = scene(node("n1", cpu=2), pod("low", cpu=2, node="n1"))
    humble = pod("p", cpu=2, priority=9, spec={"preemptionPolicy": "Never"})
    result = over.attempt(humble)
    assert result.nominated is None
    assert result.message == "preemption: not eligible due to preemptionPolicy=Never."
    assert over.cluster.writes == []


def test_a_pod_whose_victims_are_terminating_evicts_no_more() -> None:
    going = pod("low", cpu=2, node="n1", terminating=True, status=GOING)
    over = scene(node("n1", cpu=2), going, node("n2", cpu=2), pod("other", cpu=2, node="n2"))
    waiting = pod("p", cpu=2, priority=9, nominated_node="n1")
    result = over.attempt(waiting)
    assert result.nominated is None
    expected = "preemption: not eligible due to a terminating pod on the nominated node."
    assert result.message == expected


def test_pods_that_terminate_for_another_reason_do_not_block_preemption() -> None:
    over = scene(node("n1", cpu=2), pod("low", cpu=2, node="n1", terminating=True))
    assert over.attempt(pod("p", cpu=2, priority=9, nominated_node="n1")).nominated == "n1"


def test_if_the_nominated_node_cannot_be_helped_another_node_is_searched() -> None:
    going = pod("low", cpu=2, node="n1", terminating=True, status=GOING)
    tainted = node("n1", cpu=2, taints=[{"key": "k", "effect": "NoSchedule"}])
    over = scene(tainted, going, node("n2", cpu=2), pod("other", cpu=2, node="n2"))
    assert over.attempt(pod("p", cpu=2, priority=9, nominated_node="n1")).nominated == "n2"


def test_the_message_has_the_reasons_of_the_nodes() -> None:
    over = scene(
        node("n1", cpu=2), pod("equal", cpu=2, node="n1", priority=9),
        node("n2", cpu=1), pod("low", cpu=1, node="n2"),
        node("n3", cpu=2), pod("big", cpu=1, node="n3", priority=9), pod("s", cpu=1, node="n3"),
    )  # fmt: skip
    result = over.attempt(HIGH)
    assert result.nominated == ""
    assert result.message == (
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_search_without_candidates_is_cached_until_a_row_changes() -> None:
    over = scene(node("n1", cpu=2), pod("equal", cpu=2, node="n1", priority=9))
    first = over.attempt(HIGH)
    searched: list[object] = []
    find, over.plugin.find = over.plugin.find, lambda *pod: searched.append(pod)  # type: ignore[method-assign]
    assert over.attempt(pod("q", cpu=2, priority=9)).message == first.message
    assert searched == []
    over.plugin.find = find  # type: ignore[method-assign]
    over.cluster.add(node("n2", cpu=2), pod("low", cpu=2, node="n2"))
    assert over.attempt(HIGH).nominated == "n2"


def test_a_group_that_comes_with_a_lower_priority_than_its_pods_ends_a_cached_search() -> None:
    """No row of a node changes."""
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    over = scene(node("n1", cpu=2), pod("a", node="n1", cpu=2, priority=10, spec=spec))
    preemptor = pod("p", cpu=2, priority=5)
    assert over.attempt(preemptor).nominated == ""
    over.put_group("g", priority=1, disruptionMode={"all": {}})
    assert over.attempt(preemptor).nominated == "n1"


def test_a_preemptor_stays_out_of_the_queue_until_its_victims_are_evicted() -> None:
    over = scene(node("n1", cpu=2), pod("low", cpu=2, node="n1"))
    over.attempt(HIGH)
    status = over.plugin.pre_enqueue(HIGH)
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for the preemption for this pod to be finished"
    over.perform()
    assert over.plugin.pre_enqueue(HIGH) is None


def test_the_deletion_of_a_pod_queues_no_pod_for_this_plugin() -> None:
    (event,) = scene().plugin.events_to_register()
    assert event.hint is not None
    assert event.hint(HIGH, pod("gone", node="n1"), None) is QueueingHint.QUEUE_SKIP


# ---- reviews -------------------------------------------------------------------


def two_nodes() -> Any:
    return scene(
        node("n1", cpu=2), pod("a", cpu=2, node="n1"),
        node("n2", cpu=2), pod("b", cpu=2, node="n2", priority=1),
    )  # fmt: skip


def test_a_review_may_remove_candidates() -> None:
    def without_n1(candidates: Candidates) -> Candidates:
        assert [p.name for p in candidates["n1"].pods] == ["a"]
        return {name: victims for name, victims in candidates.items() if name != "n1"}

    assert two_nodes().attempt(HIGH, without_n1).nominated == "n2"


def test_a_review_may_change_victims() -> None:
    def other_victims(candidates: Candidates) -> Candidates:
        more = candidates["n2"].pods + candidates["n1"].pods
        return {"n2": Victims(candidates["n2"].pods), "n1": Victims(more)}

    assert two_nodes().attempt(HIGH, other_victims).nominated == "n2"


def test_a_review_that_removes_all_candidates_ends_the_search() -> None:
    over = two_nodes()
    result = over.attempt(HIGH, lambda _: {})
    assert result.message == "preemption: no candidate node for preemption"
    assert result.nominated is None and over.cluster.writes == []


def test_a_waiting_review_ends_post_filter_without_evictions() -> None:
    over = two_nodes()
    result = over.attempt(HIGH, lambda _: Status(Code.WAIT))
    assert result.code == "Wait" and over.cluster.writes == []
    assert over.cluster.metrics.value("scheduler_preemption_attempts_total") == 0


def victim(name: str, node_name: str, options: Any) -> PodInfo:
    fields: dict[str, Any] = {"cpu": 2, "node": node_name, **options}
    return pod(name, **fields)


# ---- the choice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([{"priority": 1}], [{"priority": 2}], id="the highest victim is lower"),
        pytest.param(
            [{"priority": 2, "cpu": 2}],
            [{"priority": 2, "cpu": 1}, {"cpu": 1}],
            id="a lower sum of priorities",
        ),
        pytest.param(
            [{"status": started(LATER)}], [{"status": started(EARLY)}], id="started later"
        ),
        pytest.param([{}], [{"status": started(LATEST)}], id="not started yet"),
    ],
)
def test_the_cheapest_node_is_chosen(one: list[Any], other: list[Any]) -> None:
    for best, worse in (("n1", "n2"), ("n2", "n1")):
        placed = [
            victim(f"{name}-{index}", name, options)
            for name, pods in ((best, one), (worse, other))
            for index, options in enumerate(pods)
        ]
        over = scene(node("n1", cpu=2), node("n2", cpu=2), *placed)
        assert over.attempt(HIGH).nominated == best


def test_a_budget_that_is_used_up_makes_a_node_less_preferred() -> None:
    labels = {"app": "a"}
    over = scene(
        node("n1", cpu=2), pod("a", cpu=2, node="n1", labels=labels),
        node("n2", cpu=2), pod("b", cpu=2, node="n2", priority=5),
    )  # fmt: skip
    over.put_budgets(budget("b", labels, 0))
    assert over.attempt(HIGH).nominated == "n2"


# ---- args ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"min_candidate_nodes_percentage": 101}, "minCandidateNodesPercentage"),
        ({"min_candidate_nodes_percentage": -1}, "minCandidateNodesPercentage"),
        ({"min_candidate_nodes_absolute": -1}, "minCandidateNodesAbsolute"),
        (
            {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 0},
            "minCandidateNodesPercentage",
        ),
    ],
)
def test_args_out_of_range_are_reported(args: dict[str, Any], path: str) -> None:
    assert [where for where, _ in DefaultPreemptionArgs(**args).problems()] == [path]


def test_the_search_ends_at_the_number_of_candidates_in_the_args() -> None:
    nodes = [node(f"n{index}", cpu=2) for index in range(9)]
    pods = [pod(f"low-{each.metadata.name}", cpu=2, node=each.metadata.name) for each in nodes]
    few: dict[str, Any] = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 4}
    assert len(scene(*nodes, *pods, **few).candidates(HIGH)) == 4
    share: dict[str, Any] = {
        "min_candidate_nodes_percentage": 67,
        "min_candidate_nodes_absolute": 4,
    }
    assert len(scene(*nodes, *pods, **share).candidates(HIGH)) == 6
    assert len(scene(*nodes, *pods).candidates(HIGH)) == 9
