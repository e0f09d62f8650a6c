"""Tests that draw from a seed: the seeds to try, and the run of a state machine with one seed.

`make sim SEEDS=80` tries the first 80 seeds, `make sim SEEDS=1000..1099` tries fresh ones, and
`make sim SEED=7` replays one. A failure ends with the command that replays it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

T = TypeVar("T")

#: Sequences of events are long and slow to draw, and most events need an earlier event.
UNCHECKED = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)


#: Set by `.ci/run` and by `make deep`: suites that draw try many more steps and larger worlds.
IS_DEEP = bool(os.environ.get("BAYPLAN_DEEP"))


def depth(short: T, deep: T) -> T:
    """``short`` in `make test`; ``deep`` in `make deep` and on CI."""
    return deep if IS_DEEP else short


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
    numbers = list(range(int(first)) if last is None else range(int(first), int(last) + 1))
    if not numbers:
        raise ValueError(f"SEEDS={text}: there is no seed in it")
    return numbers


#: State machines try one seed of this many, because each of their seeds draws many sequences.
SEEDS_PER_MACHINE_SEED = 200


def machine_seeds(count: int) -> list[int]:
    """The seeds that a machine tries: the first ``count`` of all seeds, or more."""
    numbers = seeds(count)
    return numbers[: max(count, len(numbers) // SEEDS_PER_MACHINE_SEED)]


def replay_command(number: int) -> str:
    return f"make sim SEED={number}"


@dataclass(frozen=True)
class Play:
    """A state machine, and how many sequences of which length one seed draws."""

    machine: type[RuleBasedStateMachine]
    sequences: int
    steps_per_sequence: int

    def run(self, number: int, members: Mapping[str, Any], *, is_shrunk: bool = True) -> None:
        """Run one seed. Raises if the machine finds a defect. ``members``: attributes of this run,
        added to the machine's class."""
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


#: The beginning of the line with the command that replays a failure.
REPLAY = "replay it with: "


@contextmanager
def replayable(number: int, world: str = "") -> Iterator[None]:
    """A failure inside names the command that replays it. ``world``: text about the drawn world."""
    try:
        yield
    except BaseException as problem:
        if world:
            problem.add_note(world)
        problem.add_note(f"{REPLAY}{replay_command(number)}")
        raise


def table_of(tally: Counter[str]) -> str:
    """One line for each key with its count."""
    return "\n".join(f"{count:8d} {what}" for what, count in sorted(tally.items()))
