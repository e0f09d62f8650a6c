"""An extender as a Python class: an HTTP extender's policy without a server.

    class Licences(InProcessExtender):
        name = "Licences"

        def filter(self, pod, node_names):
            return {name: "no licence left" for name in node_names if not self.has_one(name)}

The engine calls it where it calls HTTP extenders: after the plugins, with the pod and names of
nodes. A plugin is faster. A class like this one replaces the extenders of a cluster in a
simulation, or moves an extender into the scheduler without its server. The methods that the class
defines are the verbs of the extender. Upstream: fwk.Extender, extender/v1.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bayplan.framework.validation import WrongAnswer
from bayplan.ports import (
    AskExtender,
    BindPort,
    ExtenderAnswer,
    ExtenderVerb,
    NamedVictims,
    Victims,
)
from bayplan.state.pods import PodInfo


class InProcessExtender:
    """Subclass it and define at least one of filter, prioritize, preempt and bind.

    A scheduler has one instance. An exception, or a result of another form, is an error of the
    extender: it fails the attempt, unless the extender is ``ignorable``.
    """

    #: The name in messages.
    name: ClassVar[str]
    #: The weight of its scores.
    weight: ClassVar[int] = 1
    #: Whether an attempt continues when the extender fails.
    ignorable: ClassVar[bool] = False
    #: The extender is called only for pods that request one of these; empty: for every pod.
    managed_resources: ClassVar[tuple[str, ...]] = ()

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, str]:
        """Rejected nodes, each with a reason. Preemption may help on these nodes."""
        raise NotImplementedError

    def prioritize(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, int]:
        """Node → score from 0 to 10; a missing node has 0."""
        raise NotImplementedError

    def preempt(self, pod: PodInfo, victims: Mapping[str, Victims]) -> Mapping[str, NamedVictims]:
        """The accepted candidates, each with its victims."""
        raise NotImplementedError

    async def bind(self, pod: PodInfo, node_name: str, port: BindPort) -> None:
        """Bind the pod in place of the Bind plugins: `await port.bind(pod, node_name)`."""
        raise NotImplementedError

    @classmethod
    def verbs(cls) -> frozenset[ExtenderVerb]:
        """The verbs whose methods the class defines."""
        return frozenset(
            verb
            for verb in ExtenderVerb
            if getattr(cls, verb.value) is not getattr(InProcessExtender, verb.value)
        )

    async def answer(self, question: AskExtender, port: BindPort) -> ExtenderAnswer:
        """The answer to a question. Raises WrongAnswer and the exceptions of the methods."""
        pod, names = question.pod, question.node_names
        if question.verb is ExtenderVerb.FILTER:
            rejected = _mapping(self.filter(pod, names), str, "reasons by node")
            left = frozenset(name for name in names if name not in rejected)
            return ExtenderAnswer(node_names=left, failed=rejected)
        if question.verb is ExtenderVerb.PRIORITIZE:
            scores = _mapping(self.prioritize(pod, names), int, "scores by node")
            return ExtenderAnswer(scores=tuple(scores.items()))
        if question.verb is ExtenderVerb.PREEMPT:
            victims = self.preempt(pod, question.victims)
            return ExtenderAnswer(victims=_mapping(victims, NamedVictims, "NamedVictims by node"))
        await self.bind(pod, names[0], port)
        return ExtenderAnswer()


def _mapping(answer: Any, kind: type, text: str) -> Mapping[str, Any]:
    """The answer, checked to be a mapping of node names to ``kind``. Raises WrongAnswer."""
    if not isinstance(answer, Mapping):
        raise WrongAnswer(repr(answer), f"a mapping: {text}")
    for name, value in answer.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or not isinstance(value, kind):
            raise WrongAnswer(f"{name!r}: {value!r}", f"a mapping: {text}")
    return answer  # pyright: ignore[reportUnknownVariableType]
