"""What a running scheduler remembers of its decisions, and how that is asked for from outside.

The newest records stay in memory, a bounded number of them; older ones are gone. An answer names
the moment that the records' times count from, for they are the scheduler's own.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from bayplan.journal import (
    GroupRecord,
    MemorySink,
    NoteRecord,
    Record,
    is_group,
    subject_of,
)

#: Some kilobytes each: a score table of the best nodes, plugin by plugin.
RECORDS_MAX = 4000
#: Where the answer is served.
PATH = "/debug/journal"
#: Names that an answer without records suggests.
_NAMED_MAX = 200


class StoryAnswer(Struct, frozen=True, kw_only=True):
    """What a running scheduler knows of a pod."""

    #: Oldest first.
    records: tuple[Record, ...]
    #: Times of the records count from here.
    started: str
    #: Pods that it remembers, some of them, where there are no records.
    known: tuple[str, ...] = ()
    #: Records of any pod that are kept, and how many there may be.
    kept_count: int = 0
    kept_count_max: int = RECORDS_MAX


def answer_about(pod: str, memory: MemorySink, started: str) -> StoryAnswer:
    """What is remembered of ``pod``: a namespace/name, or the `group_subject` of a group."""
    kept = memory.records
    records = tuple(record for record in kept if subject_of(record) == pod)
    known = () if records else _known(kept, is_group(pod))
    return StoryAnswer(records=records, started=started, known=known, kept_count=len(kept))


def _known(records: Sequence[Record], of_groups: bool) -> tuple[str, ...]:
    """Pods, or groups, that something is remembered of."""
    named = {
        subject_of(record)
        for record in records
        if not isinstance(record, NoteRecord) and isinstance(record, GroupRecord) is of_groups
    }
    return tuple(sorted(named)[:_NAMED_MAX])


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(StoryAnswer).decode
