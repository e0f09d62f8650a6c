"""A small cluster, one profile, and attempts at pods of one signature with their cache entry.

    attempts = Attempts(Bad, Rank, nodes={"n1": {"rank": "3"}, "n2": {"bad": "broken"}})
    assert chosen(attempts.attempt()) == "n1"
    attempts.label("n1", bad="broken")

The results of the plugins follow from the labels of a node. The plugins record the nodes that they
are called for.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, final

import numpy as np

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
    FilterPlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Rejection, Status, unschedulable
from bayplan.framework.types import Normalizer, QueuedPodInfo
from bayplan.objects.object_store import ObjectStore
from bayplan.queue.nominator import Nominator
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
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
        self.calls: list[str] = []
        #: Raised or returned in place of the result.
        self.failure: Any = None

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.calls.append(node.name)
        if isinstance(self.failure, Exception):
            raise self.failure
        reason = node.labels.get("bad")
        return self.failure or (unschedulable(reason) if reason else None)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


class Worse(Bad):
    """Rejects nodes labelled worse."""

    name = "Worse"

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.calls.append(node.name)
        reason = node.labels.get("worse")
        return unschedulable(reason) if reason else None


class Rank(ScalarScorePlugin, SignPlugin):
    """The score of a node is the value of its label rank."""

    name = "Rank"
    caching = Caching(facets=Facet.LABELS)

    def setup(self) -> None:
        self.calls: list[str] = []
        self.failure: Any = None

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        self.calls.append(node.name)
        if isinstance(self.failure, Exception):
            raise self.failure
        return int(node.labels.get("rank", "0")) if self.failure is None else self.failure

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


class MaxRank(Rank):
    name = "MaxRank"
    normalizer = Normalizer.MAX


class Attempts:
    """A profile with its plugins, which ``plugin(name)`` returns."""

    def __init__(self, *plugins: Any, nodes: Mapping[str, Mapping[str, str]]) -> None:
        self.cluster = SampleCluster()
        for name, labels in nodes.items():
            self.cluster.add(node(name, labels=dict(labels)))
        profile = plugins_of(*plugins)
        profile.reuse_bytes_max = BYTES_MAX
        self.framework = Framework(profile, Nominator())
        self.warnings: list[str] = []
        table = self.cluster.cache.table
        ignore = (lambda seconds: None, lambda seconds: None)
        epoch = ObjectGeneration(table, ObjectStore[Any]())
        self.reuse = ResultCache(self.framework, table, epoch, self.warnings.append, observe=ignore)
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

    def add(self, name: str, **labels: str) -> None:
        self.cluster.add(node(name, labels=labels))

    def remove(self, name: str) -> None:
        self.cluster.take_back()
        self.cluster.cache.remove_node(name)

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

    def evaluated_nodes(self, name: str) -> list[str]:
        """The nodes that a plugin evaluated since the last call of this method."""
        plugin = self.plugin(name)
        names, plugin.calls = plugin.calls, []
        return sorted(names)


def last_ranking(entry: SignatureEntry) -> RankedNodes | None:
    """The ranking that was used last."""
    return next(reversed(entry.rankings.values()), None)


def chosen(cycle: Cycle) -> str:
    return cycle.choice.node_name if cycle.choice is not None else ""


def message(cycle: Cycle) -> str:
    """The message of an attempt without a node."""
    return cycle.fit_error().message


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


@final
class NotTheFirst(FilterPlugin):
    """Reads all nodes: rejects the first of them that is not labelled first=no."""

    name = "NotTheFirst"
    scope = "cluster"

    def filter(
        self, state: Any, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        names = sorted(info.name for info in nodes.infos() if info.labels.get("first") != "no")
        if names:
            mask = np.array([name == names[0] for name in nodes.names()])
            yield Rejection(mask, Code.UNSCHEDULABLE, ("comes first",))


@final
class Company(ScorePlugin):
    """Reads all nodes: the more nodes share a node's color, the better."""

    name = "Company"
    scope = "cluster"

    def score(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        ids = nodes.labels.ids("color")
        return np.array([int((ids == each).sum()) for each in ids], np.int64)


@final
class Unsigned(ScalarScorePlugin):
    """Row-wise and unsigned: its results cannot be cached."""

    name = "Unsigned"

    def setup(self) -> None:
        self.call_count = 0

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        self.call_count += 1
        return len(node.labels)


def labelled(count: int) -> dict[str, dict[str, str]]:
    """Nodes of two colors, ranked 0 to 6."""
    return {
        f"n{n:03}": {"rank": str(n % 7), "color": ("red", "blue")[n % 3 == 0]} for n in range(count)
    }


COUNTING = "CountingFilter"

FIT = "NodeResourcesFit"

OFF = {"OpportunisticBatching": False}


def nodes(count: int, **options: Any) -> list[Node]:
    return [node(f"n{n}", cpu=4, memory="8Gi", zone=f"z{n % 3}", **options) for n in range(count)]
