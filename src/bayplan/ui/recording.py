"""Records the changes of a simulation: an observer of the embedded API server and a journal sink.

A run is a function of its inputs. So a run folder needs no further file: the run is repeated once,
and the recorder writes down each change of a pod's or node's state and each decision. Changes are
numbered from 1 in the order in which they happen. Change 0 is the empty cluster.

Requested amounts follow the rules of `sim.world.checkers.Occupancy`: a pod that has ended requests
nothing, and each placed pod counts as one of `pods`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, final

import numpy as np

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.objects import Node, Pod
from bayplan.api.pod_requests import PODS, amounts, requested
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import UPDATE, ActionType, ClusterEvent
from bayplan.framework.plugin import EnqueueExtensions
from bayplan.journal import AttemptRecord, BindingRecord, GateRecord, GroupRecord, Record
from bayplan.sim.simulation import Simulation
from bayplan.state.pod_groups import group_key_of
from bayplan.ui.timeline import NEVER, NEW, Cause, CausePart, Happening, PodRow, Timeline

_RESULTS = {
    "scheduled": Happening.SCHEDULED,
    "unschedulable": Happening.UNSCHEDULABLE,
    "waiting": Happening.WAITING_AT_PERMIT,
    "error": Happening.ERROR,
}
#: Results of attempts at a group after which its members wait.
_GROUP_REASONS = {
    "short": "members of the pod group are missing",
    "unschedulable": "not enough members of the pod group fit",
    "error": "the attempt at the pod group failed with an error",
    "given back": "the pod group gave its nodes back",
    "timed out": "the pod group waited too long",
}
_PREEMPTED = "PreemptionByScheduler"
_BOUND = "bound"


# ---- the recorder ---------------------------------------------------------------------------


class _Place(NamedTuple):
    """A placement that lasts: its row, and what the requests follow from."""

    row: int
    parts: tuple[object, ...]


@final
class Recorder:
    """Records one simulation. Attach it before the simulation runs; use it once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.change = 0
        self._seconds = [0.0]
        self._what = [0]
        self._of_pod = [-1]
        self._of_node = [-1]
        self._resources: dict[str, int] = {}
        self._amounts: list[dict[str, int]] = []
        self._amount_rows: dict[tuple[tuple[str, int], ...], int] = {}
        self._last_parts: tuple[object, ...] = ()
        self._last_amounts = 0
        self._pods: list[PodRow] = []
        self._pod_rows: dict[str, int] = {}
        #: Placement: pod, node, row of amounts, first change, end.
        self._placements: list[list[int]] = []
        self._places: dict[str, _Place] = {}
        self._preempted: set[str] = set()
        self._node_rows: dict[str, int] = {}
        #: Version of a node: node, row of amounts, first change, end.
        self._versions: list[list[int]] = []
        self._nodes: list[Node] = []
        self._current: dict[str, int] = {}
        #: Attempt: change, pod, number, happening, line of the journal.
        self._attempts: list[tuple[int, int, int, int, int]] = []
        #: Verdict: change, pod, cause; -1: no cause to wait.
        self._verdicts: list[tuple[int, int, int]] = []
        self._causes: dict[Cause, int] = {NEW: 0}
        #: Pod → its last verdict.
        self._last_cause: dict[int, int] = {}
        self._groups: dict[str, int] = {}
        #: Group → its pods, also those that are gone.
        self._members: dict[int, list[int]] = defaultdict(list)
        self._group_causes: set[int] = set()
        self._group_records: list[tuple[int, GroupRecord]] = []
        #: Change → the lengths of the queues after that change.
        self._queues: dict[int, tuple[int, ...]] = {}
        self._line = 0

    def attach(self, simulation: Simulation) -> None:
        simulation.cluster.observe(self.observe, ignored_kinds=(EVENT,))
        simulation.keep_journal(self)
        simulation.scheduler.executor.observe(self._look)

    def _look(self) -> None:
        """Note the lengths of the queues: the last ones of a change count."""
        self._queues[self.change] = tuple(self._scheduler.queue.counts().values())

    def _add(self, what: Happening, pod: int = -1, node: int = -1) -> int:
        self.change += 1
        self._seconds.append(self._scheduler.now_seconds())
        self._what.append(what)
        self._of_pod.append(pod)
        self._of_node.append(node)
        return self.change

    # ---- objects ----------------------------------------------------------------------------

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Pod):
            self._pod(before, after)
        elif isinstance(changed.object, Node):
            self._node(changed.object, after is not None)

    def _pod(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        pod = changed.object
        assert isinstance(pod, Pod)
        uid = pod.metadata.uid or ""
        if before is None:
            self._come(uid, pod)
        old = None if before is None else before.placed_pod
        new = None if after is None else after.placed_pod
        row = self._pod_rows[uid]
        if old is None and new is not None:
            self._place(row, uid, new, is_new=before is None)
        elif old is not None and new is None:
            self._leave(uid)
        elif new is not None:
            self._resize(row, uid, new)
        if after is not None and not after.is_visible and (before is None or before.is_visible):
            self._add(Happening.POD_ENDED, row, self._row_of_node(pod))
        self._wait(row, after)
        if after is not None and uid not in self._preempted and _is_preempted(pod):
            self._preempted.add(uid)
            self._add(Happening.POD_PREEMPTED, row, self._row_of_node(pod))
        if after is None:
            self._pods[row].gone = self._add(Happening.POD_DELETED, row, self._row_of_node(pod))

    def _come(self, uid: str, pod: Pod) -> None:
        row = self._pod_rows[uid] = len(self._pods)
        change = self._add(Happening.POD_CREATED, row)
        meta, spec = pod.metadata, pod.spec
        key = group_key_of(pod, self._scheduler.pod_groups.kinds)
        group = -1 if key is None else self._group_row(str(key))
        if group >= 0:
            self._members[group].append(row)
        self._pods.append(
            PodRow(
                name=f"{meta.namespace}/{meta.name}",
                uid=uid,
                priority=spec.priority or 0,
                profile=spec.scheduler_name or "",
                group=group,
                amounts=self._amounts_of(pod),
                created=change,
                is_ours=self._scheduler.is_responsible_for(spec.scheduler_name),
                waits_from=NEVER if spec.node_name else change,
            )
        )

    def _wait(self, row: int, after: Stored | None) -> None:
        """End the waiting of a pod that has a node, has ended or is gone."""
        pod = self._pods[row]
        if pod.waits_from == NEVER or pod.waits_to != NEVER:
            return
        if after is None:
            pod.waits_to = self.change + 1
        elif after.placed_pod is not None or not after.is_visible:
            pod.waits_to = self.change

    def _place(self, row: int, uid: str, pod: Pod, *, is_new: bool) -> None:
        node = self._node_row(pod.spec.node_name or "")
        # A pod that comes with its node is one change.
        change = self.change if is_new else self._add(Happening.POD_BOUND, row, node)
        if is_new:
            self._of_node[change] = node
        self._open(row, uid, node, pod)

    def _open(self, row: int, uid: str, node: int, pod: Pod) -> None:
        amounts_row = self._amounts_of(pod)
        self._places[uid] = _Place(len(self._placements), _parts(pod))
        self._placements.append([row, node, amounts_row, self.change, NEVER])

    def _leave(self, uid: str) -> None:
        """A placement ends with the next change."""
        place = self._places.pop(uid, None)
        if place is not None:
            self._placements[place.row][4] = self.change + 1

    def _resize(self, row: int, uid: str, pod: Pod) -> None:
        place = self._places[uid]
        if _parts(pod) == place.parts:
            return
        if self._amounts_of(pod) != self._placements[place.row][2]:
            node = self._placements[place.row][1]
            self._leave(uid)
            self._add(Happening.POD_RESIZED, row, node)
            self._open(row, uid, node, pod)

    def _amounts_of(self, pod: Pod) -> int:
        """The row of a placed pod's amounts. They follow from parts that pods often share."""
        parts = _parts(pod)
        if parts != self._last_parts:
            self._last_parts = parts
            self._last_amounts = self._interned({**requested(pod), PODS: 1})
        return self._last_amounts

    def _interned(self, of: dict[str, int]) -> int:
        key = tuple(sorted(of.items()))
        row = self._amount_rows.get(key)
        if row is None:
            row = self._amount_rows[key] = len(self._amounts)
            self._amounts.append(of)
            for resource in of:
                self._resources.setdefault(resource, len(self._resources))
        return row

    # ---- nodes ------------------------------------------------------------------------------

    def _row_of_node(self, pod: Pod) -> int:
        """The node of a pod; -1: the pod has none."""
        return self._node_row(pod.spec.node_name) if pod.spec.node_name else -1

    def _node_row(self, name: str) -> int:
        return self._node_rows.setdefault(name, len(self._node_rows))

    def _node(self, node: Node, is_there: bool) -> None:
        name = node.metadata.name
        row, current = self._node_row(name), self._current.get(name)
        if current is not None and is_there and not _differs(self._nodes[current], node):
            return
        what = Happening.NODE_CHANGED if current is not None else Happening.NODE_ADDED
        change = self._add(what if is_there else Happening.NODE_REMOVED, node=row)
        if current is not None:
            self._versions[current][3] = change
            del self._current[name]
        if is_there:
            self._current[name] = len(self._versions)
            amounts_row = self._interned(amounts(node.status.allocatable))
            self._versions.append([row, amounts_row, change, NEVER])
            self._nodes.append(node)

    # ---- decisions --------------------------------------------------------------------------

    def write(self, record: Record) -> None:
        """A record of the journal: see `bayplan.journal.Sink`."""
        line, self._line = self._line, self._line + 1
        if isinstance(record, AttemptRecord):
            self._attempt(record, line)
        elif isinstance(record, GateRecord):
            part = CausePart(record.plugin, record.message)
            self._verdict(record.uid, Happening.GATED, Cause("gated", (part,)))
        elif isinstance(record, BindingRecord):
            if record.result != _BOUND:
                part = CausePart(record.plugin, record.message)
                self._verdict(record.uid, Happening.ERROR, Cause("error", (part,)))
        elif isinstance(record, GroupRecord):
            self._group(record)

    def _group(self, record: GroupRecord) -> None:
        """A member that no attempt has spoken about waits because its group waits."""
        change, group = self._add(Happening.GROUP), self._group_row(record.group)
        self._group_records.append((change, record))
        if record.result not in _GROUP_REASONS:
            return
        cause = Cause("group", (CausePart("", _GROUP_REASONS[record.result]),))
        number = self._causes.setdefault(cause, len(self._causes))
        for row in self._members.get(group, ()):
            is_waiting = self._pods[row].waits_to == NEVER
            if is_waiting and self._last_cause.get(row, 0) in (0, *self._group_causes):
                self._note(change, row, number)
        self._group_causes.add(number)

    def _note(self, change: int, pod: int, cause: int) -> None:
        self._verdicts.append((change, pod, cause))
        self._last_cause[pod] = cause

    def _attempt(self, record: AttemptRecord, line: int) -> None:
        what = _RESULTS.get(record.result, Happening.ERROR)
        cause = None if what is Happening.SCHEDULED else cause_of(record)
        row = self._verdict(record.uid, what, cause, record.node)
        if row >= 0:
            self._attempts.append((self.change, row, record.attempt, what, line))

    def _verdict(self, uid: str, what: Happening, cause: Cause | None, node: str = "") -> int:
        row = self._pod_rows.get(uid, -1)
        if row >= 0:
            change = self._add(what, row, self._node_row(node) if node else -1)
            number = -1 if cause is None else self._causes.setdefault(cause, len(self._causes))
            self._note(change, row, number)
        return row

    def _group_row(self, name: str) -> int:
        return self._groups.setdefault(name, len(self._groups))

    # ---- the end ----------------------------------------------------------------------------

    def timeline(self) -> Timeline:
        """The columns of all that was recorded."""
        minimums = {str(s.key): s.min_member for s in self._scheduler.pod_groups.all()}
        return Timeline(
            seconds=np.array(self._seconds),
            what=np.array(self._what, np.uint8),
            of_pod=np.array(self._of_pod, np.int32),
            of_node=np.array(self._of_node, np.int32),
            resources=tuple(self._resources),
            amounts=self._amount_table(),
            pods=self._pods,
            placements=_table(self._placements, 5),
            node_names=list(self._node_rows),
            versions=_table(self._versions, 4),
            nodes=self._nodes,
            attempts=_table(self._attempts, 5),
            verdicts=_table(self._verdicts, 3),
            causes=list(self._causes),
            group_names=list(self._groups),
            group_minimums=[minimums.get(name, 1) for name in self._groups],
            group_records=self._group_records,
            queue_changes=np.array(list(self._queues), np.int64),
            queue_lengths=_table(self._queues.values(), 4),
            queue_names=tuple(self._scheduler.queue.counts()),
            wake_events=wake_events(self._scheduler),
        )

    def _amount_table(self) -> np.ndarray:
        table = np.zeros((len(self._amounts), len(self._resources)), np.int64)
        for row, of in enumerate(self._amounts):
            for resource, amount in of.items():
                table[row, self._resources[resource]] = amount
        return table


def _table(rows: Iterable[Iterable[int]], width: int) -> np.ndarray:
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, width)


def _parts(pod: Pod) -> tuple[object, ...]:
    """What the requests of a pod follow from."""
    spec = pod.spec
    return (spec.containers, spec.init_containers, spec.overhead, spec.resources, pod.status)


def _is_preempted(pod: Pod) -> bool:
    return any(c.reason == _PREEMPTED for c in pod.status.conditions or ())


def _differs(one: Node, other: Node) -> bool:
    """Whether a node changed in what the page shows."""
    return (
        one.status.allocatable != other.status.allocatable
        or one.metadata.labels != other.metadata.labels
        or one.spec.taints != other.spec.taints
        or one.spec.unschedulable != other.spec.unschedulable
    )


# ---- causes ---------------------------------------------------------------------------------


def cause_of(record: AttemptRecord) -> Cause:
    """Why the pod of a failed attempt waits: its reasons without counts of nodes."""
    if record.result == "waiting":
        return Cause("permit", (CausePart(record.plugin, record.message),))
    kind = "error" if record.result == "error" else "unschedulable"
    parts = {(one.plugin, one.reason) for one in record.rejections}
    if not parts:
        parts = {(record.plugin, record.message)}
    return Cause(kind, tuple(CausePart(*part) for part in sorted(parts)))


def wake_events(scheduler: Scheduler) -> Mapping[str, tuple[str, ...]]:
    """Plugin instance → the events after which its rejected pods are tried again, in words."""
    events: dict[str, tuple[str, ...]] = {}
    for profile in scheduler.profile_names:
        for plugin in scheduler.framework(profile).plugins.instances():
            name = plugin.instance_name
            if isinstance(plugin, EnqueueExtensions):
                named = [_event_name(one.event) for one in plugin.events_to_register()]
                events[name] = tuple(dict.fromkeys(named))
    return events


def _event_name(event: ClusterEvent) -> str:
    """Such as "Node: added, label changed"."""
    words: list[str] = []
    if event.action & ActionType.ADD:
        words.append("added")
    if event.action & ActionType.DELETE:
        words.append("deleted")
    updates = event.action & UPDATE
    if updates == UPDATE:
        words.append("changed")
    elif updates:
        bits = (str(bit).removeprefix("UpdateNode") for bit in ActionType if bit in updates)
        parts = [_words(bit.removeprefix("UpdatePod")) for bit in bits]
        words.append(f"{', '.join(parts)} changed")
    return f"{event.resource.rpartition('/')[2]}: {', '.join(words)}"


def _words(text: str) -> str:
    """The words of a name in camel case: "GatesEliminated" → "gates eliminated"."""
    return re.sub("(?<!^)(?=[A-Z])", " ", text).lower()
