"""Extenders: which are configured, their calls, their answers, and what follows from the answers.

The engine does not wait for an answer: the cycle of the pod stops with a `Question` and starts
again with the answer. Extenders that filter are called one after another, each for the nodes that
the one before left. Extenders that score are called at the same time.
Upstream: schedule_one.go, findNodesThatPassExtenders, prioritizeNodes and extendersBinding.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import final

import numpy as np
from msgspec import Struct, field

from bayplan.api.objects import Container
from bayplan.config.schema import Extender as ExtenderEntry
from bayplan.config.schema import named_extenders, verb_paths
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import Extender
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import EXTENDER_NAME, Code, Status
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.ports import (
    Ask,
    AskExtender,
    ExtenderAnswer,
    ExtenderVerb,
    Victims,
    raise_interruption,
)
from bayplan.state.columns import NodeScores
from bayplan.state.pods import PodInfo, PodShape

__all__ = ["ExtenderAnswer", "ExtenderVerb"]

#: The score that an extender gives the best node; upstream: MaxExtenderPriority.
MAX_EXTENDER_PRIORITY = 10
#: The highest score that is accepted, so that no total comes near an overflow.
_SCORE_MAX = 2**53


class Question(Struct, frozen=True):
    """The call of extenders for which a cycle stops."""

    extenders: tuple[Extender, ...]
    node_names: tuple[str, ...]
    verb: ExtenderVerb = ExtenderVerb.FILTER
    victims: Mapping[str, Victims] = field(default_factory=dict[str, Victims])

    @property
    def extender(self) -> Extender:
        """The only extender of the question. Its verb calls one extender at a time."""
        return self.extenders[0]


class AnsweredQuestion(Struct, frozen=True):
    """A question and its answers, one for each extender."""

    question: Question
    answers: tuple[ExtenderAnswer, ...]

    def failures(self) -> list[tuple[Extender, str]]:
        """The extenders that did not answer, each with the reason."""
        pairs = zip(self.question.extenders, self.answers, strict=True)
        return [(extender, answer.error) for extender, answer in pairs if answer.error]

    def remarks(self) -> list[str]:
        """What to note about extenders that did not answer and that the attempt does without."""
        is_optional = self.question.verb is ExtenderVerb.PRIORITIZE
        return [
            f"went on without {extender.name}: {error}"
            for extender, error in self.failures()
            if extender.ignorable or is_optional
        ]


# ---- filter --------------------------------------------------------------------------------


def applied(
    answered: AnsweredQuestion, outcome: FilterOutcome, statuses: dict[str, Status]
) -> Status | None:
    """Remove the nodes from the outcome that an answer leaves out, and add their statuses.

    Nodes that the extender was not called for are removed, too, without a status. Returns the
    Error that ends the attempt.
    """
    question, (answer,) = answered.question, answered.answers
    left = asked_names = frozenset(question.node_names)
    if not answer.error:
        unknown = answer.node_names - asked_names
        if unknown:
            return _unknown(question.extender, min(unknown))
        left = answer.node_names
    elif not question.extender.ignorable:
        return Status(Code.ERROR, (answer.error,))
    left_out = keep_only(outcome, left)
    for name in left_out:
        if name in asked_names:
            statuses[name] = _status(name, answer)
    return None


def keep_only(outcome: FilterOutcome, names: Iterable[str]) -> list[str]:
    """Remove all nodes but these from the outcome. Returns the names of the removed nodes."""
    is_kept = np.zeros(len(outcome.nodes), np.bool_)
    is_kept[outcome.nodes.positions(list(names))] = True
    gone = np.flatnonzero(outcome.feasible & ~is_kept).tolist()
    outcome.feasible = outcome.feasible & is_kept
    return [outcome.nodes.name(position) for position in gone]


def _unknown(extender: Extender, name: str) -> Status:
    claim = f'extender "{extender.name}" claims a filtered node "{name}"'
    return Status(Code.ERROR, (f"{claim} which is not found in the input node list",))


def _status(name: str, answer: ExtenderAnswer) -> Status:
    """The status of a removed node; None: there is no reason, and so no status, as upstream."""
    if name in answer.failed and name not in answer.failed_and_unresolvable:
        return Status(Code.UNSCHEDULABLE, (answer.failed[name],), EXTENDER_NAME)
    reason = answer.failed_and_unresolvable.get(name)
    reasons = () if reason is None else (reason,)
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, EXTENDER_NAME)


# ---- prioritize ----------------------------------------------------------------------------


def add_scores(table: ScoreTable, answered: AnsweredQuestion) -> None:
    """Add the scores of extenders to the totals. An extender that failed adds nothing."""
    place = {name: position for position, name in enumerate(table.nodes.names())}
    for extender, answer in zip(answered.question.extenders, answered.answers, strict=True):
        scores = _scores(extender, answer, place)
        if scores is not None:
            before = table.extender_scores.get(extender.name)
            table.extender_scores[extender.name] = scores if before is None else before + scores
            table.totals = table.totals + scores


def _scores(
    extender: Extender, answer: ExtenderAnswer, place: Mapping[str, int]
) -> NodeScores | None:
    """int64[nodes], weighted; None: no scores. Nodes that are not in the table are ignored."""
    if answer.error:
        return None
    scores = np.zeros(len(place), np.int64)
    factor = extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
    for name, score in answer.scores:
        weighted = score * factor
        if abs(weighted) > _SCORE_MAX:
            return None
        if name in place:
            scores[place[name]] += weighted
    return scores


# ---- bind ----------------------------------------------------------------------------------


def not_connected(name: str) -> str:
    return f"extender {name}: it is not connected"


@final
class Extenders:
    """All extenders, in the order of their calls."""

    def __init__(self, extenders: Iterable[Extender] = ()) -> None:
        # Extenders whose failure ends the attempt come before ignorable ones.
        self._all = sorted(extenders, key=lambda extender: extender.ignorable)

    def __bool__(self) -> bool:
        return bool(self._all)

    def __iter__(self) -> Iterator[Extender]:
        return iter(self._all)

    def interested(self, pod: PodInfo, *verbs: ExtenderVerb) -> list[Extender]:
        """The extenders with one of these verbs that are interested in the pod."""
        if not self._all:
            return []
        any_of = frozenset(verbs)
        return [e for e in self._all if e.verbs & any_of and e.is_interested(pod)]

    def binding(self, pod: PodInfo) -> "ExtenderBinding | None":
        """The extenders that bind the pod in place of the Bind plugins; None: the plugins do."""
        binders = self.interested(pod, ExtenderVerb.BIND)
        return ExtenderBinding(binders) if binders else None


@final
class ExtenderBinding(Struct, frozen=True):
    """The binding of a pod by extenders."""

    _binders: list[Extender]

    async def bind(self, pod: PodInfo, node_name: str, ask: Ask) -> tuple[bool, Status | None]:
        """Returns (whether one of them bound the pod or failed, its failure). Does not raise."""
        for extender in self._binders:
            question = AskExtender(0, extender.name, ExtenderVerb.BIND, pod, (node_name,))
            error = await _error_of(ask, question)
            if not error:
                return True, None
            if not extender.ignorable:
                return True, Status(Code.ERROR, (error,))
        return False, None


async def _error_of(ask: Ask, question: AskExtender) -> str:
    """The error of an extender's answer; "" for none."""
    try:
        return (await ask(question)).error
    except GeneratorExit:
        raise
    except BaseException as problem:  # noqa: BLE001 - whatever an extender's client raises
        return raised(question.extender, problem)


def raised(name: str, problem: BaseException) -> str:
    """The error of a call that raised an exception. Raises ``problem`` itself if it is an
    interruption."""
    raise_interruption(problem)
    return f"extender {name}: {type(problem).__name__}: {problem}"


# ---- extenders of a configuration, and Python classes ---------------------------------------


@final
class ConfiguredExtender(Struct, frozen=True):
    """`framework.handle.Extender` for one entry."""

    name: str
    verbs: frozenset[ExtenderVerb]
    weight: int = 1
    ignorable: bool = False
    #: Resources that it manages; none: it is interested in every pod.
    managed_resources: frozenset[str] = frozenset()

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether some container asks for a resource it manages. Upstream: IsInterested."""
        if not self.managed_resources:
            return True
        return pod.shape.once((ConfiguredExtender, self.managed_resources), self._is_requested)

    def _is_requested(self, shape: PodShape) -> bool:
        containers = (*(shape.spec.containers or ()), *(shape.spec.init_containers or ()))
        return any(not self.managed_resources.isdisjoint(_named(each)) for each in containers)


def configured_extenders(entries: Sequence[ExtenderEntry]) -> list[ConfiguredExtender]:
    """The extenders of a configuration, in its order."""
    return [
        ConfiguredExtender(
            name,
            verbs=frozenset(verb_paths(entry)),
            weight=entry.weight,
            ignorable=entry.ignorable,
            managed_resources=frozenset(resource.name for resource in entry.managed_resources),
        )
        for name, entry in named_extenders(entries).items()
    ]


def in_process_extenders(extenders: Sequence[InProcessExtender]) -> list[ConfiguredExtender]:
    """Extenders that are Python classes, in their order."""
    return [
        ConfiguredExtender(
            each.name,
            verbs=each.verbs(),
            weight=each.weight,
            ignorable=each.ignorable,
            managed_resources=frozenset(each.managed_resources),
        )
        for each in extenders
    ]


def _named(container: Container) -> set[str]:
    resources = container.resources
    return set() if resources is None else {*(resources.requests or ()), *(resources.limits or ())}
