"""examples/starving_gang: the benefit of a reservation."""

import json
from typing import Any

from tests.cli.command_line import answer
from tests.examples.policies import EXAMPLES

FOLDER = EXAMPLES / "starving_gang"


def test_a_reservation_shortens_the_wait_of_the_gang_and_delays_other_pods_little() -> None:
    configs = [
        text
        for name in ("greedy", "reserving")
        for text in ("--config", str(FOLDER / f"{name}.yaml"))
    ]
    metrics = ("--metric", "gangs", "--metric", "waiting", "--processes", "1", "-o", "json")
    comparison: Any = json.loads(answer("compare", FOLDER, *configs, *metrics))
    waits = {name: mean(comparison["policies"][name], "gang_waiting_seconds_max") for name in NAMES}
    assert waits == {"greedy": 320, "reserving": 110}
    mean_waits = {
        name: mean(comparison["policies"][name], "waiting_seconds_mean") for name in NAMES
    }
    assert mean_waits["reserving"] < mean_waits["greedy"] + 10


NAMES = ("greedy", "reserving")


def mean(policy: Any, metric: str) -> float:
    return policy[metric]["mean"]
