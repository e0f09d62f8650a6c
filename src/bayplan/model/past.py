"""Attempts of the past: each is repeated alone, by the model at the state before it.

A log does not have what plugins hold in memory, nor the answers of extenders. So the record of a
repeated attempt is compared with the journal's, and an answer says if they differ.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, final

from msgspec.structs import replace

from bayplan.api.objects import NODE, POD, ApiObject, Pod, is_terminal
from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.cycle import Cycle
from bayplan.history.entries import AttemptStart, Decision, Entry, ObjectChange
from bayplan.history.node_verdict import NodeVerdict, rejection_of, verdict_of
from bayplan.history.past_state import PastState, as_learned
from bayplan.journal import AttemptRecord
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey
from bayplan.objects.object_store import ObjectStore
from bayplan.plugins.registry import Registry
from bayplan.ports import EventType
from bayplan.sim.output.run_folder import RunFolder, RunFolderError
from bayplan.sim.why import nearest_nodes


class Repetition(NamedTuple):
    """A repeated attempt."""

    #: None: the attempt did not reach the pod.
    verdict: NodeVerdict | None
    #: Whether its record equals that of the journal.
    is_exact: bool


def attempt_of_run(folder: RunFolder, record: AttemptRecord, node: str) -> Repetition:
    """Repeat one attempt of a run and evaluate a node.

    Raises RunFolderError if the log has neither the attempt nor the node, and ConfigError.
    """
    config, registry, seed = folder.settings()
    past = folder.state_before(record)
    if past is None:
        attempt = f"attempt {record.attempt} at {record.pod}"
        raise RunFolderError(f"{folder.path}: the log does not have the state before {attempt}")
    if ObjectKey(NODE, "", node) not in past[0].objects:
        _check_node(folder, node)
    return repeat(*past, record, node, config=config, registry=registry, seed=seed)


def _check_node(folder: RunFolder, node: str) -> None:
    """Raises RunFolderError for a node that the run never had."""
    with folder.reading_states() as log:
        names = {
            entry.object.metadata.name
            for _, entry in log.numbered_entries()
            if isinstance(entry, ObjectChange) and entry.kind == NODE
        }
    if node not in names:
        text = f"{folder.path}: no node {node} in this run; {nearest_nodes(node, names)}"
        raise RunFolderError(text)


def repeat(
    state: PastState,
    start: AttemptStart,
    record: AttemptRecord,
    node: str,
    *,
    config: SchedulerConfig,
    registry: Registry,
    seed: int,
    absent: frozenset[str] = frozenset(),
) -> Repetition:
    """Make one attempt again. ``absent``: kinds that the API server does not have. Raises
    ConfigError."""
    source = ClusterPicture(
        state.objects_as_decided(),
        absent=absent,
        epoch_seconds=ManualClock.EPOCH_SECONDS + start.at_seconds,
    )
    verdicts: list[NodeVerdict] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.uid == record.uid:
            verdicts.append(verdict_of(cycle, record, node))

    model = ClusterModel(source, config, registry, seed=seed)
    try:
        model.continue_from(start)
        try:
            attempt = model.attempt(record.pod, look)
        except KeyError:
            # The pod does not wait in this state.
            return Repetition(None, is_exact=False)
    finally:
        model.close()
    repeated = attempt.record
    is_exact = repeated is not None and replace(repeated, at_seconds=record.at_seconds) == record
    verdict = replace(verdicts[-1], is_exact=is_exact) if verdicts else None
    return Repetition(verdict, is_exact)


# ---- all attempts of a run ------------------------------------------------------------------


@final
class AttemptRejection(NamedTuple):
    """One node in one attempt, which rejected the node."""

    uid: str
    attempt: int
    plugin: str
    reason: str
    code: str


def rejections_of(
    folder: RunFolder, node: str, check: Callable[[], None]
) -> list[AttemptRejection]:
    """All rejections of one node in a run, the oldest first: each attempt is repeated.

    Of a group that is tried in several domains, each attempt at a member is one. ``check`` is
    called at each attempt and may raise. Raises RunFolderError, ConfigError.
    """
    rejections: list[AttemptRejection] = []

    def look(cycle: Cycle) -> None:
        status = rejection_of(cycle, node)
        if status is not None:
            uid, attempt, code = cycle.pod.uid, cycle.queued.attempts, str(status.code)
            rejections.append(AttemptRejection(uid, attempt, status.plugin, status.message, code))

    config, registry, seed = folder.settings()
    model = ClusterModel(ClusterPicture(ObjectStore()), config, registry, seed=seed)
    try:
        with folder.reading_states() as log:
            entries = (entry for _, entry in log.numbered_entries())
            for pod in _attempts(model, entries):
                check()
                # The pod of an attempt that the model cannot repeat does not wait.
                with suppress(KeyError):
                    model.attempt(pod, look)
    finally:
        model.close()
    return rejections


def _attempts(model: ClusterModel, entries: Iterable[Entry]) -> Iterator[str]:
    """Bring a model to the state before each attempt in turn; returns a pod of the attempt."""
    scheduler = model.scheduler
    followed = {NODE, POD, *scheduler.kinds, *scheduler.group_kinds}
    state = PastState()
    for entry in as_learned(entries):
        state.add(entry)
        if isinstance(entry, ObjectChange) and entry.kind in followed:
            is_there = entry.type is not EventType.DELETED
            _follow(model, entry.kind, state.as_decided(entry.object), is_there=is_there)
        elif isinstance(entry, Decision):
            pod = _pod_of(state, entry.uid)
            if pod is not None:
                _follow(model, POD, state.as_decided(pod), is_there=True)
        elif isinstance(entry, AttemptStart):
            model.continue_from(entry)
            pod = _pod_of(state, next(iter(entry.attempts), ""))
            if pod is not None:
                yield f"{pod.metadata.namespace}/{pod.metadata.name}"


def _pod_of(state: PastState, uid: str) -> ApiObject | None:
    key = state.objects.key_of_uid(uid)
    return None if key is None else state.objects.get(key)


def _follow(model: ClusterModel, kind: str, content: ApiObject, *, is_there: bool) -> None:
    """Make an object of the model what it was in the past. A pod that has ended is not there."""
    has_ended = isinstance(content, Pod) and is_terminal(content)
    model.follow(kind, content, is_there=is_there and not has_ended)
