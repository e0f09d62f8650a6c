"""Nothing is lost and nothing bound twice, whatever goes wrong."""

import pytest

from tests.seeded import replayable, seeds
from tests.sim.fault_world import FaultWorld

SEEDS_BY_DEFAULT = 200


@pytest.mark.parametrize("seed", seeds(SEEDS_BY_DEFAULT))
def test_after_any_faults_every_pod_is_where_it_can_be_and_the_cache_agrees(seed: int):
    world = FaultWorld(seed)
    with replayable(seed, str(world.options)):
        world.play()


def test_a_seed_repeats_itself_and_another_does_not():
    digests = []
    for seed in (3, 3, 4):
        world = FaultWorld(seed)
        world.play()
        digests.append(world.digest)
    assert digests[0] == digests[1] != digests[2]
