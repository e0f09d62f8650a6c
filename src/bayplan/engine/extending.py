"""Filters outside the process: what they are asked, what they answer, and what follows from it.

The engine does not wait for an answer; it parks the pod's cycle with its question. Upstream:
schedule_one.go, findNodesThatPassExtenders.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import EXTENDER_NAME, Code, Status
from bayplan.state.pods import PodInfo


class Extender(Protocol):
    """A filter outside the process, as the engine knows it: whether to ask, not how."""

    @property
    def name(self) -> str: ...
    @property
    def ignorable(self) -> bool:
        """Whether an attempt goes on without its answer where none comes."""
        ...

    def is_interested(self, pod: PodInfo) -> bool: ...


@dataclass(frozen=True, slots=True)
class ExtenderAnswer:
    """What came back: the nodes left, and why others are not. ``error``: nothing came back."""

    node_names: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict[str, str])
    error: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The effect a cycle stops with: what to ask whom about which nodes."""

    extender: Extender
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and its answer."""

    question: Question
    answer: ExtenderAnswer


def applied(
    answered: Answered, outcome: FilterOutcome, statuses: dict[str, Status]
) -> Status | None:
    """Take out of the outcome what an answer leaves out; ``statuses`` learns why.

    Nodes that were not asked about are taken out, too, for no reason of their own. Returns the
    Error that ends the attempt.
    """
    question, answer = answered.question, answered.answer
    left = frozenset(question.node_names)
    if not answer.error:
        unknown = answer.node_names - left
        if unknown:
            text = f"returned {sorted(unknown)[0]}, about which it was not asked"
            return _failure(question.extender, text)
        left = answer.node_names
    elif not question.extender.ignorable:
        return _failure(question.extender, answer.error)
    kept = np.zeros(len(outcome.nodes), np.bool_)
    kept[outcome.nodes.positions(list(left))] = True
    asked = frozenset(question.node_names)
    for position in np.flatnonzero(outcome.feasible & ~kept).tolist():
        name = outcome.nodes.name(position)
        if name in asked:
            statuses[name] = _status(name, answer)
    outcome.feasible = outcome.feasible & kept
    return None


def _failure(extender: Extender, text: str) -> Status:
    return Status(Code.ERROR, (f"extender {extender.name}: {text}",))


def _status(name: str, answer: ExtenderAnswer) -> Status:
    """Of a node that was left out; without a reason, as upstream, it is one nobody looked at."""
    if name in answer.failed and name not in answer.failed_and_unresolvable:
        return Status(Code.UNSCHEDULABLE, (answer.failed[name],), EXTENDER_NAME)
    reason = answer.failed_and_unresolvable.get(name)
    reasons = () if reason is None else (reason,)
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, EXTENDER_NAME)
