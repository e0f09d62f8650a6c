"""Drawn racks that are full: a group frees the rack in which the fewest owners lose pods.

The group needs a whole rack, so that all pods of the rack that it takes leave, and no other pod.
Planted faults show that the checks see.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings

from bayplan.api.objects import POD
from bayplan.api.pod_groups import REQUIRED_TOPOLOGY
from bayplan.engine.podgroups import preemption
from bayplan.engine.podgroups.preemption import PodGroupPreemptor, PodGroupToPlace
from bayplan.objects.keys import object_key
from tests.scenarios.gangs import FIT, add_member, add_members, put_group
from tests.scenarios.world import World, play

NODES_PER_RACK, CPU = 2, 2
#: The owners of pods: two groups, and single pods, each of which is one by itself.
OWNERS = ("a", "b", "")
#: More important than the group: such a pod keeps its rack.
IMPORTANT = 200

#: For each place of a rack: the owner of its pod, and whether the pod is important.
places = st.tuples(st.sampled_from(OWNERS), st.sampled_from((False,) * 9 + (True,)))
racks = st.lists(
    st.lists(places, min_size=NODES_PER_RACK * CPU, max_size=NODES_PER_RACK * CPU),
    min_size=2,
    max_size=4,
)
Racks = list[list[tuple[str, bool]]]


def cheapest(drawn: Racks) -> set[str]:
    """The racks in which the fewest owners lose pods; empty: none can be freed."""
    costs: dict[int, set[str]] = defaultdict(set)
    for rack, pods in enumerate(drawn):
        if not any(is_important for _, is_important in pods):
            owners = {owner or f"single {place}" for place, (owner, _) in enumerate(pods)}
            costs[len(owners)].add(f"r{rack}")
    return costs[min(costs)] if costs else set()


async def scene(world: World, drawn: Racks) -> None:
    rack_of: dict[str, str] = {}
    there: dict[str, str] = {}
    for name in ("a", "b"):
        put_group(world, name, 1)
    for rack, pods in enumerate(drawn):
        for place, (owner, is_important) in enumerate(pods):
            node_name = f"r{rack}-{place // CPU}"
            if node_name not in rack_of:
                rack_of[node_name] = f"r{rack}"
                world.add_node(node_name, cpu=CPU, labels={"rack": f"r{rack}"})
            name = f"pod-{rack}-{place}"
            there[name] = f"r{rack}"
            priority = IMPORTANT if is_important else 0
            options: dict[str, Any] = {"cpu": 1, "priority": priority, "node": node_name}
            options["status"] = {"phase": "Running"}
            if owner:
                add_member(world, name, owner, **options)
            else:
                world.add_pod(name, **options)
    await world.until(1)
    put_group(world, "g", NODES_PER_RACK, annotations={REQUIRED_TOPOLOGY: "rack"})
    members = [f"m{number}" for number in range(NODES_PER_RACK)]
    add_members(world, members, "g", cpu=CPU, priority=100)
    await world.until(60)
    possible = cheapest(drawn)
    placed = [found for name in members if (found := world.bound(name)) is not None]
    lost = {n for n in there if world.cluster.get(object_key(POD, "default", n)) is None}
    if not possible:
        assert not placed and not lost
        return
    assert len(placed) == len(members)
    freed = {rack_of[node_name] for _, node_name in placed}
    assert len(freed) == 1
    assert freed <= possible, f"{freed} is freed, and {sorted(possible)} would hurt fewer"
    assert lost == {name for name, where in there.items() if where in freed}


def explore(examples: int, phases: tuple[Phase, ...]) -> None:
    @settings(max_examples=examples, deadline=None, phases=phases, derandomize=True, database=None)
    @given(racks)
    def attempt(drawn: Racks) -> None:
        play(lambda world: scene(world, drawn), plugins=[*FIT, "DefaultPreemption"])

    attempt()


def test_a_group_frees_the_rack_in_which_the_fewest_owners_lose_pods() -> None:
    explore(40, (Phase.generate, Phase.shrink))


# ---- planted faults -------------------------------------------------------------------------


def the_first_rack_is_freed(patch: pytest.MonkeyPatch) -> None:
    of = PodGroupToPlace.domains_to_free
    patch.setattr(PodGroupToPlace, "domains_to_free", lambda *args: sorted(of(*args))[:1])


def the_most_owners_are_hurt(patch: pytest.MonkeyPatch) -> None:
    hurt = preemption._hurt
    patch.setattr(preemption, "_hurt", lambda plan: tuple(-each for each in hurt(plan)))
    patch.setattr(preemption, "_hurt_at_least", lambda *_: (-99, 0))


def the_rack_is_freed_in_part(patch: pytest.MonkeyPatch) -> None:
    victims = PodGroupPreemptor._victims
    patch.setattr(
        PodGroupPreemptor, "_victims", lambda *args, **options: victims(*args, **options)[:-1]
    )


def important_pods_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodGroupPreemptor, "_highest_to_evict", lambda *_: IMPORTANT)


FAULTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    the_first_rack_is_freed,
    the_most_owners_are_hurt,
    the_rack_is_freed_in_part,
    important_pods_leave,
)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        explore(200, (Phase.generate,))
