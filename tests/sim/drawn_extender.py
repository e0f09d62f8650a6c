"""An extender that misbehaves by chance: it rejects nodes, names unknown ones, fails, raises, and
answers late."""

import asyncio
from typing import final

from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.rng import stream
from bayplan.state.pods import PodInfo

LATE_SECONDS = 5.0


@final
class DrawnExtender:
    """An Extender of the engine, and its port. After ``calm`` it leaves every node."""

    name = "drawn"
    verbs = frozenset((ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE))
    weight = 1

    def __init__(self, seed: int) -> None:
        self._random = stream(seed, "extender")
        self.ignorable = self._random.random() < 0.5
        self._is_calm = False
        #: By pod's uid: the nodes that the last answer left.
        self.answers: dict[str, frozenset[str]] = {}
        #: Pods with a rejected node or without an answer.
        self.rejected_uids: set[str] = set()

    def is_interested(self, pod: PodInfo) -> bool:
        return pod.labels.get("app") == "web"

    def calm(self) -> None:
        """Answer every later call without a rejection or an error."""
        self._is_calm = True

    async def ask(self, question: AskExtender) -> ExtenderAnswer:
        chance = 1.0 if self._is_calm else self._random.random()
        if question.verb is ExtenderVerb.PRIORITIZE:
            if chance < 0.1:
                return ExtenderAnswer(error="no scores")
            draw = self._random.randint
            return ExtenderAnswer(scores=tuple((n, draw(0, 10)) for n in question.node_names))
        uid, names = question.pod.uid, frozenset(question.node_names)
        if chance < 0.15:
            # Without an answer an attempt ends, or continues with all nodes if it is ignorable.
            self.answers[uid] = names if self.ignorable else frozenset()
            self.rejected_uids.add(uid)
            await asyncio.sleep(LATE_SECONDS if chance < 0.05 else 0)
            if chance < 0.1:
                return ExtenderAnswer(error="the extender is out of order")
            if chance < 0.12:
                self.answers[uid] = frozenset()
                return ExtenderAnswer(node_names=names | {"unknown"})
            raise ConnectionError("the extender hung up")
        await asyncio.sleep(LATE_SECONDS * self._random.random() if chance < 0.3 else 0)
        rejected = {name for name in sorted(names) if not self._is_calm and self._rejects()}
        if rejected:
            self.rejected_uids.add(uid)
        self.answers[uid] = names - rejected
        failed = dict.fromkeys(sorted(rejected), "the extender says no")
        return ExtenderAnswer(node_names=names - rejected, failed=failed)

    def _rejects(self) -> bool:
        return self._random.random() < 0.3
