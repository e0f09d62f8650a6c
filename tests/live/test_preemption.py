"""Preemption against a real API server: budgets and victims.

The controllers of a real cluster do not run: the test writes the allowed disruptions of a
PodDisruptionBudget.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.client import MERGE_PATCH
from tests.live.conftest import UPSTREAM_GROUPS
from tests.live.gangs import X_K8S, Gangs
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.priorities import add_running, priority
from tests.live.world import World, scenario, small_pod

pytestmark = pytest.mark.timeout(400)

POLL_SECONDS = 0.05
NEVER = "not eligible due to preemptionPolicy=Never."


async def add_budget(world: World, node_name: str, allowed_count: int) -> None:
    """Create a budget for all pods of a node."""
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"on": node_name}}
    content = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    await world.client.request("POST", path, content)
    status = {
        "disruptionsAllowed": allowed_count,
        "expectedPods": 3,
        "currentHealthy": 3,
        "desiredHealthy": 3 - allowed_count,
        "observedGeneration": 1,
    }
    await world.client.request(
        "PATCH", f"{path}/b/status", {"status": status}, media_type=MERGE_PATCH
    )


def is_target(content: Object) -> bool:
    """Whether the pod has the condition of a victim of preemption."""
    reasons = [
        each.get("reason")
        for each in content["status"].get("conditions", ())
        if each["type"] == "DisruptionTarget" and each["status"] == "True"
    ]
    return reasons == ["PreemptionByScheduler"]


class History:
    """The changes of a world's pods, in the order of the watch."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.steps: list[tuple[str, str]] = []
        #: Pod → all bound pods at the time of its binding.
        self.beside: dict[str, set[str]] = {}

    def note(self, content: Object) -> None:
        name = content["metadata"]["name"]
        if content["metadata"]["namespace"] != self._world.namespace:
            return
        if nominated := content["status"].get("nominatedNodeName"):
            self._step(name, f"nominated to {nominated}")
        if content["spec"].get("nodeName") and (name, "bound") not in self.steps:
            self._step(name, "bound")
            self.beside[name] = set(self._world.bound()) - {name}
        if is_target(content):
            self._step(name, "target")
        if content["metadata"].get("deletionTimestamp"):
            self._step(name, "leaving")

    def _step(self, name: str, what: str) -> None:
        if (name, what) not in self.steps:
            self.steps.append((name, what))

    def who(self, what: str) -> list[str]:
        return [name for name, step in self.steps if step == what]

    def of(self, name: str) -> list[str]:
        return [step for who, step in self.steps if who == name]

    def place(self, name: str, what: str) -> int:
        return self.steps.index((name, what))


@contextmanager
def history(world: World) -> Iterator[History]:
    log = History(world)
    world.mirror.on_pod.append(log.note)
    yield log
    world.mirror.on_pod.remove(log.note)


@scenario()
@pytest.mark.parametrize(
    ("allowed_count", "chosen", "victims"), [(2, "n2", "d e f"), (3, "n1", "a b c")]
)
async def test_a_budget_protects_pods_according_to_its_status(
    world: World, allowed_count: int, chosen: str, victims: str
) -> None:
    """The pods on n1 have lower priority."""
    names = victims.split()
    await world.add_nodes(ready_node("n1", cpu=3), ready_node("n2", cpu=3))
    await add_running(world, "n1", "a b c", 0)
    await add_running(world, "n2", "d e f", 100)
    await add_budget(world, "n1", allowed_count)
    high = await priority(world, 1000)
    await world.until_running(6)
    with history(world) as log:
        async with world.scheduler():
            await world.add_pods(small_pod("p", cpu=3, spec=high))
            await world.until_bound("p")
            for name in names:
                event = await world.until_event(name, "Preempted")
                assert event["note"].startswith("Preempted by pod ")
    assert world.bound()["p"] == chosen
    assert set(world.bound()) == {*"abcdef", "p"} - {*names}
    for name in names:
        # The condition DisruptionTarget is written before the pod is deleted.
        assert log.of(name) == ["bound", "target", "leaving"]
    # The victim of lowest priority gets the condition after the deletion of all other victims.
    *earlier, last = names
    last_target = log.place(last, "target")
    assert all(log.place(name, "leaving") < last_target for name in earlier)
    # p is nominated first, and bound when the victims are gone.
    assert log.of("p") == [f"nominated to {chosen}", "bound"]
    assert not log.beside["p"] & {*names}


@scenario()
async def test_a_pod_with_preemption_policy_never_evicts_nothing(world: World) -> None:
    await world.add_nodes(ready_node("n1", cpu=3))
    await add_running(world, "n1", "a b c", 0)
    never = await priority(world, 1000, "Never")
    await world.until_running(3)
    with history(world) as log:
        async with world.scheduler() as running:
            await world.add_pods(small_pod("p", cpu=3, spec=never))
            await world.until(
                lambda: world.condition("p").get("message", "").endswith(NEVER), NEVER
            )
            # After the deletions the pod fits, and is bound in a later attempt.
            for name in "abc":
                await world.delete_pod(name)
            await world.until_bound("p")
            assert await running.differences() == []
    assert log.who("target") == []
    assert log.of("p") == ["bound"]


@scenario("group_plane")
@pytest.mark.parametrize("version", [X_K8S, UPSTREAM_GROUPS])
async def test_a_group_preempts_for_all_its_members_or_for_none(
    world: World, tmp_path: Path, version: str
) -> None:
    gangs = Gangs(world, version, tmp_path)
    await gangs.begin()
    await world.add_nodes(ready_node("n1", cpu=3), ready_node("n2", cpu=3))
    await add_running(world, "n1", "a b c", 0)
    await add_running(world, "n2", "d e f", 2000)
    high: dict[str, Any] = await priority(world, 1000)
    await world.until_running(6)
    with history(world) as log:
        async with gangs.scheduler():
            await gangs.add_group("g", 2, high["priorityClassName"])
            await gangs.add_members("g", "p", "q", cpu=3, **high)
            await world.until_unschedulable("p", "q")
            # An eviction would make room for only one member, so that no pod is evicted.
            assert log.who("target") == []
            await world.add_nodes(ready_node("n3", cpu=3))
            await world.until_bound("p", "q")
    assert sorted(log.who("leaving")) == ["a", "b", "c"]
    assert {world.bound()[name] for name in "pq"} == {"n1", "n3"}
    assert set(world.bound()) == {*"defpq"}
