"""Under any faults, the delivered objects allow each decision, and no pod is lost."""

import pytest

from tests.seeded import depth, replayable, seeds
from tests.sim.fault_plan import SEEDS_BY_DEFAULT, Plan
from tests.sim.fault_world import FaultWorld
from tests.sim.shrinking import failure_of, shrunk


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(depth(15, SEEDS_BY_DEFAULT)))
def test_after_any_faults_every_pod_is_placed_if_possible_and_the_cache_agrees(seed: int) -> None:
    failure = failure_of(Plan.drawn(seed))
    with replayable(seed):
        assert failure is None, str(shrunk(failure))


def test_a_seed_is_repeatable_and_another_seed_differs() -> None:
    digests: list[str] = []
    for seed in (3, 3, 4):
        world = FaultWorld(seed)
        world.play()
        digests.append(world.digest)
    assert digests[0] == digests[1] != digests[2]
