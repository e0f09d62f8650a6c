"""Gangs: what a decision of the scheduler may never leave behind.

After every turn of the scheduler it is asked which members of groups count on nodes now, by the
node table's own lists of pods and not by the counts that groups keep. Two things are wrong:

- a member was given a node, and its group holds fewer than its minimum, or has no object;
- some members gave their nodes back, and others that wait for them at Permit did not.

Where members are placed one by one, the first is wrong only for a member that does not wait. What
the world does (it deletes a pod, raises the minimum, does not answer a binding) may leave a group
with fewer than its minimum: that is nobody's fault until a further member is placed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.interface import GroupPlacement
from bayplan.sim.checkers import InvariantBroken
from bayplan.state.change_log import Facet
from bayplan.state.pods import PodInfo

#: Of a pod that belongs to no group: None.
_Key = GroupKey | None

_FACETS = int(Facet.PODS | Facet.NODE)


@final
class GangChecker:
    """Looks at one scheduler after each of its turns; without groups that costs nothing."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._generation: int | None = None
        #: Per row of the node table: the pods that were on it, by uid.
        self._rows: dict[int, dict[str, _Key]] = {}
        self._held: Counter[GroupKey] = Counter()
        #: How often a decision was looked at: to place a member, and that members left a group.
        self.taken_count = self.left_count = 0
        scheduler.turns.observe(self.look)

    def look(self) -> None:
        """Raises InvariantBroken."""
        log = self._scheduler.cache.table.log
        if self._generation == log.generation or self._scheduler.pod_groups.is_empty:
            return
        is_first, came, went = self._generation is None, list[PodInfo](), dict[str, _Key]()
        for row in log.rows_since(self._generation or 0, _FACETS).tolist():
            self._compare(row, came, went)
        self._generation = log.generation
        if not is_first:
            here = {pod.uid for pod in came}
            self._check_taken(pod for pod in came if pod.uid not in went)
            self._check_left({key for uid, key in went.items() if key and uid not in here})

    def _compare(self, row: int, came: list[PodInfo], went: dict[str, _Key]) -> None:
        """What changed on one node since it was looked at last."""
        before = self._rows.get(row, {})
        pods = self._scheduler.cache.table.pods[row]
        now = {uid: pod.group_key for uid, pod in pods.items()}
        went.update((uid, key) for uid, key in before.items() if uid not in now)
        came += (pod for uid, pod in pods.items() if uid not in before)
        self._held.subtract(key for key in before.values() if key is not None)
        self._held.update(key for key in now.values() if key is not None)
        self._rows[row] = now

    def _check_taken(self, placed: Iterable[PodInfo]) -> None:
        """Pods that are on a node since this turn."""
        for pod in placed:
            key = pod.group_key
            if key is None or not self._scheduler.cache.is_assumed(pod.uid):
                continue
            self.taken_count += 1
            held, wanted = self._held[key], self._minimum(key)
            if (wanted is None or held < wanted) and not self._waits_alone(pod):
                minimum = "and has no object" if wanted is None else f"of {wanted}"
                raise InvariantBroken(
                    f"{pod.key} was placed on {pod.node_name}: "
                    f"group {key} holds {held} nodes {minimum}"
                )

    def _check_left(self, left: set[GroupKey]) -> None:
        """Groups that hold less since this turn."""
        for key in left:
            self.left_count += 1
            wanted = self._minimum(key)
            if wanted is None or not 0 < self._held[key] < wanted:
                continue
            for held in self._scheduler.waiting_pods():
                if held.pod.group_key == key and not self._is_placed_alone(held.pod):
                    raise InvariantBroken(
                        f"group {key} gave nodes back and holds {self._held[key]} of {wanted}: "
                        f"{held.pod.key} waits on {held.pod.node_name} for members that left"
                    )

    def _minimum(self, key: GroupKey) -> int | None:
        """As the scheduler knows it; None: the group has no object."""
        state = self._scheduler.pod_groups.get(key)
        group = None if state is None else state.group
        return None if group is None else group.min_member

    def _waits_alone(self, pod: PodInfo) -> bool:
        waiting = (held.pod.uid for held in self._scheduler.waiting_pods())
        return self._is_placed_alone(pod) and pod.uid in waiting

    def _is_placed_alone(self, pod: PodInfo) -> bool:
        instances = self._scheduler.framework(pod.scheduler_name).plugins.instances()
        return any(isinstance(p, GroupPlacement) and p.places_pod_by_pod for p in instances)
