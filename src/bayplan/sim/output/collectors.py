"""What a run collects for its result: groups, signatures, attempts and failures.

A pod that fits nowhere is a result. An exception, or the code Error, is a failure: then the result
for the pod says nothing about the cluster. Failures are read from the records of the journal, so
each failure that the engine records is counted, whatever caused it.
"""

from collections import Counter
from typing import final

from bayplan import journal
from bayplan.engine.podgroups.status import phase_of, scheduled_count
from bayplan.engine.reuse.entry import SignatureEntry
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Code
from bayplan.sim.output.result import FailureResult, PodGroupResult, SignatureResult
from bayplan.state.pod_groups import GroupState

# ---- groups -----------------------------------------------------------------------------------


def group_results(scheduler: Scheduler) -> dict[str, PodGroupResult]:
    """The groups with an object, by "namespace/name". If groups of two kinds share a name, the
    second has its API group behind the name: "namespace/name (scheduling.ming.io)"."""
    states = sorted(scheduler.pod_groups.all(), key=lambda state: (str(state.key), state.key))
    results: dict[str, PodGroupResult] = {}
    for state in states:
        name = str(state.key)
        if state.group is not None:
            is_taken = name in results
            results[f"{name} ({state.key.api_group})" if is_taken else name] = _result(state)
    return results


def reasons_to_wait(scheduler: Scheduler) -> dict[str, str]:
    """By uid: why members wait without an attempt. No condition of the pods says so."""
    return {
        pod.metadata.uid or "": state.message
        for state in scheduler.pod_groups.all()
        for pod in state.pending()
        if state.message
    }


def _result(state: GroupState) -> PodGroupResult:
    status = None if state.group is None else state.group.status
    return PodGroupResult(
        phase=phase_of(state),
        min_member=state.min_member,
        scheduled=scheduled_count(state),
        running=state.running_count,
        succeeded=state.succeeded_count,
        failed=state.failed_count,
        occupied_by=None if status is None else status.occupied_by,
        schedule_start_time=None if status is None else status.schedule_start_time,
        message=state.message or None,
    )


# ---- signatures -----------------------------------------------------------------------------


def signature_results(scheduler: Scheduler) -> tuple[SignatureResult, ...]:
    """The signatures of all profiles, those with the most cycles first; evicted entries are
    missing."""
    results = [
        _signature_result(profile, entry)
        for profile in scheduler.profile_names
        for entry in scheduler.reuse(profile).entries()
    ]
    return tuple(sorted(results, key=lambda one: (-one.cycles, one.profile, one.example)))


def _signature_result(profile: str, entry: SignatureEntry) -> SignatureResult:
    row_counts = entry.row_counts().values()
    return SignatureResult(
        profile=profile,
        example=entry.example,
        pods=entry.pod_count,
        cycles=entry.cycle_count,
        rows_evaluated=sum(counts.evaluated for counts in row_counts),
        rows_cached=sum(counts.cached for counts in row_counts),
    )


# ---- attempts and failures ------------------------------------------------------------------


#: The most kinds of failures. A further kind counts as an earlier kind of its plugin.
_WAYS_MAX = 20
_ERROR = "error"
_CODE_ERROR = str(Code.ERROR)


class _Way:
    """One way to fail."""

    __slots__ = ("count", "example", "message", "plugin")

    def __init__(self, plugin: str, example: str, message: str) -> None:
        self.plugin = plugin
        self.example = example
        self.message = message
        self.count = 0


@final
class AttemptCounts:
    """A journal sink: the number of attempts at each pod, and the failures by kind."""

    def __init__(self) -> None:
        #: The number of attempts, by uid.
        self.by_uid: Counter[str] = Counter()
        self._ways: dict[tuple[str, str], _Way] = {}

    def write(self, record: journal.Record) -> None:
        if isinstance(record, journal.AttemptRecord):
            # A missing count of a Counter costs a call.
            self.by_uid[record.uid] = self.by_uid.get(record.uid, 0) + 1
            if record.result != _ERROR:
                return
        elif isinstance(record, journal.BindingRecord) and record.code != _CODE_ERROR:
            return
        failure = _failure(record)
        if failure is not None:
            plugin, message = failure
            self._way(plugin, journal.subject_of(record), message).count += 1

    def _way(self, plugin: str, subject: str, message: str) -> _Way:
        own_name = subject.partition("/")[2] or subject
        key = plugin, message.replace(subject, "").replace(own_name, "")
        if key not in self._ways and len(self._ways) >= _WAYS_MAX:
            key = next(
                (other_key for other_key in self._ways if other_key[0] == plugin), (plugin, "")
            )
        return self._ways.setdefault(key, _Way(plugin, subject, message))

    def failures(self) -> tuple[FailureResult, ...]:
        """The failures in the order of their first occurrence."""
        return tuple(
            FailureResult(
                plugin=way.plugin, count=way.count, example=way.example, message=way.message
            )
            for way in self._ways.values()
        )


def _failure(record: journal.Record) -> tuple[str, str] | None:
    """Plugin and message of a record of a failure; None: the record is no failure."""
    if isinstance(record, journal.AttemptRecord):
        return (record.plugin, record.message) if record.result == _ERROR else None
    if isinstance(record, journal.BindingRecord | journal.GateRecord):
        return (record.plugin, record.message) if record.code == _CODE_ERROR else None
    if isinstance(record, journal.NoteRecord):
        return (record.plugin, record.text) if record.plugin else None
    assert isinstance(record, journal.GroupRecord)
    return None
