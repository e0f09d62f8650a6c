"""The journal records every decision."""

import io

import pytest

from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    DigestSink,
    FileSink,
    GroupRecord,
    Journal,
    JournalError,
    MemorySink,
    NodeScore,
    NoteRecord,
    PluginScore,
    RejectionCount,
    group_subject,
    is_group,
    read,
    subject_of,
)

ATTEMPT = AttemptRecord(
    at_seconds=1.5,
    pod="default/p",
    uid="u1",
    profile="default-scheduler",
    attempt=2,
    result="scheduled",
    node="n1",
    node_count=3,
    feasible_count=2,
    rejections=(RejectionCount("NodePorts", "Unschedulable", "taken", 1),),
    scores=(NodeScore("n1", 100, (PluginScore("ImageLocality", 50, 50, 100),)),),
    tied_count=1,
)
BINDING = BindingRecord(at_seconds=2.0, pod="default/q", uid="u2", node="n1", result="bound")


def test_records_written_to_a_file_are_read_back():
    file = io.BytesIO()
    journal = Journal([FileSink(file)])
    journal.write(ATTEMPT)
    journal.write(BINDING)
    assert list(read(file.getvalue().splitlines())) == [ATTEMPT, BINDING]


def test_the_digest_depends_on_every_record_and_their_order():
    def digest(*records: AttemptRecord | BindingRecord) -> str:
        sink = DigestSink()
        for record in records:
            sink.write(record)
        return sink.digest

    digests = {digest(), digest(ATTEMPT), digest(ATTEMPT, BINDING), digest(BINDING, ATTEMPT)}
    assert len(digests) == 4
    assert digest(ATTEMPT, BINDING) == digest(ATTEMPT, BINDING)


def test_a_memory_sink_keeps_the_newest_records():
    sink = MemorySink(length_max=2)
    for record in (ATTEMPT, BINDING, ATTEMPT):
        sink.write(record)
    assert list(sink.records) == [BINDING, ATTEMPT]


def test_a_journal_without_sinks_does_not_record():
    assert not Journal().is_recording
    assert Journal([MemorySink()]).is_recording


def test_an_invalid_line_is_refused_with_its_number():
    with pytest.raises(JournalError, match="line 2"):
        list(read([b'{"type":"note","at_seconds":1,"subject":"x","text":"y"}', b"{nonsense"]))


def test_a_note_concerns_its_subject_and_other_records_a_pod() -> None:
    assert subject_of(NoteRecord(at_seconds=0.0, subject="node n1", text="ignored")) == "node n1"
    assert subject_of(ATTEMPT) == "default/p"


def test_the_record_of_a_group_is_not_mixed_with_a_pod_of_its_name() -> None:
    record = GroupRecord(at_seconds=0.0, group="default/p", api_group="x", result="placed")
    assert subject_of(record) == group_subject("default/p") == "podgroup default/p"
    assert is_group(subject_of(record))
    assert not is_group(subject_of(ATTEMPT))
