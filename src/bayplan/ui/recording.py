"""Records the changes around a scheduler: of pods and nodes, and the decisions of its journal.

A run is a function of its inputs. So a run folder needs no further file: the run is repeated once,
and the recorder writes down each change of a pod's or node's state and each decision. Changes are
numbered from 1 in the order in which they happen. Change 0 is the empty cluster.

Amounts follow the rules of `sim.world.occupancy`: a pod that has ended requests nothing, each
placed pod counts as one of `pods`, and devices count as amounts of the resources that they stand
for. A change of these devices is a change of the nodes that can use them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar, final

import numpy as np

from bayplan.adapters.embedded.cluster import EVENT
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import ApiObject, Node, Pod, is_terminal
from bayplan.api.pod_requests import PODS, requested
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.events import UPDATE, ActionType, ClusterEvent
from bayplan.framework.plugin import EnqueueExtensions
from bayplan.journal import AttemptRecord, BindingRecord, GateRecord, GroupRecord, Record
from bayplan.ports import EventType, WatchEvent
from bayplan.sim.simulation import Simulation
from bayplan.state.device_supply import DeviceSupply
from bayplan.state.device_table import ANY_NODE
from bayplan.state.pod_groups import group_key_of
from bayplan.ui.tables import Table, Tables, forget_before
from bayplan.ui.timeline import (
    NEVER,
    NEW,
    Cause,
    CausePart,
    ChangeColumn,
    ChangeKind,
    Life,
    PlacementColumn,
    PodRow,
    Rows,
    Timeline,
    VerdictColumn,
    VersionColumn,
    numbers,
)

_RESULTS = {
    "scheduled": ChangeKind.SCHEDULED,
    "unschedulable": ChangeKind.UNSCHEDULABLE,
    "waiting": ChangeKind.WAITING_AT_PERMIT,
    "error": ChangeKind.ERROR,
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
    """Records the changes around one scheduler, from its beginning. Use it once.

    `attach` makes it follow a simulation. For a live scheduler, `bayplan.ui.backlog` hands in what
    the watches and the journal bring, and has the beginning forgotten (`forget_before`).
    """

    def __init__(self, scheduler: Scheduler, now: Callable[[], float] | None = None) -> None:
        """``now``: the time of a change in seconds; None: the present time of the scheduler."""
        self._scheduler = scheduler
        self._now = now or scheduler.now_seconds
        self.change = 0
        #: The first change at which the state is complete.
        self.first_change = 0
        self._tables = Tables()
        self._tables.seconds.append([0.0])
        self._tables.changes.append([0, -1, -1])
        self._resources: dict[str, int] = {}
        self._amount_rows: dict[tuple[tuple[str, int], ...], int] = {}
        self._last_parts: tuple[object, ...] = ()
        self._last_amounts = 0
        self._pod_rows: dict[str, int] = {}
        #: "namespace/name" → the row of the newest pod of this name.
        self._rows_by_name: dict[str, int] = {}
        self._places: dict[str, _Place] = {}
        self._preempted: set[str] = set()
        self._ended: set[str] = set()
        self._node_rows: dict[str, int] = {}
        #: Node → the row of its version that lasts.
        self._current: dict[str, int] = {}
        self._devices = DeviceSupply()
        self._causes: dict[Cause, int] = {NEW: 0}
        #: By number; causes that are forgotten are `NEW`.
        self._numbered_causes: list[Cause] = [NEW]
        #: Pod → the row of its last verdict.
        self._last_verdict: dict[int, int] = {}
        self._groups: dict[str, int] = {}
        #: Group → its pods, also those that are gone.
        self._members: dict[int, list[int]] = defaultdict(list)
        self._group_causes: set[int] = set()
        self._group_records: list[tuple[int, GroupRecord]] = []
        self._queue_names = tuple(scheduler.queue.counts())
        #: A change, and the lengths of the queues after that change.
        self._queues = Table(1 + len(self._queue_names))
        self._last_look = -1
        self._wake_events: Mapping[str, tuple[str, ...]] | None = None
        self._line = 0

    def attach(self, simulation: Simulation) -> None:
        simulation.cluster.observe(self.observe, ignored_kinds=(EVENT,))
        simulation.keep_journal(self)
        simulation.scheduler.executor.observe(self.look)

    def look(self) -> None:
        """Note the lengths of the queues: the last ones of a change count."""
        self.note_queues(self._scheduler.queue.counts().values())

    def note_queues(self, lengths: Iterable[int]) -> None:
        """As `look`, of lengths that were read earlier, in the order of `queue.counts`."""
        row = [self.change, *lengths]
        if self._last_look == self.change:
            self._queues.put(len(self._queues) - 1, row)
        else:
            self._last_look = self.change
            self._queues.append(row)

    def _add(self, what: ChangeKind, pod: int = -1, node: int = -1) -> int:
        self.change += 1
        self._tables.seconds.append([self._now()])
        self._tables.changes.append([what, pod, node])
        return self.change

    # ---- objects ----------------------------------------------------------------------------

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """A change in an embedded API server: see `object_store.Observer`."""
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Pod):
            placed = None if after is None else after.placed_pod
            is_visible = after is not None and after.is_visible
            self.pod(changed.object, placed, is_there=after is not None, is_visible=is_visible)
        elif isinstance(changed.object, Node):
            self.node(changed.object, is_there=after is not None)
        else:
            self.devices(changed.object, is_there=after is not None)

    def observe_event(self, event: WatchEvent) -> None:
        """A watch event of any kind."""
        is_there = event.type is not EventType.DELETED
        if isinstance(event.object, Node):
            self.node(event.object, is_there=is_there)
        elif isinstance(event.object, Pod):
            pod = event.object
            is_visible = is_there and not is_terminal(pod)
            placed = pod if is_visible and pod.spec.node_name else None
            self.pod(pod, placed, is_there=is_there, is_visible=is_visible)

    def pod(self, pod: Pod, placed: Pod | None, *, is_there: bool, is_visible: bool) -> None:
        """A pod changed. ``placed``: the pod, if it is on a node and has not ended; ``is_visible``:
        whether it has not ended."""
        uid = pod.metadata.uid or ""
        is_new = uid not in self._pod_rows
        if is_new:
            requests = self._tables.amounts[self._amounts_of(pod)]
            self._reread_nodes(self._devices.request(requests))
            self._come(uid, pod)
        row = self._pod_rows[uid]
        is_placed = uid in self._places
        if not is_placed and placed is not None:
            self._place(row, uid, placed, is_new=is_new)
        elif is_placed and placed is None:
            self._leave(uid)
        elif placed is not None:
            self._resize(row, uid, placed)
        if is_there and not is_visible and uid not in self._ended:
            self._ended.add(uid)
            self._add(ChangeKind.POD_ENDED, row, self._row_of_node(pod))
        self._wait(row, is_there=is_there, is_waiting=placed is None and is_visible)
        if is_there and uid not in self._preempted and _is_preempted(pod):
            self._preempted.add(uid)
            self._add(ChangeKind.POD_PREEMPTED, row, self._row_of_node(pod))
        if not is_there:
            # A watch without terminal pods reports the end of a pod as its deletion.
            ends = is_terminal(pod) and uid not in self._ended
            what = ChangeKind.POD_ENDED if ends else ChangeKind.POD_DELETED
            gone = self._add(what, row, self._row_of_node(pod))
            self._tables.lives.set(row, Life.GONE, gone)
            self._preempted.discard(uid)
            self._ended.discard(uid)

    def _come(self, uid: str, pod: Pod) -> None:
        row = self._pod_rows[uid] = len(self._tables.pods)
        change = self._add(ChangeKind.POD_CREATED, row)
        meta, spec = pod.metadata, pod.spec
        key = group_key_of(pod, self._scheduler.pod_groups.kinds)
        group = -1 if key is None else self._group_row(str(key))
        if group >= 0:
            self._members[group].append(row)
        name = f"{meta.namespace}/{meta.name}"
        self._rows_by_name[name] = row
        self._tables.pods.append(
            PodRow(
                name=name,
                uid=uid,
                priority=spec.priority or 0,
                profile=spec.scheduler_name or "",
                amounts=self._amounts_of(pod),
            )
        )
        waits_from = NEVER if spec.node_name else change
        is_ours = self._scheduler.is_responsible_for(spec.scheduler_name)
        self._tables.lives.append([change, NEVER, waits_from, NEVER, group, int(is_ours), 0])

    def _wait(self, row: int, *, is_there: bool, is_waiting: bool) -> None:
        """End the waiting of a pod that has a node, has ended or is gone."""
        lives = self._tables.lives
        is_over = lives.get(row, Life.WAITS_TO) != NEVER
        if is_waiting or is_over or lives.get(row, Life.WAITS_FROM) == NEVER:
            return
        end = self.change if is_there else self.change + 1
        lives.set(row, Life.WAITS_TO, end)
        self._end_verdict(row, end)

    def _end_verdict(self, pod: int, end: int) -> None:
        verdict = self._last_verdict.get(pod)
        if verdict is not None:
            verdicts = self._tables.verdicts
            verdicts.set(
                verdict, VerdictColumn.END, min(verdicts.get(verdict, VerdictColumn.END), end)
            )

    def _place(self, row: int, uid: str, pod: Pod, *, is_new: bool) -> None:
        node = self._node_row(pod.spec.node_name or "")
        # A pod that comes with its node is one change.
        change = self.change if is_new else self._add(ChangeKind.POD_BOUND, row, node)
        if is_new:
            self._tables.changes.set(change, ChangeColumn.NODE, node)
        self._open(row, uid, node, pod)

    def _open(self, row: int, uid: str, node: int, pod: Pod) -> None:
        amounts_row = self._amounts_of(pod)
        placement = self._tables.placements.append([row, node, amounts_row, self.change, NEVER])
        self._places[uid] = _Place(placement, _parts(pod))

    def _leave(self, uid: str) -> None:
        """A placement ends with the next change."""
        place = self._places.pop(uid, None)
        if place is not None:
            self._tables.placements.set(place.row, PlacementColumn.END, self.change + 1)

    def _resize(self, row: int, uid: str, pod: Pod) -> None:
        place, placements = self._places[uid], self._tables.placements
        if _parts(pod) == place.parts:
            return
        if self._amounts_of(pod) != placements.get(place.row, PlacementColumn.AMOUNTS):
            node = placements.get(place.row, PlacementColumn.NODE)
            self._leave(uid)
            self._add(ChangeKind.POD_RESIZED, row, node)
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
            row = self._amount_rows[key] = len(self._tables.amounts)
            self._tables.amounts.append(of)
            for resource in of:
                self._resources.setdefault(resource, len(self._resources))
        return row

    # ---- nodes ------------------------------------------------------------------------------

    def _row_of_node(self, pod: Pod) -> int:
        """The node of a pod; -1: the pod has none."""
        return self._node_row(pod.spec.node_name) if pod.spec.node_name else -1

    def _node_row(self, name: str) -> int:
        row = self._node_rows.get(name)
        if row is None:
            row = self._node_rows[name] = len(self._tables.node_names)
            self._tables.node_names.append(name)
        return row

    def node(self, node: Node, *, is_there: bool) -> None:
        """A node changed."""
        name, tables = node.metadata.name, self._tables
        row, current = self._node_row(name), self._current.get(name)
        amounts_row = self._interned(self._devices.offered(node)) if is_there else 0
        if current is not None and is_there:
            has_amounts = tables.versions.get(current, VersionColumn.AMOUNTS) == amounts_row
            if has_amounts and not _differs(tables.nodes[current], node):
                return
        what = ChangeKind.NODE_CHANGED if current is not None else ChangeKind.NODE_ADDED
        change = self._add(what if is_there else ChangeKind.NODE_REMOVED, node=row)
        if current is not None:
            tables.versions.set(current, VersionColumn.END, change)
            del self._current[name]
        if is_there:
            self._current[name] = tables.versions.append([row, amounts_row, change, NEVER])
            tables.nodes.append(node)

    def devices(self, device_object: ApiObject, *, is_there: bool) -> None:
        """A DeviceClass or a ResourceSlice changed. Objects of other kinds are ignored."""
        self._reread_nodes(self._devices.change(device_object, is_there=is_there))

    def _reread_nodes(self, names: Collection[str]) -> None:
        """Note the nodes among these, or among all (ANY_NODE), that offer other amounts now."""
        for name in list(self._current) if ANY_NODE in names else sorted(names):
            current = self._current.get(name)
            if current is not None:
                self.node(self._tables.nodes[current], is_there=True)

    # ---- decisions --------------------------------------------------------------------------

    def write(self, record: Record) -> None:
        """A record of the journal: see `bayplan.journal.Sink`."""
        line, self._line = self._line, self._line + 1
        if isinstance(record, AttemptRecord):
            self._attempt(record, line)
        elif isinstance(record, GateRecord):
            part = CausePart(record.plugin, record.message)
            self._verdict(record.uid, ChangeKind.GATED, Cause("gated", (part,)))
        elif isinstance(record, BindingRecord):
            if record.result != _BOUND:
                part = CausePart(record.plugin, record.message)
                self._verdict(record.uid, ChangeKind.ERROR, Cause("error", (part,)))
        elif isinstance(record, GroupRecord):
            self._group(record)

    def _group(self, record: GroupRecord) -> None:
        """A member that no attempt has spoken about waits because its group waits."""
        change, group = self._add(ChangeKind.GROUP), self._group_row(record.group)
        self._group_records.append((change, record))
        if record.result not in _GROUP_REASONS:
            return
        cause = Cause("group", (CausePart("", _GROUP_REASONS[record.result]),))
        number = self._number_of(cause)
        for row in self._members.get(group, ()):
            is_waiting = self._tables.lives.get(row, Life.WAITS_TO) == NEVER
            if is_waiting and self._last_cause(row) in (0, *self._group_causes):
                self._note(change, row, number)
        self._group_causes.add(number)

    def _number_of(self, cause: Cause) -> int:
        number = self._causes.get(cause)
        if number is None:
            number = self._causes[cause] = len(self._numbered_causes)
            self._numbered_causes.append(cause)
        return number

    def _last_cause(self, pod: int) -> int:
        verdict = self._last_verdict.get(pod)
        return 0 if verdict is None else self._tables.verdicts.get(verdict, VerdictColumn.CAUSE)

    def _note(self, change: int, pod: int, cause: int) -> None:
        self._end_verdict(pod, change)
        end = self._tables.lives.get(pod, Life.WAITS_TO)
        self._last_verdict[pod] = self._tables.verdicts.append([change, pod, cause, end])

    def _attempt(self, record: AttemptRecord, line: int) -> None:
        what = _RESULTS.get(record.result, ChangeKind.ERROR)
        cause = None if what is ChangeKind.SCHEDULED else cause_of(record)
        row = self._verdict(record.uid, what, cause, record.node)
        if row >= 0:
            self._tables.attempts.append([self.change, row, record.attempt, what, line])

    def _verdict(self, uid: str, what: ChangeKind, cause: Cause | None, node: str = "") -> int:
        row = self._pod_rows.get(uid, -1)
        if row >= 0:
            change = self._add(what, row, self._node_row(node) if node else -1)
            self._note(change, row, -1 if cause is None else self._number_of(cause))
        return row

    def _group_row(self, name: str) -> int:
        return self._groups.setdefault(name, len(self._groups))

    # ---- the timeline -----------------------------------------------------------------------

    def timeline(self, now_seconds: float | None = None) -> Timeline:
        """The columns of all that was recorded, as views that stay valid while more is recorded.

        ``now_seconds``: the time, if more may follow.
        """
        minimums = {str(s.key): s.min_member for s in self._scheduler.pod_groups.all()}
        tables = self._tables
        if self._wake_events is None:
            self._wake_events = wake_events(self._scheduler)
        changes, queues = tables.changes.rows, self._queues.rows
        line = Timeline(
            seconds=tables.seconds.rows[:, 0],
            what=changes[:, ChangeColumn.WHAT],
            of_pod=changes[:, ChangeColumn.POD],
            of_node=changes[:, ChangeColumn.NODE],
            resources=tuple(self._resources),
            amounts=self._amount_table(),
            pods=list(tables.pods),
            lives=tables.lives.rows,
            placements=tables.placements.rows,
            node_names=list(tables.node_names),
            versions=tables.versions.rows,
            nodes=list(tables.nodes),
            attempts=tables.attempts.rows,
            verdicts=tables.verdicts.rows,
            causes=list(self._numbered_causes),
            group_names=list(self._groups),
            group_minimums=[minimums.get(name, 1) for name in self._groups],
            group_records=list(self._group_records),
            queue_changes=queues[:, 0],
            queue_lengths=queues[:, 1:],
            queue_names=self._queue_names,
            wake_events=self._wake_events,
            forgotten_attempts=tables.forgotten_attempts,
            first_change=self.first_change,
            now_seconds=now_seconds,
        )
        if now_seconds is not None:
            line.rows_by_name = self._rows_by_name
        return line

    def _amount_table(self) -> np.ndarray:
        table = np.zeros((len(self._tables.amounts), len(self._resources)), np.int64)
        for row, of in enumerate(self._tables.amounts):
            for resource, amount in of.items():
                table[row, self._resources[resource]] = amount
        return table

    # ---- forgetting -------------------------------------------------------------------------

    def forget_before(self, first: int) -> None:
        """Forget what ended before a change. All later changes get new numbers."""
        tables = self._tables
        to = forget_before(tables, first)
        self.change = len(tables.seconds) - 1
        self.first_change = int(to.changes[first])
        self._pod_rows = _mapped(self._pod_rows, to.pods)
        self._rows_by_name = _mapped(self._rows_by_name, to.pods)
        self._node_rows = _mapped(self._node_rows, to.nodes)
        self._current = _mapped(self._current, to.versions)
        self._places = {
            uid: place._replace(row=int(to.placements[place.row]))
            for uid, place in self._places.items()
        }
        self._last_verdict = {
            int(to.pods[pod]): int(to.verdicts[verdict])
            for pod, verdict in self._last_verdict.items()
            if to.pods[pod] >= 0 and to.verdicts[verdict] >= 0
        }
        self._amount_rows = _mapped(self._amount_rows, to.amounts)
        self._last_parts = ()
        queues = self._queues.rows
        oldest = max(int(np.searchsorted(queues[:, 0], first, side="right")) - 1, 0)
        queues = queues[oldest:].copy()
        queues[:, 0] = to.changes[np.maximum(queues[:, 0], first)]
        self._queues.replace(queues)
        self._last_look = int(queues[-1, 0]) if len(queues) else -1
        self._forget_causes()
        self._forget_groups(first, to.changes)

    def _forget_causes(self) -> None:
        """The numbers of causes stay, because the page names them in its address."""
        used = set(self._tables.verdicts.rows[:, VerdictColumn.CAUSE].tolist()) | {0}
        self._causes = {one: number for one, number in self._causes.items() if number in used}
        self._numbered_causes = [
            cause if number in used else NEW for number, cause in enumerate(self._numbered_causes)
        ]
        self._group_causes &= used

    def _forget_groups(self, first: int, changes: Rows) -> None:
        """Forget groups without pods."""
        groups = self._tables.lives.rows[:, Life.GROUP]
        members = np.flatnonzero(groups >= 0)
        used, numbers_of_members = np.unique(groups[members], return_inverse=True)
        groups[members] = numbers_of_members
        to = np.full(len(self._groups), -1, np.int64)
        to[used] = np.arange(len(used))
        self._groups = _mapped(self._groups, to)
        self._members = defaultdict(list)
        for pod, group in zip(numbers(members), numbers(groups[members]), strict=True):
            self._members[group].append(pod)
        self._group_records = [
            (max(int(changes[change]), 0), record)
            for change, record in self._group_records
            if change >= first and record.group in self._groups
        ]


_Key = TypeVar("_Key")


def _mapped(rows: dict[_Key, int], to: Rows) -> dict[_Key, int]:
    """The rows with their new numbers, without those that are forgotten."""
    return {key: int(to[row]) for key, row in rows.items() if to[row] >= 0}


def _parts(pod: Pod) -> tuple[object, ...]:
    """What the requests of a pod follow from."""
    spec = pod.spec
    return (spec.containers, spec.init_containers, spec.overhead, spec.resources, pod.status)


def _is_preempted(pod: Pod) -> bool:
    return any(c.reason == _PREEMPTED for c in pod.status.conditions or ())


def _differs(one: Node, other: Node) -> bool:
    """Whether a node changed in what the page shows."""
    return (
        one.metadata.labels != other.metadata.labels
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
