"""Under any faults, each decision is right by what was delivered, and no pod is lost."""

import re

import pytest

from bayplan.sim.world.checkers import InvariantBroken
from tests.seeded import replayable, seeds
from tests.sim.fault_world import FaultWorld
from tests.sim.planted_faults import PLANTS, Plant

SEEDS_BY_DEFAULT = 100
#: What `make sim` tries by default: each planted fault is found by then.
SEEDS_FOR_PLANTS = 20


@pytest.mark.parametrize("seed", seeds(SEEDS_BY_DEFAULT))
def test_after_any_faults_every_pod_is_placed_if_possible_and_the_cache_agrees(seed: int):
    world = FaultWorld(seed)
    with replayable(seed, str(world)):
        world.play()


def test_a_seed_is_repeatable_and_another_seed_differs():
    digests = []
    for seed in (3, 3, 4):
        world = FaultWorld(seed)
        world.play()
        digests.append(world.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.put(monkeypatch)
    assert any(_finding(seed, plant) for seed in range(SEEDS_FOR_PLANTS))


def _finding(seed: int, plant: Plant) -> bool:
    """Whether a seed shows the fault by what the plant names. What else the fault breaks, an
    assertion of the engine for instance, does not count."""
    try:
        FaultWorld(seed).play()
    except (Exception, InvariantBroken) as problem:  # noqa: BLE001 - whatever a fault breaks
        return re.search(plant.finding, str(problem)) is not None
    return False
