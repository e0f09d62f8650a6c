"""What extenders leave of a preemption's candidates.

They are asked one after another, each about what the one before left. They may take nodes away,
change who has to leave a node, and name nodes of their own. A candidate that changed while an
extender thought is none any more: the answer is about other pods than would have to leave now.
Upstream: extender.go, ProcessPreemption; framework/preemption/preemption.go, callExtenders.
"""

from dataclasses import dataclass, field
from typing import final

from bayplan.engine.extending import Answered, Extender, Question
from bayplan.framework.preemption import Victims
from bayplan.framework.status import Code, Status
from bayplan.ports import ExtenderAnswer, ExtenderVerb
from bayplan.state.nodes import NodeView


@final
@dataclass(slots=True)
class Reviewed:
    """Candidates, as far as answers have come."""

    left: dict[str, Victims]
    #: Names of candidates that are not now what was asked about.
    changed: set[str] = field(default_factory=set[str])
    #: Whose answer was passed over as a whole or for a node, and why.
    passed_over: list[str] = field(default_factory=list[str])

    def question(self, extender: Extender) -> Question:
        return Question((extender,), tuple(self.left), ExtenderVerb.PREEMPT, self.left)

    def take(self, answered: Answered, nodes: NodeView) -> Status | None:
        """Leave what an answer leaves; ``nodes``: all there are. Returns the Error that ends it."""
        question, (answer,) = answered.question, answered.answers
        extender = question.extender
        if answer.error:
            return None if extender.ignorable else Status(Code.ERROR, (answer.error,))
        changed = {name for name in question.victims if not self._is_as_asked(name, question)}
        found = _pods(extender, answer, changed, nodes)
        if isinstance(found, str):
            return self._wrong(extender, found)
        for name in [name for name, victims in found.items() if not victims.pods]:
            text = f'expected at least one victim pod on node "{name}"'
            status = self._wrong(extender, text)
            if status is not None:
                return status
            del found[name]
        self.changed |= changed
        self.left = found
        return None

    def _is_as_asked(self, name: str, question: Question) -> bool:
        now = self.left.get(name)
        return now is not None and _uids(now) == _uids(question.victims[name])

    def _wrong(self, extender: Extender, text: str) -> Status | None:
        if not extender.ignorable:
            return Status(Code.ERROR, (text,))
        self.passed_over.append(f"{extender.name}: {text}")
        return None


def _uids(victims: Victims) -> list[str]:
    return [pod.uid for pod in victims.pods]


def _pods(
    extender: Extender, answer: ExtenderAnswer, changed: set[str], nodes: NodeView
) -> dict[str, Victims] | str:
    """Whom an answer names, but for nodes that have changed. A text: there is no such node or
    pod."""
    found: dict[str, Victims] = {}
    for name, named in answer.victims.items():
        if name in changed:
            continue
        position = nodes.position(name)
        if position is None:
            claim = f'extender "{extender.name}" claims to preempt pods on node "{name}"'
            return f"{claim}, but there is no such node"
        there = {pod.uid: pod for pod in nodes.info(position).pods}
        unknown = [uid for uid in named.uids if uid not in there]
        if unknown:
            where = f"pod (UID: {unknown[0]}) on node: {name}"
            said = f"extender: {extender.name} claims to preempt {where}"
            return f"{said}, but the pod is not found on that node"
        pods = tuple(there[uid] for uid in named.uids)
        found[name] = Victims(pods, named.pdb_violation_count)
    return found
