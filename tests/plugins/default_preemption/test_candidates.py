"""The choice among candidates."""

import numpy as np

from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption.candidates import chosen, joined, listed
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from bayplan.testing.clusters import SampleCluster
from tests.plugins.preemption_kit import EARLY, LATER, started


def victims(*pods: PodInfo, violations: int = 0) -> Victims:
    return Victims(pods, violations)


def best(*victims: Victims) -> list[int]:
    batch = listed(list(enumerate(victims)))
    return batch.costs.cheapest().tolist()


def test_fewer_violated_budgets_are_preferred_first() -> None:
    assert best(victims(pod("a", priority=9)), victims(pod("b"), violations=1)) == [0]


def test_then_a_lower_highest_priority_is_preferred() -> None:
    low = [pod(f"l{index}", priority=1) for index in range(9)]
    assert best(victims(*low), victims(pod("h", priority=2))) == [0]


def test_the_first_victim_in_an_extenders_order_counts() -> None:
    """Upstream: minHighestPriorityScoreFunc, Pods[0]."""
    low, high, middle = (pod(f"p{priority}", priority=priority) for priority in (1, 9, 5))
    assert best(victims(low, high), victims(middle)) == [0]
    assert best(victims(high, low), victims(middle)) == [1]


def test_then_a_lower_sum_of_priorities_is_preferred_in_which_every_pod_counts() -> None:
    one, other = pod("a", priority=-5), pod("b", priority=-5)
    assert best(victims(one, other), victims(one)) == [1]
    assert best(victims(one, pod("c", priority=-9)), victims(one, other)) == [0]


def test_then_the_latest_start_of_the_most_important_victim_is_preferred() -> None:
    early, later = (pod("a", status=started(stamp)) for stamp in (EARLY, LATER))
    assert best(victims(early), victims(later)) == [1]
    low = pod("l", priority=-1, status=started(EARLY))
    assert best(victims(later, low), victims(early, low)) == [0]


def test_among_equal_candidates_the_pod_draws_one_regardless_of_their_order() -> None:
    nodes = SampleCluster().add(*(node(f"n{index}") for index in range(8))).lend().nodes
    candidates = [(index, victims(pod("a"))) for index in range(8)]
    drawn: set[str] = set()
    for uid in map(str, range(40)):
        parts = joined([listed(candidates[5:]), listed(candidates[:5])])
        ranking = {
            nodes.name(int(batch.positions[chosen(batch, nodes, 0, uid)]))
            for batch in (listed(candidates), listed(candidates[::-1]), parts)
        }
        assert len(ranking) == 1
        drawn |= ranking
    assert len(drawn) > 3


def test_batches_keep_their_victims_when_they_are_joined_and_selected() -> None:
    both = joined([listed([(4, victims(pod("a")))]), listed([(2, victims(pod("b")))])])
    assert [both.victims(index).pods[0].name for index in range(2)] == ["a", "b"]
    taken = both.take(np.array([1], np.intp))
    assert (taken.positions.tolist(), taken.victims(0).pods[0].name) == ([2], "b")
