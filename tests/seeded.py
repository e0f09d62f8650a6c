"""Tests that draw from a seed: which seeds are tried, and how a machine is run with one.

`make sim SEEDS=80` tries that many seeds, `make sim SEED=7` replays one.
"""

import os
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


def seeds(count: int) -> list[int]:
    """Those that are asked for, or the first so many."""
    one = os.environ.get("BAYPLAN_SIM_SEED")
    if one is not None:
        return [int(one)]
    return list(range(int(os.environ.get("BAYPLAN_SIM_SEEDS", count))))


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


@contextmanager
def replayable(number: int) -> Iterator[None]:
    """What fails says how it is replayed."""
    try:
        yield
    except BaseException as problem:
        problem.add_note(f"replay it with: make sim SEED={number}")
        raise


def table_of(tally: Counter[str]) -> str:
    """How often each thing happened."""
    return "\n".join(f"{count:8d} {what}" for what, count in sorted(tally.items()))
