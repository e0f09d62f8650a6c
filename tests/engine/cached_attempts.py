"""A small cluster, one profile, and attempts at pods of one signature with their cache entry.

    attempts = Attempts(Bad, Rank, nodes={"n1": {"rank": "3"}, "n2": {"bad": "broken"}})
    attempts.attempt()
    attempts.label("n1", bad="broken")

The results of the plugins follow from the labels of a node.
"""

from collections.abc import Hashable, Mapping
from typing import Any

from bayplan.api.objects import SERVICE, Node
from bayplan.engine.cycle import Cycle
from bayplan.engine.ranking.evaluation_plan import SingleNodeEvaluator
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import ObjectGeneration, SignatureEntry
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    Caching,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    SignPlugin,
)
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Status, unschedulable
from bayplan.framework.types import QueuedPodInfo
from bayplan.objects.object_store import ObjectStore
from bayplan.queue.nominator import Nominator
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod
from tests.framework.answering import plugins_of

SEED = 1
BYTES_MAX = 1 << 20


class Bad(ScalarFilterPlugin, SignPlugin):
    """Rejects nodes labelled bad; the reason is the value of the label."""

    name = "Bad"
    caching = Caching(facets=Facet.LABELS)

    def setup(self) -> None:
        #: Raised or returned in place of the result.
        self.failure: Any = None

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        if isinstance(self.failure, Exception):
            raise self.failure
        reason = node.labels.get("bad")
        return self.failure or (unschedulable(reason) if reason else None)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


class Rank(ScalarScorePlugin, SignPlugin):
    """The score of a node is the value of its label rank."""

    name = "Rank"
    caching = Caching(facets=Facet.LABELS)

    def setup(self) -> None:
        self.failure: Any = None

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        if isinstance(self.failure, Exception):
            raise self.failure
        return int(node.labels.get("rank", "0")) if self.failure is None else self.failure

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


class Attempts:
    """A profile with its plugins, which ``plugin(name)`` returns."""

    def __init__(self, *plugins: Any, nodes: Mapping[str, Mapping[str, str]]) -> None:
        self.cluster = SampleCluster()
        for name, labels in nodes.items():
            self.cluster.add(node(name, labels=dict(labels)))
        profile = plugins_of(*plugins)
        profile.reuse_bytes_max = BYTES_MAX
        self.framework = Framework(profile, Nominator())
        table = self.cluster.cache.table
        ignore = (lambda seconds: None, lambda seconds: None)
        epoch = ObjectGeneration(table, ObjectStore[Any]())
        self.reuse = ResultCache(self.framework, table, epoch, lambda text: None, observe=ignore)
        self._runner = CycleRunner(Nominator(), SEED, (), {profile.profile_name: self.reuse})
        self._fresh = CycleRunner(Nominator(), SEED, ())
        self.attempt_count = 0

    # ---- attempts -------------------------------------------------------------------------

    def attempt(self) -> Cycle:
        """One attempt that uses the cache."""
        self.attempt_count += 1
        return self._walked(self._runner)

    def fresh(self) -> Cycle:
        """The last attempt again, without the cache."""
        return self._walked(self._fresh)

    def _walked(self, runner: CycleRunner) -> Cycle:
        queued = QueuedPodInfo(self.pod, 0.0, attempts=self.attempt_count)
        cycle = Cycle(queued, self.framework, self.cluster.lend())
        runner.run(cycle)
        return cycle

    # ---- changes of nodes ---------------------------------------------------------------------

    def label(self, name: str, **labels: str) -> None:
        """Replace the labels of a node."""
        self.cluster.take_back()
        self.cluster.cache.update_node(node(name, labels=labels))

    # ---- looking in -----------------------------------------------------------------------

    @property
    def pod(self) -> PodInfo:
        return pod("p")

    @property
    def entry(self) -> SignatureEntry:
        return self.reuse.entry_for(self.pod)

    def ranking(self) -> RankedNodes:
        """The ranking, after the number of attempts that it needs."""
        while not self.entry.rankings:
            assert self.attempt_count < 5, "such results cannot be ranked"
            self.attempt()
        ranking = last_ranking(self.entry)
        assert ranking is not None and ranking.plan.is_complete
        return ranking

    def evaluator(self) -> SingleNodeEvaluator:
        """The evaluator of single rows, as in an attempt."""
        state, nodes, pod = CycleState(), self.cluster.lend().nodes, self.pod
        state.cached_results = self.entry.caches
        self.framework.run_pre_filter(state, pod, nodes)
        calls = self.framework.calls(state, pod)
        return SingleNodeEvaluator(calls, state, pod, nodes, counts=self.entry.caches.counts)

    def plugin(self, name: str) -> Any:
        instances = self.framework.plugins.instances()
        return next(each for each in instances if each.instance_name == name)


def last_ranking(entry: SignatureEntry) -> RankedNodes | None:
    """The ranking that was used last."""
    return next(reversed(entry.rankings.values()), None)


class CountingFilter(ScalarFilterPlugin, SignPlugin):
    """Rejects nodes labelled bad, and counts its calls."""

    name = "CountingFilter"
    kinds = (SERVICE,)
    call_count = 0

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.call_count += 1
        return unschedulable("bad") if node.labels.get("bad") else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.labels.get("kind", "")


COUNTING = "CountingFilter"

FIT = "NodeResourcesFit"

OFF = {"OpportunisticBatching": False}


def nodes(count: int, **options: Any) -> list[Node]:
    return [node(f"n{n}", cpu=4, memory="8Gi", zone=f"z{n % 3}", **options) for n in range(count)]
