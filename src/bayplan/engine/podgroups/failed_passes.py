"""FailedPasses: passes that placed too few members, repeated for members of the same kind.

On a full cluster many groups of one kind fail one after another, and each failed pass leaves the
cluster as it was. While nothing changes, the next pass over members of that kind has the same
result, if no draw decided it. So only the first member is evaluated, for its ranking, and the
result of the earlier pass is repeated with the names of the new members.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace as replace_field
from typing import Final, final

from msgspec import structs

from bayplan.engine.podgroups.equal_members import are_equal, decides, kind_of, ranking_for
from bayplan.engine.podgroups.trial import (
    FittingMember,
    PassResult,
    PodGroupTrial,
    TrialSetup,
)
from bayplan.engine.reuse.entry import ObjectGeneration
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.state.pod_groups import GroupState

#: Kinds of members whose results are remembered.
_KINDS_MAX: Final = 256


@final
class FailedPasses:
    """Results of failed passes by kind of members, as of one state of the cluster."""

    def __init__(self, setup: TrialSetup) -> None:
        cluster = setup.engine.cluster
        self._setup = setup
        self._log = cluster.cache.table.log
        self._objects = ObjectGeneration(cluster.cache.table, cluster.objects)
        self._results: dict[Hashable, PassResult] = {}
        #: The generations of the nodes and of all other objects.
        self._generations = (-1, -1)

    def find(
        self, members: Sequence[QueuedPodInfo], state: GroupState, needed_count: int
    ) -> PassResult | None:
        """The result of a pass over these members; None: only a pass tells. The cluster is lent."""
        if self._generations != self._current_generations():
            self._results.clear()
        if not self._results or not self._may_repeat(state):
            return None
        ranking = ranking_for(self._setup, members)
        if ranking is None:
            return None
        result = self._results.get(kind_of(ranking, members, needed_count))
        return None if result is None else self._repeated(result, members)

    def learn(
        self,
        group_trial: PodGroupTrial,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        needed_count: int,
    ) -> None:
        """Remember the result of a failed pass."""
        ranking = group_trial.ranking
        if ranking is None or not self._may_repeat(state) or group_trial.error is not None:
            return
        if decides(ranking) and are_equal(self._setup, members):
            if len(self._results) >= _KINDS_MAX:
                self._results.clear()
            self._results[kind_of(ranking, members, needed_count)] = group_trial.result()

    def stay(self) -> None:
        """The attempt left the cluster as it was: the results hold for the next attempt."""
        self._generations = self._current_generations()

    def _current_generations(self) -> tuple[int, int]:
        return self._log.generation, self._objects.now()

    def _may_repeat(self, state: GroupState) -> bool:
        """Whether the pass of the group is one over all nodes, and only the pass decides."""
        group = state.group
        assert group is not None, "no attempt is made at a group without an object"
        is_in_domain = group.required_topology or group.preferred_topology
        has_reservation = self._setup.engine.reservations.current is not None
        return not (is_in_domain or has_reservation or group.min_resources)

    def _repeated(self, result: PassResult, members: Sequence[QueuedPodInfo]) -> PassResult:
        """The result with other members, in the order in which they are tried."""
        at_seconds = self._setup.engine.clock.now()

        def own(record: AttemptRecord | None, queued: QueuedPodInfo) -> AttemptRecord | None:
            if record is None:
                return None
            pod, attempt = queued.pod, queued.attempts
            return structs.replace(
                record, at_seconds=at_seconds, pod=pod.key, uid=pod.uid, attempt=attempt
            )

        tried = list(members)
        unplaced = [
            replace_field(one, queued=queued, record=own(one.record, queued))
            for one in result.unplaced
            for queued in (tried[one.nth - 1],)
        ]
        places = {one.nth - 1 for one in result.unplaced}
        fitting = [queued for place, queued in enumerate(tried) if place not in places]
        placed = [
            FittingMember(queued.pod.uid, own(one.record, queued))
            for one, queued in zip(result.placed, fitting, strict=False)
        ]
        return replace_field(result, placed=placed, unplaced=unplaced)
