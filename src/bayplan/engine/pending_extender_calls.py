"""Cycles that wait for answers of extenders. Each call has a token of its own."""

from typing import final

from msgspec import Struct, field

from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Question
from bayplan.ports import AskExtender, ExtenderAnswer


class _PendingCall(Struct):
    cycle: Cycle
    question: Question
    #: One for each extender of the question, in its order.
    tokens: list[int]
    answers: dict[int, ExtenderAnswer] = field(default_factory=dict[int, ExtenderAnswer])


@final
class PendingExtenderCalls:
    """The waiting cycles by token. A cycle waits until its last answer has come."""

    def __init__(self) -> None:
        self._parked: dict[int, _PendingCall] = {}
        self._cycle_count = 0
        self._next_token = 1

    def __len__(self) -> int:
        return self._cycle_count

    def park(self, cycle: Cycle, question: Question) -> list[AskExtender]:
        """Store the cycle; returns the calls to make."""
        first, count = self._next_token, len(question.extenders)
        parked = _PendingCall(cycle, question, list(range(first, first + count)))
        self._next_token += count
        self._cycle_count += 1
        self._parked |= dict.fromkeys(parked.tokens, parked)
        verb, names, victims = question.verb, question.node_names, question.victims
        return [
            AskExtender(token, extender.name, verb, cycle.pod, names, victims)
            for token, extender in zip(parked.tokens, question.extenders, strict=True)
        ]

    def answered(self, token: int, answer: ExtenderAnswer) -> tuple[Cycle, AnsweredQuestion] | None:
        """The cycle that has all its answers now; None: an answer is missing, or the token is
        unknown."""
        parked = self._parked.pop(token, None)
        if parked is None:
            return None
        parked.answers[token] = answer
        if len(parked.answers) < len(parked.tokens):
            return None
        self._cycle_count -= 1
        answers = tuple(parked.answers[each] for each in parked.tokens)
        return parked.cycle, AnsweredQuestion(parked.question, answers)
