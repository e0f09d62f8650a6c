"""Single cycles in a small cluster, without a scheduler around them."""

from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.engine.extenders.results import AnsweredQuestion, Extender
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Rejection
from bayplan.framework.types import PreFilterResult, QueuedPodInfo
from bayplan.ports import ExtenderAnswer
from bayplan.queue.nominator import Nominator
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod
from tests.framework.answering import plugins_of

THREE = ("n1", "n2", "n3")


class Walk:
    """A cluster, a profile, and cycles through them."""

    def __init__(
        self,
        *plugins: Any,
        nodes: Any = THREE,
        extenders: tuple[Extender, ...] = (),
        share: int = 0,
    ) -> None:
        self.cluster = SampleCluster().add(*(node(n) if isinstance(n, str) else n for n in nodes))
        self.nominator = Nominator()
        profile = plugins_of(*plugins)
        profile.percentage_of_nodes_to_score = share
        self.framework = Framework(profile, self.nominator)
        self.runner = CycleRunner(self.nominator, 1, extenders)

    def cycle(self, pod_info: PodInfo | None = None) -> Cycle:
        """A cycle that has run to its end, or to its question for an extender."""
        queued = QueuedPodInfo(pod_info or pod("p"), 0.0, attempts=1)
        cycle = Cycle(queued, self.framework, self.cluster.lend())
        self.runner.run(cycle)
        return cycle

    def answered(self, cycle: Cycle, *left: str, **answer: Any) -> Cycle:
        assert cycle.question is not None
        one = {"node_names": frozenset(left), **answer}
        answers = answer.get("answers") or (ExtenderAnswer(**one),)
        answered = AnsweredQuestion(cycle.question, answers)
        self.runner.resume(cycle, self.cluster.lend(), answered)
        return cycle


def refused(*names: str, reason: str = "no", code: Code = Code.UNSCHEDULABLE) -> Any:
    def answer(state: Any, pod: Any, nodes: Any, feasible: Any) -> list[Rejection]:
        return [Rejection(nodes.positions(names), code, (reason,))]

    return answer


def only(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))
