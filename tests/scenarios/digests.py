"""S-17: scenes whose decisions follow from the seed alone. As a program it prints their digests."""

from collections.abc import Callable
from dataclasses import replace

from tests.scenarios import equal_pods, evictions
from tests.scenarios.world import Setup, World, play


def s06_part_a(seed: int) -> World:
    return play(evictions.h_preempts, Setup(plugins=evictions.PLUGINS, seed=seed))


def s07_part_b(seed: int) -> World:
    return play(equal_pods.part_b, replace(equal_pods.setup(), seed=seed))


SCENARIOS: dict[str, Callable[[int], World]] = {"S-06 A": s06_part_a, "S-07 B": s07_part_b}

if __name__ == "__main__":
    for name, played in SCENARIOS.items():
        print(name, played(1).digest)
