"""Random numbers are derived from a given seed."""

import os
import subprocess
import sys
from collections import Counter

from bayplan import rng


def test_streams_of_one_name_are_equal_and_of_two_names_differ():
    def draws(seed: int, name: str) -> list[float]:
        generator = rng.stream(seed, name)
        return [generator.random() for _ in range(5)]

    assert draws(1, "faults") == draws(1, "faults")
    assert draws(1, "faults") != draws(1, "jitter")
    assert draws(1, "faults") != draws(2, "faults")


def test_the_hash_is_the_same_in_a_process_with_another_hash_seed():
    code = "from bayplan import rng; print(rng.stable_hash('node-1'))"
    results = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert results == {f"{rng.stable_hash('node-1')}\n"}


def test_ties_are_drawn_evenly_and_again_for_each_attempt():
    drawn = Counter(rng.tie_index(7, f"uid-{i}", 1, 4) for i in range(4000))
    assert set(drawn) == {0, 1, 2, 3}
    assert all(850 < count < 1150 for count in drawn.values())
    attempts = {rng.tie_index(7, "uid", attempt, 1000) for attempt in range(20)}
    assert len(attempts) > 10


def test_a_token_is_never_drawn_twice():
    assert len({rng.unique_token() for _ in range(100)}) == 100
