"""An extender as a Python class: what an HTTP extender does, without a server.

    class Licences(InProcessExtender):
        name = "Licences"

        def filter(self, pod, node_names):
            return {name: "no licence left" for name in node_names if not self.has_one(name)}

It is asked where extenders are asked, after the plugins, and with what they are given: the pod and
names of nodes. To rewrite a policy as a plugin is faster; a class like this one lets a simulation
stand in for the extenders of a cluster, and moves one in without its server. The methods that it
defines say what it is asked for. Upstream: fwk.Extender, extender/v1.
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

    One instance serves a scheduler. An exception, and an answer in another form, is that extender's
    error: it fails the attempt, or is passed over where the extender is ``ignorable``.
    """

    #: How messages name it.
    name: ClassVar[str]
    #: Of its scores.
    weight: ClassVar[int] = 1
    #: Whether an attempt goes on where it fails.
    ignorable: ClassVar[bool] = False
    #: It is asked only about pods that ask for one of these; none: about every pod.
    managed_resources: ClassVar[tuple[str, ...]] = ()

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, str]:
        """The nodes that it rejects, each with the reason. Preemption may help there."""
        raise NotImplementedError

    def prioritize(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, int]:
        """Nodes with scores from 0 to 10; a node that is not there has 0."""
        raise NotImplementedError

    def preempt(self, pod: PodInfo, victims: Mapping[str, Victims]) -> Mapping[str, NamedVictims]:
        """The candidates that it accepts, each with its victims."""
        raise NotImplementedError

    async def bind(self, pod: PodInfo, node_name: str, port: BindPort) -> None:
        """Bind the pod in place of the Bind plugins: `await port.bind(pod, node_name)`."""
        raise NotImplementedError

    @classmethod
    def verbs(cls) -> frozenset[ExtenderVerb]:
        """What it may be asked for: the methods that it defines."""
        return frozenset(
            verb
            for verb in ExtenderVerb
            if getattr(cls, verb.value) is not getattr(InProcessExtender, verb.value)
        )

    async def answer(self, question: AskExtender, port: BindPort) -> ExtenderAnswer:
        """What it says to a question. Raises what its methods raise, and WrongAnswer."""
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
    """The answer, if it is a mapping of node names to ``kind``. Raises WrongAnswer."""
    if not isinstance(answer, Mapping):
        raise WrongAnswer(repr(answer), f"a mapping: {text}")
    for name, value in answer.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or not isinstance(value, kind):
            raise WrongAnswer(f"{name!r}: {value!r}", f"a mapping: {text}")
    return answer  # pyright: ignore[reportUnknownVariableType]
