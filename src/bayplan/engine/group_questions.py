"""What extenders are asked about the members of a group, over all passes of one attempt.

A pass cannot stop for an answer: it is a trial, and nothing may be held meanwhile. So each question
that is not answered yet gets a guess (nodes are left in unless the extender left them out for a
member alike), and the pass goes on. If the group then seems to fit, all that was guessed is asked
at once, everything is put back, and the pass is made anew with the answers. Answers are for exactly
one question, so a pass without a guess is what asking member by member would have come to.
"""

from collections import defaultdict
from typing import Final, final

from bayplan.engine.cycle import Cycle
from bayplan.engine.extending import Answered, Question
from bayplan.ports import ExtenderAnswer, ExtenderVerb

#: Answers may bring up new questions; not for ever.
ROUNDS_MAX: Final = 20

#: (pod, verb, extenders, nodes)
_Asked = tuple[str, ExtenderVerb, tuple[str, ...], tuple[str, ...]]


@final
class GroupQuestions:
    """Questions of one attempt, with their answers."""

    def __init__(self) -> None:
        self._answers: dict[_Asked, tuple[ExtenderAnswer, ...]] = {}
        #: (kind of pods, extender) → nodes that it left out.
        self._left_out: dict[tuple[int, str], set[str]] = defaultdict(set)
        self.round_count = 0
        #: Guessed in the present round, to be asked.
        self.unanswered: dict[_Asked, tuple[Cycle, Question]] = {}
        #: Whether a guess of the present round left a node out.
        self.has_doubts = False

    def begin_round(self) -> None:
        self.round_count += 1
        self.unanswered = {}
        self.has_doubts = False

    def answered(self, cycle: Cycle, question: Question) -> Answered:
        """The answers to a question of a member's cycle, known or guessed."""
        key = _key(cycle, question)
        known = self._answers.get(key)
        if known is not None:
            return Answered(question, known)
        self.unanswered.setdefault(key, (cycle, question))
        guesses = tuple(self._guess(cycle, question, each.name) for each in question.extenders)
        return Answered(question, guesses)

    def take(self, cycle: Cycle, answered: Answered) -> None:
        """One that was unanswered has its answers."""
        question = answered.question
        self._answers[_key(cycle, question)] = answered.answers
        if question.verb is not ExtenderVerb.FILTER:
            return
        for extender, answer in zip(question.extenders, answered.answers, strict=True):
            if not answer.error:
                left_out = frozenset(question.node_names) - answer.node_names
                self._left_out[id(cycle.pod.shape), extender.name] |= left_out

    def _guess(self, cycle: Cycle, question: Question, extender: str) -> ExtenderAnswer:
        if question.verb is not ExtenderVerb.FILTER:
            return ExtenderAnswer()
        asked = frozenset(question.node_names)
        left = asked - self._left_out[id(cycle.pod.shape), extender]
        self.has_doubts |= left != asked
        return ExtenderAnswer(node_names=left)


def _key(cycle: Cycle, question: Question) -> _Asked:
    names = tuple(extender.name for extender in question.extenders)
    return cycle.pod.uid, question.verb, names, question.node_names
