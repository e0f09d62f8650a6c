"""The invariants of every world of the fault simulation, by name, and their violations."""

import re
from collections.abc import Mapping
from typing import final

from bayplan.sim.world.checkers import InvariantBroken
from tests.sim.brute_force import Rule
from tests.sim.brute_force_storage import ALL_RULES


def _plugin_of(rule: Rule) -> str:
    """The plugin that a rule repeats: its docstring begins with the name."""
    return (rule.__doc__ or "").partition(":")[0].rstrip(".")


#: Name of each invariant → its text in docs/faults.md.
INVARIANTS: Mapping[str, str] = {
    # of a decision, when it is made, by the objects that were delivered to the scheduler
    **{rule.__name__: f"the node passes {_plugin_of(rule)}" for rule in ALL_RULES},
    "node exists": "a pod is placed on a node that exists",
    "pod exists": "a pod that is placed was not deleted",
    "all listed": "no pod is placed before every kind of object was listed",
    "placed once": "a pod that has a node is not placed again",
    "extender": "a pod is placed on a node that the extender left",
    "nominated": "a placed pod leaves room for pods that are nominated to its node",
    "rejected": "no node is rejected that takes the pod",
    "reprieved": "a preemption evicts no more pods than it must",
    "budgets": "a preemption violates no more disruption budgets than on another node",
    "victims": "a victim of a preemption has a lower priority than the pod",
    "gang": "members of a group are placed only if the group reaches its minimum",
    # of a request, when the API server carries it out
    "bound once": "a pod stays on its node",
    "chosen node": "a pod is bound to the node that the scheduler chose",
    "volume bound": "each claim of a pod has a volume when the pod is bound",
    "bound volume in reach": "the pod's node reaches these volumes",
    "devices allocated": "each device claim of a pod is allocated when the pod is bound",
    "devices reserved": "these claims are reserved for the pod",
    "allocated devices in reach": "the pod's node reaches these devices",
    "devices exclusive": "no device is allocated to two claims",
    # at rest
    "woken": "no event that makes room is missed",
    "placed": "no pod, and no group, that fits is pending",
    "preempts": "no pod is pending that fits in place of pods of lower priority",
    "cache": "the scheduler's cache and queue equal the API",
}


@final
class Violation(InvariantBroken):
    """An invariant of a world does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(text)
        self.invariant = invariant


@final
class Findings:
    """The first violation of a run. It is stored because the code that a checker interrupts, for
    instance a plugin call, may treat the exception as a failure of its own."""

    def __init__(self) -> None:
        self.first: Violation | None = None

    def fail(self, invariant: str, text: str) -> None:
        """Raises Violation."""
        assert invariant in INVARIANTS, f"{invariant}: {text}"
        problem = Violation(invariant, text)
        self.first = self.first or problem
        raise problem

    def raise_first(self) -> None:
        """Raises the first Violation, if there is one."""
        if self.first is not None:
            raise self.first


def name_of(problem: BaseException) -> str:
    """The name of a failure: an invariant's name, or the type and the first words of an error."""
    if isinstance(problem, Violation):
        return problem.invariant
    if isinstance(problem, InvariantBroken):
        return "gang"
    words = re.sub(r"[^A-Za-z ]+", " ", str(problem)).split()[:4]
    return f"{type(problem).__name__}: {' '.join(words)}"
