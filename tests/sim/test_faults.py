"""Nothing is lost and nothing bound twice, whatever goes wrong. `make sim SEED=7` replays one."""

import os

import pytest

from tests.sim.fault_world import FaultWorld

SEEDS_BY_DEFAULT = 200


def seeds() -> list[int]:
    one = os.environ.get("BAYPLAN_SIM_SEED")
    if one is not None:
        return [int(one)]
    return list(range(int(os.environ.get("BAYPLAN_SIM_SEEDS", SEEDS_BY_DEFAULT))))


@pytest.mark.parametrize("seed", seeds())
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
