"""The eviction subresource: what budgets allow, with upstream's codes, messages and causes."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_errors import TooManyRequestsError
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import POD
from bayplan.objects.keys import object_key
from bayplan.ports import ApiError
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
from tests.kit import manifests

VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
NOT_READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False"}]}


def refusal(cluster: EmbeddedCluster, name: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        cluster.evictions.evict(key(name))
    return refused.value


def is_there(cluster: EmbeddedCluster, name: str) -> bool:
    return cluster.get(key(name)) is not None


def test_a_pod_without_a_budget_is_evicted_with_a_condition_about_the_eviction() -> None:
    cluster = cluster_of(manifests.pod("p", nodeName="n1"))
    last: list[Json] = []
    cluster.observe(lambda before, after: last.append((after or before).content), (POD,))  # type: ignore[union-attr]
    cluster.evictions.evict(key("p"))
    assert not is_there(cluster, "p")
    condition = last[-1]["status"]["conditions"][-1]
    assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    assert condition["reason"] == "EvictionByEvictionAPI"
    assert condition["message"] == "Eviction API: evicting"


def test_an_eviction_uses_a_disruption_and_the_next_one_is_refused() -> None:
    cluster = cluster_of(budget(minAvailable=2), *pods(3))
    cluster.evictions.evict(key("p0"))
    assert not is_there(cluster, "p0")
    cluster.create(manifests.node())  # lets the budget controller act
    assert allowed(cluster) == 0
    refused = refusal(cluster, "p1")
    assert (refused.code, refused.reason, str(refused)) == (429, "TooManyRequests", VIOLATED)
    assert isinstance(refused, TooManyRequestsError)
    assert refused.cause == "The disruption budget b needs 2 healthy pods and has 2 currently"
    assert is_there(cluster, "p1")


def test_two_evictions_of_one_moment_cannot_use_one_disruption() -> None:
    """The budget controller acts later, so the server itself records the first eviction."""
    cluster = cluster_of(budget(minAvailable=1), *pods(2))
    statuses: list[Json] = []
    cluster.observe(
        lambda _, after: statuses.append(after.content["status"]) if after else None,
        (POD_DISRUPTION_BUDGET,),
    )
    cluster.evictions.evict(key("p0"))
    first = statuses[0]
    assert (first["disruptionsAllowed"], list(first["disruptedPods"])) == (0, ["p0"])
    assert refusal(cluster, "p1").code == 429
    cluster.create(protected_pod("p2"))
    assert (allowed(cluster), status(cluster).get("disruptedPods")) == (1, {})
    cluster.evictions.evict(key("p1"))


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_does_not_run_needs_no_budget(phase: str) -> None:
    over = protected_pod("over", node="" if phase == "Pending" else "n1", phase=phase)
    cluster = cluster_of(budget(minAvailable=5), *pods(2), over)
    cluster.evictions.evict(key("over"))
    assert not is_there(cluster, "over")


@pytest.mark.parametrize(
    ("policy", "minimum", "is_evicted"),
    [
        (None, 2, True),
        ("IfHealthyBudget", 2, True),
        ("IfHealthyBudget", 3, False),
        ("AlwaysAllow", 3, True),
    ],
)
def test_the_policy_decides_whether_an_unready_pod_is_evicted(
    policy: str | None, minimum: int, is_evicted: bool
) -> None:
    bounds: dict[str, Any] = {"minAvailable": minimum}
    if policy is not None:
        bounds["unhealthyPodEvictionPolicy"] = policy
    cluster = cluster_of(budget(**bounds), *pods(2), protected_pod("ill", **NOT_READY))
    if is_evicted:
        cluster.evictions.evict(key("ill"))
    else:
        assert refusal(cluster, "ill").code == 429
    assert is_there(cluster, "ill") is not is_evicted
    assert "disruptedPods" not in status(cluster)


def test_several_budgets_of_one_pod_are_an_error() -> None:
    second = budget(minAvailable=0)
    second["metadata"] = {**second["metadata"], "name": "c"}
    cluster = cluster_of(budget(minAvailable=0), second, *pods(1))
    refused = refusal(cluster, "p0")
    assert refused.code == 500
    assert str(refused) == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support."
    )


@pytest.mark.parametrize(
    ("budget_status", "code", "cause"),
    [
        ({"observedGeneration": 0, "disruptionsAllowed": 1}, 429, "is still being processed by"),
        ({"disruptionsAllowed": -1}, 403, None),
        (
            {
                "disruptionsAllowed": 0,
                "currentHealthy": 3,
                "desiredHealthy": 1,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "SyncFailed",
                        "message": "no scale",
                    }
                ],
            },
            429,
            "does not allow evicting pods currently because it failed sync: no scale",
        ),
        (
            {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 1},
            429,
            "does not allow evicting pods currently",
        ),
    ],
)
def test_the_status_of_the_budget_decides(
    budget_status: Json, code: int, cause: str | None
) -> None:
    refused = refusal(cluster_of(*pods(3), budget(budget_status, minAvailable=1)), "p0")
    assert refused.code == code
    if cause is not None:
        assert isinstance(refused, TooManyRequestsError)
        assert f"The disruption budget b {cause}" in refused.cause


def test_a_pod_that_does_not_exist_cannot_be_evicted() -> None:
    assert refusal(cluster_of(), "p0").code == 404


def test_the_scale_of_a_budget_is_that_of_the_stored_controller() -> None:
    """A terminating pod and its replacement do not raise the scale."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}}
    spec = {"replicas": 3, "selector": {}, "template": {"spec": {"containers": []}}}
    cluster = cluster_of(
        {**reference, "metadata": {"name": "r", "uid": "r"}, "spec": spec},
        budget(maxUnavailable=1),
        *pods(3, owner="r"),
    )
    cluster.evictions.evict(key("p0"))
    cluster.create(protected_pod("p3", owner="r"))
    cluster.create(protected_pod("p4", owner="r"))
    expected = {"expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 4}
    assert {name: status(cluster)[name] for name in expected} == expected
    cluster.delete(object_key("apps/v1 ReplicaSet", "default", "r"))
    cluster.create(protected_pod("p5", owner="r"))
    assert status(cluster)["expectedPods"] == 5
