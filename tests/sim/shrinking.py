"""Delta debugging: the smallest plan that fails by the same name as a failed plan.

First steps are left out, in halves, quarters and so on, until no single step can be left out; then
kinds of faults and options. A smaller plan counts only if its world fails by the same name
(`invariants.name_of`).

Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (ddmin).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from bayplan.sim.world.checkers import InvariantBroken
from tests.sim.fault_plan import Plan, Step
from tests.sim.fault_world import FaultWorld
from tests.sim.invariants import name_of

PLAYS_MAX = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """How the world of a plan failed."""

    plan: Plan
    name: str
    text: str
    #: One line for each action of a step.
    step_log: tuple[str, ...]

    def __str__(self) -> str:
        lines = (str(self.plan), *self.step_log, f"{self.name}: {self.text}")
        return "\n".join(line if len(line) <= 300 else f"{line[:299]}…" for line in lines)


def failure_of(plan: Plan) -> Failure | None:
    """Play a plan. None: the plan passes."""
    world = FaultWorld(plan)
    try:
        world.play()
    except (Exception, InvariantBroken) as problem:  # noqa: BLE001 - any exception of a bug
        return Failure(plan, name_of(problem), str(problem), tuple(world.step_log))
    return None


def shrunk(failure: Failure, plays_max: int = PLAYS_MAX) -> Failure:
    """The smallest plan that fails by the same name, after ``plays_max`` plays at most."""
    return _Shrinking(failure, plays_max).result()


@final
class _Shrinking:
    def __init__(self, failure: Failure, plays_max: int) -> None:
        self._best = failure
        self._plays_left = plays_max

    def result(self) -> Failure:
        self._leave_out_steps()
        self._simplify()
        self._leave_out_steps()
        return self._best

    def _fails(self, plan: Plan) -> bool:
        """Whether a plan fails by the same name. If it does, it becomes the best plan."""
        if not self._plays_left:
            return False
        self._plays_left -= 1
        failure = failure_of(plan)
        if failure is None or failure.name != self._best.name:
            return False
        self._best = failure
        return True

    def _leave_out_steps(self) -> None:
        size = max(len(self._best.plan.steps) // 2, 1)
        while size:
            start, is_smaller = 0, False
            while start < len(self._best.plan.steps):
                steps = self._best.plan.steps
                if self._fails(self._with(steps[:start] + steps[start + size :])):
                    is_smaller = True
                else:
                    start += size
            if size > 1 or not is_smaller:
                size //= 2

    def _with(self, steps: Sequence[Step]) -> Plan:
        return replace(self._best.plan, steps=tuple(steps))

    def _simplify(self) -> None:
        is_simpler = True
        while is_simpler:
            is_simpler = any(self._fails(plan) for plan in self._best.plan.simpler())
