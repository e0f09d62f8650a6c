"""Which ReplicaSets a Deployment scales, pass by pass."""

from typing import Any

import pytest

from bayplan.sim.input.controller_pods import with_uid
from bayplan.sim.world.workloads.deployment_plan import ReplicaSetPods, deployment_plan
from bayplan.sim.world.workloads.plans import OwnedPods
from tests.kit.manifests import Content, pod
from tests.sim.manifests import controller, template

NEW, OLD = template(), template(labels={"app": "old"})


def deployment(replicas: int, **spec: Any) -> Content:
    return with_uid(controller("Deployment", replicas=replicas, **spec))


def replica_set(
    name: str, replicas: int, *, running: int | None = None, pending: int = 0, **fields: Any
) -> ReplicaSetPods:
    """``running``: how many of its pods run; None: all."""
    annotations = fields.pop("annotations", {})
    created_at = fields.pop("created_at", "2025-12-01T00:00:00Z")
    content = with_uid(controller("ReplicaSet", name=name, replicas=replicas, **fields))
    content["metadata"] |= {"creationTimestamp": created_at, "annotations": annotations}
    pods = OwnedPods()
    count = replicas if running is None else running
    for number in range(count + pending):
        status = {"phase": "Running" if number < count else "Pending"}
        one = pod(f"{name}-{number}", status=status)
        one["metadata"]["uid"] = f"{name}-{number}"
        pods.put(one)
    return ReplicaSetPods(content, pods)


def sizes(plan: Any) -> list[tuple[str, int]]:
    return [(key.name, patch["spec"]["replicas"]) for key, patch in plan.patches]


@pytest.mark.parametrize(
    ("counts", "replicas", "patched"),
    [
        ((3,), 3, []),
        ((3,), 5, [("r0", 5)]),
        ((5,), 3, [("r0", 3)]),
        ((), 3, []),
    ],
)
def test_the_only_replica_set_is_scaled(
    counts: tuple[int, ...], replicas: int, patched: list[tuple[str, int]]
) -> None:
    sets = [replica_set(f"r{number}", count) for number, count in enumerate(counts)]
    assert sizes(deployment_plan(deployment(replicas), sets)) == patched


#: (replicas, strategy, old size, new size, running new pods) → what is scaled.
ROLLOUTS: list[tuple[int, Content, tuple[int, int, int], list[tuple[str, int]]]] = [
    (2, {}, (2, 1, 0), []),
    (2, {}, (2, 1, 1), [("old", 1)]),
    (2, {}, (1, 1, 1), [("new", 2)]),
    (2, {}, (1, 2, 2), [("old", 0)]),
    (10, {}, (10, 0, 0), [("new", 3)]),
    (10, {}, (10, 3, 0), [("old", 8)]),
    (10, {"maxSurge": 0, "maxUnavailable": 2}, (10, 0, 0), [("old", 8)]),
    (10, {"maxSurge": 3, "maxUnavailable": 2}, (8, 5, 0), []),
    (4, {"maxSurge": "100%", "maxUnavailable": 0}, (4, 0, 0), [("new", 4)]),
    (4, {"maxSurge": "0%", "maxUnavailable": "1%"}, (4, 0, 0), [("old", 3)]),
    (3, {"maxSurge": "34%", "maxUnavailable": "34%"}, (3, 0, 0), [("new", 2)]),
    (1, {"maxSurge": 0, "maxUnavailable": 1}, (1, 0, 0), [("old", 0)]),
    (3, {}, (0, 5, 5), [("new", 3)]),
]


@pytest.mark.parametrize(("replicas", "rolling", "counts", "patched"), ROLLOUTS)
def test_a_rolling_update_keeps_to_surge_and_unavailability(
    replicas: int,
    rolling: Content,
    counts: tuple[int, int, int],
    patched: list[tuple[str, int]],
) -> None:
    old, new, running = counts
    sets = [
        replica_set("old", old, template=OLD),
        replica_set("new", new, running=running, pending=new - running, template=NEW),
    ]
    plan = deployment_plan(deployment(replicas, strategy={"rollingUpdate": rolling}), sets)
    assert sizes(plan) == patched
    assert plan.waits_for_pod


def test_old_pods_that_are_not_available_go_first() -> None:
    first = replica_set("a", 3, running=1, template=OLD)
    second = replica_set("b", 3, template=OLD, created_at="2025-12-02T00:00:00Z")
    new = replica_set("new", 1, template=NEW, created_at="2025-12-03T00:00:00Z")
    # 7 pods of 4 and a surplus of 1, 3 must be available, 5 are: 2 of a's, then 2 available ones.
    assert sizes(deployment_plan(deployment(4), [first, second, new])) == [("a", 0), ("b", 2)]


def test_a_recreation_waits_until_the_old_pods_are_gone() -> None:
    subject = deployment(2, strategy={"type": "Recreate"})
    new = replica_set("new", 0, template=NEW)
    assert sizes(deployment_plan(subject, [replica_set("old", 2, template=OLD), new])) == [
        ("old", 0)
    ]
    assert not deployment_plan(
        subject, [replica_set("old", 0, running=1, template=OLD), new]
    ).patches
    gone = replica_set("old", 0, template=OLD)
    assert sizes(deployment_plan(subject, [gone, new])) == [("new", 2)]


@pytest.mark.parametrize(
    ("strategy", "old", "size"), [({}, 4, 1), ({}, 0, 4), ({"type": "Recreate"}, 0, 4)]
)
def test_a_changed_template_gets_a_replica_set(strategy: Content, old: int, size: int) -> None:
    subject = deployment(4, strategy=strategy, template=NEW)
    sets = [replica_set("old", old, template=OLD)]
    [created] = deployment_plan(subject, sets, has_new_template=True).create
    assert created["spec"]["replicas"] == size
    assert created["metadata"]["labels"]["app"] == "web"


def test_without_an_equal_template_the_newest_revision_is_the_new_one() -> None:
    revision = "deployment.kubernetes.io/revision"
    sets = [
        replica_set("b", 1, template=OLD, annotations={revision: "2"}),
        replica_set("a", 1, template=OLD, annotations={revision: "10"}),
    ]
    assert sizes(deployment_plan(deployment(1), sets)) == [("b", 0)]


def test_replica_sets_are_scaled_in_proportion_if_the_deployment_is_scaled() -> None:
    noted = {
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "13",
    }
    sets = [
        replica_set("old", 8, template=OLD, annotations=noted),
        replica_set("new", 5, running=0, pending=5, template=NEW, annotations=noted),
    ]
    # 20 and a surplus of 5: 8 * 25 / 13 and 5 * 25 / 13, rounded.
    assert sizes(deployment_plan(deployment(20), sets)) == [("old", 15), ("new", 10)]
    assert sizes(deployment_plan(deployment(0), sets)) == [("old", 0), ("new", 0)]


def test_a_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    sets = [
        replica_set("old", 2, template=OLD, created_at="2025-12-01T00:00:00Z"),
        replica_set("new", 0, template=NEW, created_at="2025-12-02T00:00:00Z"),
    ]
    assert sizes(deployment_plan(deployment(3, paused=True), sets)) == [("old", 3)]


def test_a_complete_rollout_waits_for_nothing() -> None:
    sets = [replica_set("old", 0, template=OLD), replica_set("new", 2, template=NEW)]
    plan = deployment_plan(deployment(2), sets)
    assert not plan.patches and not plan.waits_for_pod
