"""Nothing is lost and nothing bound twice, whatever goes wrong. `make sim SEED=7` replays one."""

import pytest

from tests.seeded import seeds
from tests.sim.fault_world import FaultWorld

SEEDS_BY_DEFAULT = 200


@pytest.mark.parametrize("seed", seeds(SEEDS_BY_DEFAULT))
def test_after_any_faults_every_pod_is_where_it_can_be_and_the_cache_agrees(seed: int):
    world = FaultWorld(seed)
    try:
        world.play()
    except BaseException as problem:
        problem.add_note(f"{world.options}; replay it with: make sim SEED={seed}")
        raise


def test_a_seed_repeats_itself_and_another_does_not():
    digests = []
    for seed in (3, 3, 4):
        world = FaultWorld(seed)
        world.play()
        digests.append(world.digest)
    assert digests[0] == digests[1] != digests[2]
