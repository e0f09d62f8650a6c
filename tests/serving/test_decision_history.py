"""The records in the memory of a running scheduler."""

from bayplan.journal import BindingRecord, GroupRecord, MemorySink, NoteRecord, group_subject
from bayplan.serving.decision_history import RECORDS_MAX, decode, encode, history_of


def bound(pod: str, at_seconds: float = 1.0) -> BindingRecord:
    return BindingRecord(at_seconds=at_seconds, pod=pod, uid="u", node="n1", result="bound")


def memory(*records: BindingRecord | GroupRecord | NoteRecord, length_max: int = 10) -> MemorySink:
    sink = MemorySink(length_max)
    for record in records:
        sink.write(record)
    return sink


def test_the_records_of_a_pod_are_returned_oldest_first_and_decodable() -> None:
    sink = memory(bound("a/p", 1.0), bound("a/q"), bound("a/p", 2.0))
    answer = decode(encode(history_of("a/p", sink, "2026-01-01T00:00:00Z")))
    assert answer.records == (bound("a/p", 1.0), bound("a/p", 2.0))
    assert (answer.started, answer.record_count, answer.subjects) == ("2026-01-01T00:00:00Z", 3, ())
    assert answer.record_count_max == RECORDS_MAX


def test_an_unknown_pod_is_answered_with_similar_names() -> None:
    note = NoteRecord(at_seconds=1.0, subject="node n1", text="ignored")
    answer = history_of("a/x", memory(bound("a/q"), bound("a/p"), note), "")
    assert (answer.records, answer.subjects) == ((), ("a/p", "a/q"))


def test_groups_are_requested_and_suggested_separately() -> None:
    one = GroupRecord(at_seconds=1.0, group="a/g", api_group="x", result="placed")
    sink = memory(bound("a/p"), one)
    assert history_of(group_subject("a/g"), sink, "").records == (one,)
    assert history_of(group_subject("a/other"), sink, "").subjects == ("podgroup a/g",)
    assert history_of("a/other", sink, "").subjects == ("a/p",)


def test_the_oldest_record_is_dropped_first() -> None:
    sink = memory(bound("a/p"), bound("a/q"), length_max=1)
    assert history_of("a/p", sink, "").records == ()
    assert history_of("a/q", sink, "").records == (bound("a/q"),)
