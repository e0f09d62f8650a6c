"""After any disruptions, every controller has its number of pods, running or pending."""

from pathlib import Path

import pytest

from tests.seeded import depth, replayable, seeds
from tests.sim.disruptions import check, play

SEEDS_BY_DEFAULT = depth(10, 40)


@pytest.mark.parametrize("seed", seeds(SEEDS_BY_DEFAULT))
def test_in_the_calm_end_every_controller_has_its_pods(seed: int, tmp_path: Path) -> None:
    with replayable(seed):
        check(seed, tmp_path)


def test_a_seed_gives_the_same_digest_again(tmp_path: Path) -> None:
    digests = [play(seed, tmp_path)[1].digest for seed in (3, 3, 4)]
    assert digests[0] == digests[1] != digests[2]
