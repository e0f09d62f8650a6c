"""The allowed disruptions of budgets while pods come, run, are evicted and end."""

import asyncio

import pytest

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.objects.keys import object_key
from tests.adapters.budgets import (
    Json,
    allowed,
    budget,
    cluster_of,
    key,
    pods,
    protected_pod,
    status,
)

WRITTEN_STATUS = {
    "disruptionsAllowed": 7,
    "currentHealthy": 9,
    "desiredHealthy": 2,
    "expectedPods": 9,
}


@pytest.mark.parametrize(
    ("bounds", "desired", "allowed_count"),
    [
        ({"minAvailable": 2}, 2, 3),
        ({"minAvailable": 9}, 9, 0),
        ({"minAvailable": "50%"}, 3, 2),
        ({"minAvailable": "100%"}, 5, 0),
        ({"maxUnavailable": 1}, 4, 1),
        ({"maxUnavailable": "30%"}, 3, 2),
        ({"maxUnavailable": 8}, 0, 5),
        ({}, 0, 0),
    ],
)
def test_numbers_and_percentages_refer_to_the_pods_of_the_controllers(
    bounds: Json, desired: int, allowed_count: int
) -> None:
    result = status(cluster_of(*pods(5, owner="r"), budget(**bounds)))
    assert result["disruptionsAllowed"] == allowed_count
    assert (result["desiredHealthy"], result["currentHealthy"]) == (desired, 5)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_order_of_budget_and_pods_does_not_matter(is_first: bool) -> None:
    parts = [budget(minAvailable=1)], pods(3)
    first, second = parts if is_first else reversed(parts)
    assert allowed(cluster_of(*first, *second)) == 2


def test_pods_without_a_controller_count_only_for_a_number() -> None:
    assert allowed(cluster_of(*pods(3), budget(minAvailable=1))) == 2
    result = status(cluster_of(*pods(3), budget(maxUnavailable=1)))
    assert (result["expectedPods"], result["disruptionsAllowed"]) == (0, 0)


def test_a_running_pod_is_healthy_unless_its_condition_differs() -> None:
    unready = [{"type": "Ready", "status": "False"}]
    result = status(
        cluster_of(
            protected_pod("waits", node=""),
            protected_pod("runs"),
            protected_pod("unready", conditions=unready),
            protected_pod("ended", phase="Succeeded"), budget(minAvailable=0),
        )
    )  # fmt: skip
    assert (result["currentHealthy"], result["expectedPods"]) == (1, 4)


async def test_terminating_pods_reduce_the_allowed_disruptions() -> None:
    slow = protected_pod("slow")
    slow["spec"]["terminationGracePeriodSeconds"] = 1000
    cluster = cluster_of(*pods(3, owner="r"), slow, budget(minAvailable=1))
    for name, allowed_count in (("p0", 2), ("slow", 1)):
        cluster.delete(key(name))
        await asyncio.sleep(0)
        assert allowed(cluster) == allowed_count
    cluster.end_pod(key("p1"))
    await asyncio.sleep(0)
    assert allowed(cluster) == 0


async def test_evicted_pods_still_count_as_expected() -> None:
    cluster = cluster_of(*pods(4, owner="r"), budget(maxUnavailable="50%"))
    assert allowed(cluster) == 2
    cluster.delete(key("p0"))
    await asyncio.sleep(0)
    assert (allowed(cluster), status(cluster)["expectedPods"]) == (1, 4)


async def test_a_written_status_stays_until_a_pod_starts_or_stops_running() -> None:
    cluster = cluster_of(
        *pods(3),
        protected_pod("waits", node=""),
        budget(WRITTEN_STATUS, minAvailable=1),
        protected_pod("late"),
    )
    cluster.delete(key("waits"))
    await asyncio.sleep(0)
    assert status(cluster) == WRITTEN_STATUS
    cluster.delete(key("p0"))
    await asyncio.sleep(0)
    assert (allowed(cluster), status(cluster)["currentHealthy"]) == (2, 3)


async def test_a_new_spec_recomputes_the_status_and_a_written_status_stays() -> None:
    cluster = cluster_of(*pods(3), budget(WRITTEN_STATUS, minAvailable=1))
    cluster.update(budget(minAvailable=2))
    await asyncio.sleep(0)
    assert allowed(cluster) == 1
    cluster.update(budget(WRITTEN_STATUS, minAvailable=2))
    cluster.create(protected_pod("late"))
    await asyncio.sleep(0)
    assert status(cluster) == WRITTEN_STATUS


async def test_other_pods_and_deleted_budgets_are_ignored() -> None:
    stranger = protected_pod("stranger")
    stranger["metadata"]["labels"] = {"app": "b"}
    elsewhere = protected_pod("elsewhere")
    elsewhere["metadata"]["namespace"] = "other"
    cluster = cluster_of(*pods(2), stranger, elsewhere, budget(minAvailable=1))
    assert allowed(cluster) == 1
    before = cluster.version
    cluster.delete(key("stranger"))
    await asyncio.sleep(0)
    assert cluster.version == before + 1
    cluster.delete(object_key(POD_DISRUPTION_BUDGET, "default", "b"))
    cluster.delete(key("p0"))
    await asyncio.sleep(0)
    assert cluster.version == before + 3
