"""The decisions that a running scheduler remembers, and their JSON form for other processes.

The newest records stay in memory, at most `RECORDS_MAX`; older records are dropped. A record's time
counts from the start of the scheduler, so the JSON also names that moment.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from bayplan import journal

#: A record takes some kilobytes: the scores of the best nodes, plugin by plugin.
RECORDS_MAX = 4000
#: The path of the endpoint.
PATH = "/debug/journal"
#: The maximum number of names that an answer without records suggests.
_NAMED_MAX = 200


class DecisionHistory(Struct, frozen=True, kw_only=True, rename="camel"):
    """The records of one pod in a running scheduler."""

    #: Oldest first.
    records: tuple[journal.Record, ...]
    #: The start of the records' clock, in seconds since 1970.
    started: str
    #: Without records: up to 200 pods or groups that have records.
    subjects: tuple[str, ...] = ()
    #: The number of records in memory, of all pods, and its maximum.
    record_count: int = 0
    record_count_max: int = RECORDS_MAX


def history_of(pod: str, memory: journal.MemorySink, started: str) -> DecisionHistory:
    """The records of ``pod``: a namespace/name, or the `group_subject` of a group."""
    remembered = memory.records
    records = tuple(record for record in remembered if journal.subject_of(record) == pod)
    subjects = () if records else _subjects(remembered, journal.is_group(pod))
    return DecisionHistory(
        records=records, started=started, subjects=subjects, record_count=len(remembered)
    )


def _subjects(records: Sequence[journal.Record], of_groups: bool) -> tuple[str, ...]:
    """Pods, or groups, that have records; sorted, at most 200."""
    named = {
        journal.subject_of(record)
        for record in records
        if not isinstance(record, journal.NoteRecord)
        and isinstance(record, journal.GroupRecord) is of_groups
    }
    return tuple(sorted(named)[:_NAMED_MAX])


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(DecisionHistory).decode
