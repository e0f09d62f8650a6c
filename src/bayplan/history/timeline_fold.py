"""The fold of a log into a timeline: each change of a pod's or node's state, and each decision.

Changes are numbered from 1 in the order in which they happen. Change 0 is the empty cluster. An
entry of the log makes no change, one, or several.

Amounts follow the rules of `sim.world.occupancy`: a pod that has ended requests nothing, each
placed pod counts as one of `pods`, and devices count as amounts of the resources that they stand
for. A change of these devices is a change of the nodes that can use them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from sys import intern
from types import MappingProxyType
from typing import NamedTuple, TypeVar, final

import numpy as np

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.objects import (
    DEFAULT_SCHEDULER,
    NODE,
    POD,
    PREEMPTION_BY_SCHEDULER,
    DecodeError,
    Node,
    Pod,
    decoded_as,
    is_terminal,
)
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.api.pod_requests import PODS, requested
from bayplan.history import columns
from bayplan.history.entries import Entry, ObjectChange, Origin, QueueLengths
from bayplan.history.timeline import (
    NEW,
    Cause,
    CausePart,
    ChangeKind,
    Timeline,
    is_ready,
    numbers,
)
from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    Record,
)
from bayplan.objects.workloads import workload_of
from bayplan.ports import EventType
from bayplan.state.device_supply import DeviceSupply
from bayplan.state.device_table import ANY_NODE
from bayplan.state.pod_groups import group_key_of

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
_BOUND = "bound"
_NO_LABELS: Mapping[str, str] = MappingProxyType({})


# ---- the fold -------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A placement that has not ended: its row, and what the requests follow from."""

    row: int
    parts: tuple[object, ...]


#: What a fold reads: the entries of a log, with the records of the journal in place of decisions.
Item = Entry | Record


@final
class TimelineFold:
    """Adds the items of one log up to a timeline, from the beginning. Use it once.

    The fold of a running scheduler forgets its beginning from time to time (`forget_before`).
    """

    def __init__(self, origin: Origin, group_kinds: PodGroupKinds) -> None:
        self._origin = origin
        self._group_kinds = group_kinds
        self._readers: dict[str, Callable[[ObjectChange], None]] = {
            NODE: self._read_node,
            POD: self._read_pod,
            DEVICE_CLASS: self._read_devices,
            RESOURCE_SLICE: self._read_devices,
            **dict.fromkeys(group_kinds, self._read_group),
        }
        #: The kinds of objects that a timeline follows from.
        self.kinds = frozenset(self._readers)
        self.change = 0
        #: The time of the last item, in seconds.
        self.seconds = 0.0
        #: The first change at which the state is complete.
        self.first_change = 0
        #: The number of entries of the log up to the present item.
        self._entry_count = 0
        self._tables = columns.Tables()
        self._tables.times.append([0.0])
        self._tables.changes.append([0, -1, -1, 0])
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
        #: Group → the minimum of members of its object.
        self._minimums: dict[str, int] = {}
        #: Group → its pods, also those that are gone.
        self._members: dict[int, list[int]] = defaultdict(list)
        #: Group → why no node admitted the first member that was rejected since the last record of
        #: the group.
        self._rejections: dict[int, Cause] = {}
        self._group_records: list[tuple[int, GroupRecord]] = []
        #: A change, and the lengths of the queues after that change.
        self._queues = columns.Table(columns.QueueSamples, further=len(origin.queue_names))
        self._last_look = -1
        self._line = 0

    @property
    def pod_count(self) -> int:
        """How many pods came so far, without those that are forgotten."""
        return len(self._tables.pods)

    def begin_at(self, record_count: int) -> None:
        """Begin with a log whose beginning is missing. The items so far are its checkpoint, and the
        journal has ``record_count`` records before it."""
        self.first_change = self.change
        self._line = record_count

    def add(self, item: Item, entry_count: int = 0) -> None:
        """Add the next item. ``entry_count``: how many entries the log has with it."""
        self._entry_count = entry_count
        if isinstance(item, ObjectChange):
            read = self._readers.get(item.kind)
            if read is not None:
                self.seconds = max(self.seconds, item.at_seconds)
                read(item)
        elif isinstance(item, QueueLengths):
            self._add_lengths(item.lengths)
        elif isinstance(item, Record):
            self.seconds = max(self.seconds, item.at_seconds)
            self._add_record(item)

    def _add_lengths(self, lengths: tuple[int, ...]) -> None:
        """Note the lengths of the queues. For each change, only the last lengths count."""
        row = [self.change, *lengths]
        if self._last_look == self.change:
            self._queues.put(len(self._queues) - 1, row)
        else:
            self._last_look = self.change
            self._queues.append(row)

    def _add(self, what: ChangeKind, pod: int = -1, node: int = -1) -> int:
        self.change += 1
        self._tables.times.append([self.seconds])
        self._tables.changes.append([what, pod, node, self._entry_count])
        return self.change

    # ---- objects ----------------------------------------------------------------------------

    def _read_pod(self, change: ObjectChange) -> None:
        pod, is_there = change.object, change.type is not EventType.DELETED
        assert isinstance(pod, Pod)
        is_visible = is_there and not is_terminal(pod)
        placed = pod if is_visible and pod.spec.node_name else None
        self._pod(pod, placed, is_there=is_there, is_visible=is_visible)

    def _read_node(self, change: ObjectChange) -> None:
        node = change.object
        assert isinstance(node, Node)
        self._node(node, is_there=change.type is not EventType.DELETED)

    def _read_devices(self, change: ObjectChange) -> None:
        is_there = change.type is not EventType.DELETED
        self._reread_nodes(self._devices.change(change.object, is_there=is_there))

    def _read_group(self, change: ObjectChange) -> None:
        """A group whose object cannot be read has the minimum that it had."""
        kind = self._group_kinds.by_kind[change.kind]
        try:
            content = decoded_as(change.kind, kind.decoded_as, change.object)
            group = kind.compile(change.kind, content)
        except DecodeError:
            return
        if change.type is EventType.DELETED:
            self._minimums.pop(str(group.key), None)
        else:
            self._minimums[str(group.key)] = group.min_member

    def _pod(self, pod: Pod, placed: Pod | None, *, is_there: bool, is_visible: bool) -> None:
        """Follow a change of a pod. ``placed``: the pod, if it is on a node and has not ended;
        ``is_visible``: whether it has not ended."""
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
            self._tables.lives.set(row, columns.Lives.gone, gone)
            self._preempted.discard(uid)
            self._ended.discard(uid)

    def _come(self, uid: str, pod: Pod) -> None:
        row = self._pod_rows[uid] = len(self._tables.pods)
        change = self._add(ChangeKind.POD_CREATED, row)
        meta, spec = pod.metadata, pod.spec
        key = group_key_of(pod, self._group_kinds)
        group = -1 if key is None else self._group_row(str(key))
        if group >= 0:
            self._members[group].append(row)
        name = f"{meta.namespace}/{meta.name}"
        self._rows_by_name[name] = row
        self._tables.pods.append(
            columns.PodRow(
                name=name,
                uid=uid,
                priority=spec.priority or 0,
                profile=spec.scheduler_name or "",
                # Pods of one workload share the text.
                workload=intern(workload_of(pod)),
                amounts=self._amounts_of(pod),
                labels=meta.labels or _NO_LABELS,
            )
        )
        waits_from = columns.NEVER if spec.node_name else change
        is_ours = (spec.scheduler_name or DEFAULT_SCHEDULER) in self._origin.profiles
        self._tables.lives.append(
            [change, columns.NEVER, waits_from, columns.NEVER, group, int(is_ours), 0]
        )

    def _wait(self, row: int, *, is_there: bool, is_waiting: bool) -> None:
        """End the wait of a pod that has a node, has ended or is gone."""
        lives = self._tables.lives
        is_over = lives.get(row, columns.Lives.waits_to) != columns.NEVER
        if is_waiting or is_over or lives.get(row, columns.Lives.waits_from) == columns.NEVER:
            return
        end = self.change if is_there else self.change + 1
        lives.set(row, columns.Lives.waits_to, end)
        self._end_verdict(row, end)

    def _end_verdict(self, pod: int, end: int) -> None:
        verdict = self._last_verdict.get(pod)
        if verdict is not None:
            verdicts = self._tables.verdicts
            verdicts.set(
                verdict, columns.Verdicts.end, min(verdicts.get(verdict, columns.Verdicts.end), end)
            )

    def _place(self, row: int, uid: str, pod: Pod, *, is_new: bool) -> None:
        node = self._node_row(pod.spec.node_name or "")
        # A pod that comes with its node is one change.
        change = self.change if is_new else self._add(ChangeKind.POD_BOUND, row, node)
        if is_new:
            self._tables.changes.set(change, columns.Changes.node, node)
        self._open(row, uid, node, pod)

    def _open(self, row: int, uid: str, node: int, pod: Pod) -> None:
        amounts_row = self._amounts_of(pod)
        placement = self._tables.placements.append(
            [row, node, amounts_row, self.change, columns.NEVER]
        )
        self._places[uid] = _Place(placement, _parts(pod))

    def _leave(self, uid: str) -> None:
        """End a placement at the next change."""
        place = self._places.pop(uid, None)
        if place is not None:
            self._tables.placements.set(place.row, columns.Placements.end, self.change + 1)

    def _resize(self, row: int, uid: str, pod: Pod) -> None:
        place, placements = self._places[uid], self._tables.placements
        if _parts(pod) == place.parts:
            return
        if self._amounts_of(pod) != placements.get(place.row, columns.Placements.amounts):
            node = placements.get(place.row, columns.Placements.node)
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

    def _node(self, node: Node, *, is_there: bool) -> None:
        """Follow a change of a node."""
        name, tables = node.metadata.name, self._tables
        row, current = self._node_row(name), self._current.get(name)
        amounts_row = self._interned(self._devices.offered(node)) if is_there else 0
        if current is not None and is_there:
            has_amounts = tables.versions.get(current, columns.Versions.amounts) == amounts_row
            if has_amounts and not _differs(tables.nodes[current], node):
                return
        what = ChangeKind.NODE_CHANGED if current is not None else ChangeKind.NODE_ADDED
        change = self._add(what if is_there else ChangeKind.NODE_REMOVED, node=row)
        if current is not None:
            tables.versions.set(current, columns.Versions.end, change)
            del self._current[name]
        if is_there:
            self._current[name] = tables.versions.append([row, amounts_row, change, columns.NEVER])
            tables.nodes.append(node)

    def _reread_nodes(self, names: Collection[str]) -> None:
        """Note the nodes among these, or among all (ANY_NODE), that offer other amounts now."""
        for name in list(self._current) if ANY_NODE in names else sorted(names):
            current = self._current.get(name)
            if current is not None:
                self._node(self._tables.nodes[current], is_there=True)

    # ---- decisions --------------------------------------------------------------------------

    def _add_record(self, record: Record) -> None:
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
        """Note why members of a group wait. After an attempt that places no member, all waiting
        members wait for the first member that no node admitted. Otherwise, the members about which
        no attempt said anything wait because their group waits. A cause of a single member, such as
        a gate, stays."""
        change, group = self._add(ChangeKind.GROUP), self._group_row(record.group)
        self._group_records.append((change, record))
        rejection = self._rejections.pop(group, None)
        if record.result not in _GROUP_REASONS:
            return
        kinds = ("new", "group")
        cause = Cause("group", (CausePart("", _GROUP_REASONS[record.result]),))
        if record.result == "unschedulable" and rejection is not None:
            kinds, cause = (*kinds, rejection.kind), rejection
        number = self._number_of(cause)
        for row in self._members.get(group, ()):
            is_waiting = self._tables.lives.get(row, columns.Lives.waits_to) == columns.NEVER
            last = self._last_cause(row)
            if is_waiting and last >= 0 and self._numbered_causes[last].kind in kinds:
                self._note(change, row, number)

    def _number_of(self, cause: Cause) -> int:
        number = self._causes.get(cause)
        if number is None:
            number = self._causes[cause] = len(self._numbered_causes)
            self._numbered_causes.append(cause)
        return number

    def _last_cause(self, pod: int) -> int:
        verdict = self._last_verdict.get(pod)
        return 0 if verdict is None else self._tables.verdicts.get(verdict, columns.Verdicts.cause)

    def _note(self, change: int, pod: int, cause: int) -> None:
        self._end_verdict(pod, change)
        end = self._tables.lives.get(pod, columns.Lives.waits_to)
        self._last_verdict[pod] = self._tables.verdicts.append([change, pod, cause, end])

    def _attempt(self, record: AttemptRecord, line: int) -> None:
        what = _RESULTS.get(record.result, ChangeKind.ERROR)
        cause = None if what is ChangeKind.SCHEDULED else cause_of(record)
        row = self._verdict(record.uid, what, cause, record.node)
        if row >= 0:
            self._tables.attempts.append([self.change, row, record.attempt, what, line])
            group = self._tables.lives.get(row, columns.Lives.group)
            if group >= 0 and cause is not None and record.is_without_node:
                self._rejections.setdefault(group, cause)

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
        tables = self._tables
        line = Timeline(
            seconds=tables.times.columns.seconds,
            changes=tables.changes.columns,
            resources=tuple(self._resources),
            amounts=self._amount_table(),
            pods=list(tables.pods),
            lives=tables.lives.columns,
            placements=tables.placements.columns,
            node_names=list(tables.node_names),
            versions=tables.versions.columns,
            nodes=list(tables.nodes),
            attempts=tables.attempts.columns,
            verdicts=tables.verdicts.columns,
            causes=list(self._numbered_causes),
            group_names=list(self._groups),
            group_minimums=[self._minimums.get(name, 0) for name in self._groups],
            group_records=list(self._group_records),
            queues=self._queues.columns,
            queue_names=self._origin.queue_names,
            wake_events=self._origin.wake_events,
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
        to = columns.forget_before(tables, first)
        self.change = len(tables.times) - 1
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
        samples = self._queues.columns
        oldest = max(int(np.searchsorted(samples.change, first, side="right")) - 1, 0)
        samples = columns.QueueSamples(samples.rows[oldest:].copy())
        samples.change[:] = to.changes[np.maximum(samples.change, first)]
        self._queues.replace(samples)
        self._last_look = int(samples.change[-1]) if len(samples) else -1
        self._forget_causes()
        self._forget_groups(first, to.changes)

    def _forget_causes(self) -> None:
        """The numbers of causes stay, because the page names them in its address."""
        used = {0, *numbers(self._tables.verdicts.columns.cause)}
        self._causes = {one: number for one, number in self._causes.items() if number in used}
        self._numbered_causes = [
            cause if number in used else NEW for number, cause in enumerate(self._numbered_causes)
        ]

    def _forget_groups(self, first: int, changes: columns.Rows) -> None:
        """Forget groups without pods."""
        groups = self._tables.lives.columns.group
        members = np.flatnonzero(groups >= 0)
        used, numbers_of_members = np.unique(groups[members], return_inverse=True)
        groups[members] = numbers_of_members
        to = np.full(len(self._groups), -1, np.int64)
        to[used] = np.arange(len(used))
        self._groups = _mapped(self._groups, to)
        self._rejections = {
            int(to[row]): cause for row, cause in self._rejections.items() if to[row] >= 0
        }
        self._members = defaultdict(list)
        for pod, group in zip(numbers(members), numbers(groups[members]), strict=True):
            self._members[group].append(pod)
        self._group_records = [
            (max(int(changes[change]), 0), record)
            for change, record in self._group_records
            if change >= first and record.group in self._groups
        ]


_Key = TypeVar("_Key")


def _mapped(rows: dict[_Key, int], to: columns.Rows) -> dict[_Key, int]:
    """The rows with their new numbers, without those that are forgotten."""
    return {key: int(to[row]) for key, row in rows.items() if to[row] >= 0}


def _parts(pod: Pod) -> tuple[object, ...]:
    """What the requests of a pod follow from."""
    spec = pod.spec
    return (spec.containers, spec.init_containers, spec.overhead, spec.resources, pod.status)


def _is_preempted(pod: Pod) -> bool:
    return any(c.reason == PREEMPTION_BY_SCHEDULER for c in pod.status.conditions or ())


def _differs(one: Node, other: Node) -> bool:
    """Whether a node changed in what the page shows."""
    return (
        one.metadata.labels != other.metadata.labels
        or one.spec.taints != other.spec.taints
        or one.spec.unschedulable != other.spec.unschedulable
        or is_ready(one) != is_ready(other)
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
