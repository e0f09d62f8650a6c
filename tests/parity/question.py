"""A pending pod with its profile, a snapshot of the cluster, and the recorded answers."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import msgspec

from bayplan.engine.cycle import Cycle
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.runtime import Framework
from bayplan.framework.status import is_rejected
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster
from tests.parity.tally import Sheet

Json = dict[str, Any]


@final
class ProfileUnderTest:
    """A profile with its framework and the runners of its cycles."""

    def __init__(self, plugins: ProfilePlugins, cluster: SampleCluster) -> None:
        nominator, table = cluster.nominator, cluster.cache.table
        self.plugins = plugins
        self.runner = CycleRunner(nominator, seed=0, extenders=())
        self.framework = Framework(plugins, nominator)
        epoch = ObjectGeneration(table, cluster.store)
        self.reuse = ResultCache(
            self.framework, table, epoch, _ignored, observe=(_ignored, _ignored)
        )
        #: Runs cycles with cached results.
        self.cached_runner = CycleRunner(
            nominator, seed=0, extenders=(), caches={plugins.profile_name: self.reuse}
        )


def _ignored(_: object) -> None: ...


@dataclass(frozen=True, slots=True)
class PodQuestion:
    """A pod to be placed, and its recorded answers."""

    profile: ProfileUnderTest
    snapshot: Snapshot
    pod: PodInfo
    expected: Json
    sheet: Sheet

    @property
    def names(self) -> list[str]:
        return self.snapshot.nodes.names()

    def has_no_fit(self, cycle: Cycle) -> bool:
        """Whether no node fits. A cluster without nodes is an error upstream, and no such case."""
        return is_rejected(cycle.status) and self.snapshot.node_count > 0

    def cycle(self) -> Cycle:
        """The scheduler's own cycle for the pod."""
        return self._run(self.pod, self.profile.runner)

    def cycle_over_all_nodes(self) -> Cycle:
        """The same cycle without the pod's nomination, which would end the search at once.

        Nominations of other pods count in both.
        """
        return self._run(self._not_nominated, self.profile.runner)

    def cached_cycle(self) -> tuple[Cycle, Counter[str]]:
        """The cycle with cached results, and counts of how it used them."""
        before = self.profile.reuse.row_counts()
        cycle = self._run(self._not_nominated, self.profile.cached_runner)
        now = self.profile.reuse.row_counts()
        new = [
            (now[n].evaluated - old.evaluated, now[n].cached - old.cached)
            for n, old in before.items()
        ]
        counts = Counter({"cycles": 1, "by a ranking": int(cycle.ranked_answer is not None)})
        counts["with totals"] = int(cycle.ranking is not None and cycle.ranked_answer is None)
        counts["in part evaluated"] = int(any(a > 0 and k > 0 for a, k in new))
        return cycle, counts

    @property
    def _not_nominated(self) -> PodInfo:
        pod = self.pod
        if not pod.nominated_node_name:
            return pod
        status = msgspec.structs.replace(pod.status, nominated_node_name=None)
        return msgspec.structs.replace(pod, status=status)

    def _run(self, pod: PodInfo, runner: CycleRunner) -> Cycle:
        cycle = Cycle(QueuedPodInfo(pod, 0.0), self.profile.framework, self.snapshot)
        result = runner.run(cycle)
        assert result is None, "there are no extenders"
        return cycle
