"""Computes the answers of the page from a timeline: each function is one view at one change."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.answers.names import in_natural_order, natural_key
from bayplan.answers.reasons import short_words
from bayplan.api.pod_requests import PODS
from bayplan.engine.podgroups.status import reservation_of
from bayplan.history.columns import Attempts, Rows
from bayplan.history.timeline import Cause, ChangeKind, Series, State, Timeline, is_ready, numbers
from bayplan.objects.pools import kind_key, kind_text, pool_of
from bayplan.ui import answers, tables

T = TypeVar("T")

_RECENT = 8
#: The number of changes that are searched for the newest ones that matter.
_RECENT_CHANGES_MAX = 2000
_MINOR = (ChangeKind.POD_CREATED, ChangeKind.SCHEDULED)
#: Reasons that are about the node alone, not about what the pod wants.
_NODE_REASONS = ("NodeUnschedulable", "TaintToleration")
_POINTS_MAX = 1000
_PREEMPTION_SECONDS_MAX = 10.0
#: The values of the heat map that are not resources.
FRAGMENTATION = "fragmentation"
FITS = "fits:"
_NO_GROUP = ""
_TOPOLOGY = "topology."
_DOMAINS_MAX = 100


class NotRemembered(tables.NoSuchObject):
    """A question about something that a running scheduler has forgotten."""

    def __init__(self, text: str) -> None:
        super().__init__("memory", text)
        self.text = text


@final
class Part(Generic[T]):
    """One page of a list."""

    def __init__(self, items: Sequence[T], offset: int, limit: int) -> None:
        self.total = len(items)
        self.offset = min(max(offset, 0), self.total)
        self.items = items[self.offset : self.offset + min(max(limit, 0), answers.PAGE_MAX)]


# ---- overview -------------------------------------------------------------------------------


def overview(state: State) -> answers.Overview:
    line = state.timeline
    kinds = Counter(line.causes[n].kind for n in numbers(state.cause_of_pod[state.waiting]))
    return answers.Overview(
        change=state.change,
        seconds=state.seconds,
        nodes=len(state.there),
        placed=len(state.placement_rows),
        waiting=len(state.waiting),
        waiting_kinds=dict(sorted(kinds.items())),
        attempts=attempts_so_far(state),
        node_states=tables.node_states(state),
        queues=dict(state.queue_lengths),
        usage=usage_of(line, state.used[state.there].sum(0), state.allocatable.sum(0)),
        recent=tuple(_recent(state)),
    )


def _recent(state: State) -> Iterator[answers.ChangeGroup]:
    """The newest changes that matter: what happened to nodes, and what happened to pods in the end.
    The creation of a pod does not matter, because each pod has one, and a decision is left out,
    because it comes with its binding."""
    line = state.timeline
    first = max(state.change - _RECENT_CHANGES_MAX, line.first_change)
    part = line.changes[slice(first + 1, state.change + 1)]
    #: Kind of change and workload → the newest of the changes, and the objects that they concern.
    newest: dict[tuple[int, str], int] = {}
    concerned: dict[tuple[int, str], set[int]] = {}
    rows = zip(numbers(part.what), numbers(part.pod), numbers(part.node), strict=True)
    for number, (what, pod, node) in enumerate(rows, first + 1):
        if what not in _MINOR:
            key = what, line.pods[pod].workload if pod >= 0 else ""
            newest[key] = number
            concerned.setdefault(key, set()).add(pod if pod >= 0 else node)
    for key, number in sorted(newest.items(), key=lambda item: -item[1])[:_RECENT]:
        change, count = change_at(line, number), len(concerned[key])
        yield answers.ChangeGroup(change=change, count=count, workload=key[1])


def attempts_so_far(state: State) -> int:
    line = state.timeline
    since = int(np.searchsorted(line.attempts.change, state.change, side="right"))
    return line.forgotten_attempts + since


def change_at(line: Timeline, number: int) -> answers.Change:
    changes = line.changes
    pod, node = int(changes.pod[number]), int(changes.node[number])
    return answers.Change(
        change=number,
        seconds=float(line.seconds[number]),
        what=ChangeKind(int(changes.what[number])).name.lower(),
        pod=line.pods[pod].name if pod >= 0 else "",
        node=line.node_names[node] if node >= 0 else "",
    )


def usage_of(line: Timeline, used: Rows, allocatable: Rows) -> tuple[answers.Usage, ...]:
    return tuple(
        answers.Usage(
            resource=line.resources[index],
            used=int(used[index]),
            allocatable=int(allocatable[index]),
        )
        for index in line.resource_order
    )


def series(
    timeline: Timeline,
    totals: Series,
    *,
    by_time: bool,
    points: int,
    start: float = -np.inf,
    end: float = np.inf,
) -> answers.SeriesAnswer:
    """Samples at equal distances: of time, or of changes.

    ``start``, ``end``: the span in seconds or changes; what is outside the run is left out.
    """
    points = min(max(points, 2), _POINTS_MAX)
    if by_time and timeline.end_seconds > 0:
        first, last = _span(start, end, timeline.start_seconds, timeline.end_seconds)
        moments = np.linspace(first, last, points)
        changes = np.searchsorted(timeline.seconds, moments, side="right") - 1
    else:
        places = np.linspace(
            *_span(start, end, timeline.first_change, timeline.last_change), points
        )
        changes = np.unique(places.astype(np.int64))
        moments = timeline.seconds[changes]

    def column(values: NDArray[Any]) -> list[float]:
        return values[changes].round(4).tolist()

    usage: dict[str, list[float]] = {}
    for index in timeline.resource_order:
        allocatable = totals.allocatable(index)
        share = np.divide(
            totals.used(index), allocatable, out=np.zeros_like(allocatable), where=allocatable > 0
        )
        usage[timeline.resources[index]] = column(share)
    return answers.SeriesAnswer(
        changes=changes.tolist(),
        seconds=moments.round(3).tolist(),
        placed=column(totals.placed),
        waiting=column(totals.waiting),
        unschedulable=column(totals.unschedulable),
        attempts=column(totals.attempts),
        queues={name: column(totals.queue(i)) for i, name in enumerate(timeline.queue_names)},
        usage=usage,
    )


def _span(start: float, end: float, first: float, last: float) -> tuple[float, float]:
    """The part of a span that lies between two bounds. If no part does, all between the bounds."""
    start, end = max(start, first), min(end, last)
    return (start, end) if start < end else (first, last)


# ---- nodes ----------------------------------------------------------------------------------


def heat(state: State, *, color: str, group_by: str, size_by: str = "") -> answers.Heat:
    """``size_by``: a resource, or "" for equal cells. Raises NoSuchObject."""
    there = state.there
    groups = [_label(state, node, group_by) for node in numbers(there)]
    names = state.timeline.node_names
    ranks = {name: rank for rank, name in enumerate(sorted(set(groups), key=natural_key))}
    order = sorted(
        range(len(there)), key=lambda i: (ranks[groups[i]], natural_key(names[int(there[i])]))
    )
    values = _heat_values(state, color)[there].astype("<f4")[order]
    counts = Counter(groups)
    finite = values[np.isfinite(values)]
    is_count = color.startswith(FITS)
    return answers.Heat(
        change=state.change,
        seconds=state.seconds,
        nodes=_packed(there[order].astype("<i4")),
        values=_packed(values),
        groups=tuple(answers.HeatGroup(name=name, count=counts[name]) for name in ranks),
        high=max(1.0, float(finite.max())) if is_count and len(finite) else 1.0,
        sizes=_packed(_sizes(state, size_by)[there].astype("<f4")[order]) if size_by else "",
    )


def _sizes(state: State, resource: str) -> Rows:
    if resource not in state.timeline.resources:
        raise tables.NoSuchObject("resource", resource)
    return state.allocatable[:, state.timeline.resources.index(resource)]


def _packed(column: NDArray[Any]) -> str:
    return base64.b64encode(column.tobytes()).decode()


def _label(state: State, node: int, key: str) -> str:
    if not key:
        return _NO_GROUP
    labels = tables.node_at(state, node).metadata.labels or {}
    return labels.get(key, _NO_GROUP)


def _heat_values(state: State, color: str) -> NDArray[np.float64]:
    if color.startswith(FITS):
        return fit_counts(state, color.removeprefix(FITS))
    if color == FRAGMENTATION:
        return fragmentation(state)
    if color not in state.timeline.resources:
        raise tables.NoSuchObject("resource", color)
    index = state.timeline.resources.index(color)
    return tables.shares(state.used[:, index], state.allocatable[:, index])


def fragmentation(state: State) -> NDArray[np.float64]:
    """For each node, the largest free share of a resource less the smallest one, without `pods`.

    A node that is half empty in each resource has 0. A node without free cpu and with all of its
    memory free has 1: this memory cannot be used.
    """
    line = state.timeline
    columns = [index for index in line.resource_order if line.resources[index] != PODS]
    if not columns:
        return np.full(len(line.node_names), np.nan)
    free = np.stack([tables.shares(state.used[:, i], state.allocatable[:, i]) for i in columns])
    absent = np.isnan(free)
    highest = np.where(absent, -np.inf, free).max(0)
    lowest = np.where(absent, np.inf, free).min(0)
    return np.where(absent.all(0), np.nan, highest - lowest)


def fit_counts(state: State, pod: str) -> NDArray[np.float64]:
    """For each node, how many pods with the requests of this pod have room in its free resources.

    Only resources count, not taints, affinity or other filters. Raises NoSuchObject.
    """
    line = state.timeline
    requests = line.amounts[line.pods[_pod_row(line, pod)].amounts]
    wants = np.flatnonzero(requests)
    free = np.maximum(state.allocatable - state.used, 0)[:, wants]
    return (free // requests[wants]).min(1).astype(np.float64)


def node_row(state: State, node: int) -> answers.NodeRow:
    line, seen = state.timeline, tables.node_at(state, node)
    pods = line.resources.index(PODS) if PODS in line.resources else None
    return answers.NodeRow(
        number=node,
        name=line.node_names[node],
        pods=0 if pods is None else int(state.used[node, pods]),
        usage=usage_of(line, state.used[node], state.allocatable[node]),
        pool=pool_of(seen),
        is_ready=is_ready(seen),
        is_unschedulable=bool(seen.spec.unschedulable),
        taints=len(seen.spec.taints or ()),
    )


def node_kinds(state: State) -> answers.NodeKinds:
    """The kinds of the existing nodes."""
    kinds: dict[str, list[int]] = {}
    for row in numbers(state.there):
        kinds.setdefault(kind_key(tables.node_at(state, row)), []).append(row)
    largest = sorted(kinds.values(), key=lambda rows: -len(rows))
    return answers.NodeKinds(
        kinds=tuple(_node_kind(state, rows) for rows in largest[: answers.PAGE_MAX])
    )


def _node_kind(state: State, rows: Sequence[int]) -> answers.NodeKind:
    names = state.timeline.node_names
    first = min(rows, key=lambda row: natural_key(names[row]))
    text = kind_text(tables.node_at(state, first))
    usage = node_row(state, first).usage
    return answers.NodeKind(template=names[first], text=text, nodes=len(rows), usage=usage)


def node_answer(state: State, name: str) -> answers.NodeAnswer:
    """Raises NoSuchObject."""
    line = state.timeline
    number = line.node_rows.get(name)
    if number is None:
        raise tables.NoSuchObject("node", name)
    if state.node_version[number] < 0:
        return answers.NodeAnswer(number=number, name=name, is_there=False)
    row, node = node_row(state, number), tables.node_at(state, number)
    taints = node.spec.taints or ()
    return answers.NodeAnswer(
        number=number,
        name=name,
        is_there=True,
        pods=row.pods,
        usage=row.usage,
        labels=dict(sorted((node.metadata.labels or {}).items())),
        taints=tuple(f"{t.key}{'=' if t.value else ''}{t.value or ''}:{t.effect}" for t in taints),
        pool=row.pool,
        is_ready=row.is_ready,
        is_unschedulable=row.is_unschedulable,
    )


# ---- pods -----------------------------------------------------------------------------------


def _pod_row(line: Timeline, name: str) -> int:
    row = line.rows_by_name.get(name)
    # A fold that continues has rows that this timeline does not have.
    if row is None or row >= len(line.pods):
        raise tables.NoSuchObject("pod", name)
    return row


def pod_entry(state: State, row: int) -> answers.PodEntry:
    line = state.timeline
    pod = line.pods[row]
    node = int(state.node_of_pod[row])
    kind, since = tables.state_name(state.pod_states[row]), int(state.state_changes[row])
    amounts = line.amounts[pod.amounts]
    return answers.PodEntry(
        name=pod.name,
        workload=pod.workload,
        state=kind,
        node=line.node_names[node] if node >= 0 else "",
        since_seconds=float(line.seconds[min(since, line.last_change)]),
        attempts=int(state.attempt_counts[row]),
        cause=int(state.cause_of_pod[row]) if kind == "waiting" else 0,
        requests={
            line.resources[i]: int(amounts[i])
            for i in numbers(np.flatnonzero(amounts))
            if line.resources[i] != PODS
        },
    )


def pod_answer(state: State, name: str) -> answers.PodAnswer:
    """Raises NoSuchObject."""
    line = state.timeline
    row = _pod_row(line, name)
    pod, entry = line.pods[row], pod_entry(state, row)
    cause = line.causes[entry.cause] if entry.state == "waiting" else None
    so_far = numbers(
        np.flatnonzero(line.changes.pod[: state.change + 1] == row)[-answers.PAGE_MAX :]
    )
    attempts = line.attempts[(line.attempts.pod == row) & (line.attempts.change <= state.change)]
    return answers.PodAnswer(
        pod=entry,
        priority=pod.priority,
        profile=pod.profile,
        group=line.group_names[group] if (group := int(line.lives.group[row])) >= 0 else "",
        created=line.created.get(name, ""),
        cause=cause,
        events={} if cause is None else _events(line, cause),
        changes=tuple(change_at(line, number) for number in so_far),
        attempts=tuple(_attempt_entries(line, attempts[-answers.PAGE_MAX :])),
    )


def _attempt_entries(line: Timeline, attempts: Attempts) -> Iterator[answers.AttemptEntry]:
    for change, number, what in zip(
        numbers(attempts.change), numbers(attempts.number), numbers(attempts.what), strict=True
    ):
        at = change_at(line, change)
        yield answers.AttemptEntry(
            attempt=number,
            change=change,
            seconds=at.seconds,
            result=ChangeKind(what).name.lower(),
            node=at.node,
        )


def attempt_line(line: Timeline, name: str, attempt: int) -> tuple[int, int]:
    """The change of an attempt, and its line in the journal. Raises NoSuchObject."""
    row = _pod_row(line, name)
    own = line.attempts[(line.attempts.pod == row) & (line.attempts.number == attempt)]
    if not len(own):
        raise tables.NoSuchObject("attempt", f"{attempt} of {name}")
    return int(own.change[0]), int(own.line[0])


def victims_of(line: Timeline, change: int, node: str) -> tuple[str, ...]:
    """Pods that were preempted on a node at the time of an attempt that nominated it.

    In a live cluster, the API server says so some time later.
    """
    number = line.node_rows.get(node)
    if number is None:
        return ()
    start = line.seconds[change]
    end = start if line.now_seconds is None else start + _PREEMPTION_SECONDS_MAX
    at = (line.seconds >= start) & (line.seconds <= end)
    changes = line.changes
    rows = at & (changes.what == ChangeKind.POD_PREEMPTED) & (changes.node == number)
    return tuple(line.pods[pod].name for pod in numbers(changes.pod[rows]))


# ---- waiting --------------------------------------------------------------------------------


def waiting(state: State) -> answers.WaitingPage:
    line = state.timeline
    rows = state.waiting
    causes, firsts, counts = np.unique(
        state.cause_of_pod[rows], return_index=True, return_counts=True
    )
    groups: list[answers.WaitingGroup] = []
    for number, oldest, pods in zip(
        numbers(causes), numbers(rows[firsts]), numbers(counts), strict=True
    ):
        groups.append(
            answers.WaitingGroup(
                number=number,
                cause=line.causes[number],
                words=_words(line.causes[number]),
                pods=pods,
                example=line.pods[oldest].name,
                since_seconds=float(line.seconds[line.waits_from[oldest]]),
                cause_since_seconds=float(
                    line.seconds[state.cause_starts.get(number, line.waits_from[oldest])]
                ),
                created=_created(line, rows[state.cause_of_pod[rows] == number]),
                events=_events(line, line.causes[number]),
            )
        )
    groups.sort(key=lambda group: -group.pods)
    return answers.WaitingPage(
        change=state.change,
        seconds=state.seconds,
        total=len(rows),
        groups=tuple(groups),
        cause_count=len(groups),
    )


def _created(line: Timeline, pods: Rows) -> str:
    """The creation of the oldest of some pods, as a time stamp; "": unknown."""
    if not line.created:
        return ""
    names = (line.pods[row].name for row in numbers(pods))
    return min((line.created[name] for name in names if name in line.created), default="")


def _words(cause: Cause) -> str:
    """The reasons in short words. Those about the wants of the pod come before those about the
    state of nodes."""
    if cause.kind != "unschedulable":
        return ""
    parts = sorted(cause.parts, key=lambda part: part.plugin in _NODE_REASONS)
    return ", ".join(dict.fromkeys(short_words(part.reason) for part in parts if part.reason))


def _events(line: Timeline, cause: Cause) -> dict[str, tuple[str, ...]]:
    plugins = dict.fromkeys(part.plugin for part in cause.parts)
    return {name: line.wake_events[name] for name in plugins if name in line.wake_events}


# ---- groups ---------------------------------------------------------------------------------


def group_entry(state: State, number: int) -> answers.GroupEntry:
    line = state.timeline
    member = line.lives.group == number
    records = _group_records(state, line.group_names[number])
    return answers.GroupEntry(
        name=line.group_names[number],
        minimum=line.group_minimums[number],
        members=int((member & state.pods_there).sum()),
        placed=int((member & (state.node_of_pod >= 0)).sum()),
        waiting=int(member[state.waiting].sum()),
        ended=int((member & state.ended).sum()),
        result=records[-1].result if records else "",
        message=records[-1].message if records else "",
    )


def _group_records(state: State, name: str) -> list[answers.GroupAttempt]:
    return [
        answers.GroupAttempt(
            change=change,
            seconds=record.at_seconds,
            attempt=record.attempt,
            result=record.result,
            assigned=record.assigned,
            fitting=record.fitting,
            domain=record.domain,
            message=record.message,
        )
        for change, record in state.timeline.group_records
        if record.group == name and change <= state.change
    ]


def group_answer(state: State, name: str) -> answers.GroupAnswer:
    """Raises NoSuchObject."""
    line = state.timeline
    number = tables.group_number(line, name)
    member = line.lives.group == number
    nodes = numbers(state.node_of_pod[member & (state.node_of_pod >= 0)])
    by_node = Counter(line.node_names[node] for node in nodes)
    attempts = _group_records(state, name)
    waiting = state.waiting[member[state.waiting]]
    causes = Counter(numbers(state.cause_of_pod[waiting]))
    return answers.GroupAnswer(
        group=group_entry(state, number),
        attempts=tuple(attempts[-answers.PAGE_MAX :]),
        nodes={name: by_node[name] for name in in_natural_order(by_node)},
        reservation=_reservation(attempts),
        domains=tuple(_domains(state, nodes, attempts))[:_DOMAINS_MAX],
        waiting_causes=dict(causes),
        causes={cause: line.causes[cause] for cause in causes},
        waiting_member=pod_entry(state, int(waiting[0])).name if len(waiting) else "",
    )


def _reservation(attempts: Sequence[answers.GroupAttempt]) -> answers.GroupReservation | None:
    """The last reservation, unless the group was placed since."""
    for one in reversed(attempts):
        if one.result == "placed":
            return None
        reserved = reservation_of(one.message) if one.result == "reserved" else None
        if reserved is not None:
            nodes, seconds = reserved
            start = None if seconds is None else one.seconds + seconds
            return answers.GroupReservation(
                nodes=nodes, since_seconds=one.seconds, start_seconds=start
            )
    return None


def _domains(
    state: State, member_nodes: Sequence[int], attempts: Sequence[answers.GroupAttempt]
) -> Iterator[answers.GroupDomain]:
    """The domains of the topology keys of Kubernetes, and of the key that the group used."""
    chosen = next((one.domain for one in reversed(attempts) if one.domain), "")
    labels = {
        node: tables.node_at(state, node).metadata.labels or {} for node in numbers(state.there)
    }
    keys = {key for own in labels.values() for key in own if key.startswith(_TOPOLOGY)}
    if chosen:
        at = labels.get(member_nodes[0], {}) if member_nodes else {}
        keys |= {key for key, value in at.items() if value == chosen}
    for key in sorted(keys):
        nodes = Counter(own[key] for own in labels.values() if key in own)
        members = Counter(labels.get(node, {}).get(key) for node in member_nodes)
        for domain in sorted(nodes, key=lambda one: (-members[one], natural_key(one))):
            yield answers.GroupDomain(
                key=key,
                name=domain,
                nodes=nodes[domain],
                members=members[domain],
                is_chosen=domain == chosen,
            )


# ---- what there is --------------------------------------------------------------------------


def resources_of(line: Timeline) -> tuple[str, ...]:
    return tuple(line.resources[index] for index in line.resource_order)


def label_keys(line: Timeline) -> tuple[str, ...]:
    """The keys of node labels with fewer values than nodes, those of Kubernetes' topology first."""
    values: dict[str, set[str]] = {}
    for node in line.nodes:
        for key, value in (node.metadata.labels or {}).items():
            values.setdefault(key, set()).add(value)
    limit = max(1, len(line.node_names) // 2)
    keys = [key for key, seen in values.items() if len(seen) <= limit]
    return tuple(sorted(keys, key=lambda key: (not key.startswith(_TOPOLOGY), key)))


def as_json(answer: Any) -> bytes:
    return msgspec.json.encode(answer)


def schema(types: Sequence[type]) -> Mapping[str, Any]:
    """The JSON schema of all answers."""
    _, components = msgspec.json.schema_components(types)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": components}
