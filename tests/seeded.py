"""Tests that draw from a seed: which seeds are tried, and how a machine is run with one.

`make sim SEEDS=80` tries the first 80 seeds, `make sim SEEDS=1000..1099` tries fresh ones, and
`make sim SEED=7` replays one. A failure ends with the command that replays it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

#: Sequences of events are long and slow to draw, and most need something that others made.
UNCHECKED = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)


#: Environment variables that `make sim` sets.
ONE_SEED, MANY_SEEDS = "BAYPLAN_SIM_SEED", "BAYPLAN_SIM_SEEDS"

_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")


def seeds(count: int) -> list[int]:
    """The seeds that the environment names, or the first ``count``."""
    one = os.environ.get(ONE_SEED)
    return [int(one)] if one is not None else parse_seeds(os.environ.get(MANY_SEEDS, str(count)))


def parse_seeds(text: str) -> list[int]:
    """`20`: the first 20 seeds. `1000..1099`: these 100. Raises ValueError."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"SEEDS={text}: want a count (SEEDS=20) or a range (SEEDS=1000..1099)")
    first, last = match.groups()
    found = list(range(int(first)) if last is None else range(int(first), int(last) + 1))
    if not found:
        raise ValueError(f"SEEDS={text}: there is no seed in it")
    return found


#: Of so many seeds the machines try one: one of their seeds is many sequences of events.
SEEDS_PER_MACHINE_SEED = 200


def machine_seeds(count: int) -> list[int]:
    """The seeds that a machine tries: at least the first ``count`` of those that are tried."""
    numbers = seeds(count)
    return numbers[: max(count, len(numbers) // SEEDS_PER_MACHINE_SEED)]


def replay_command(number: int) -> str:
    return f"make sim SEED={number}"


@dataclass(frozen=True)
class Play:
    """A machine, and how much of it one seed is."""

    machine: type[RuleBasedStateMachine]
    sequences: int
    steps_per_sequence: int

    def run(self, number: int, members: Mapping[str, Any], *, is_shrunk: bool = True) -> None:
        """One seed. Raises where something is wrong. ``members``: what a run has of its own, for
        the machine's class."""
        machine = type("Machine", (self.machine,), dict(members))
        seed(number)(machine)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=self.sequences,
                stateful_step_count=self.steps_per_sequence,
                database=None,
                deadline=None,
                derandomize=False,
                report_multiple_bugs=False,
                phases=(Phase.generate, Phase.shrink) if is_shrunk else (Phase.generate,),
                suppress_health_check=UNCHECKED,
            ),
        )


#: A line of a failure begins with this where a seed replays it.
REPLAY = "replay it with: "


@contextmanager
def replayable(number: int, world: str = "") -> Iterator[None]:
    """A failure inside names the command that replays it. ``world``: what the seed has drawn."""
    try:
        yield
    except BaseException as problem:
        if world:
            problem.add_note(world)
        problem.add_note(f"{REPLAY}{replay_command(number)}")
        raise


def table_of(tally: Counter[str]) -> str:
    """How often each thing happened."""
    return "\n".join(f"{count:8d} {what}" for what, count in sorted(tally.items()))
