"""Decisions in which two runs differ."""

import pytest

from bayplan.comparison.decisions import (
    DecisionKey,
    DecisionOutcome,
    decisions_in,
    differences,
    from_csv,
    to_csv,
)
from bayplan.journal import AttemptRecord, NoteRecord

ON_A, ON_B, NOWHERE = (
    DecisionOutcome("scheduled", "a"),
    DecisionOutcome("scheduled", "b"),
    DecisionOutcome("unschedulable", ""),
)


def record(pod: str, attempt: int, result: str, node: str = "") -> AttemptRecord:
    return AttemptRecord(
        at_seconds=0, pod=pod, uid=pod, profile="p", attempt=attempt, result=result, node=node
    )


def test_only_attempts_are_decisions() -> None:
    note = NoteRecord(at_seconds=0, subject="x", text="y")
    records = [record("d/p", 1, "unschedulable"), note, record("d/p", 2, "scheduled", "a")]
    assert decisions_in(records) == {DecisionKey("d/p", 1): NOWHERE, DecisionKey("d/p", 2): ON_A}


def test_equal_runs_have_no_differences() -> None:
    decided = {DecisionKey("p", 1): ON_A}
    assert differences(decided, dict(decided)) == []


def test_another_node_or_another_attempt_is_a_difference() -> None:
    one = {DecisionKey("p", 1): ON_A, DecisionKey("q", 1): ON_B, DecisionKey("q", 2): ON_A}
    other = {DecisionKey("r", 1): ON_A, DecisionKey("q", 1): ON_B, DecisionKey("p", 1): ON_B}
    assert differences(one, other) == [
        (DecisionKey("p", 1), ON_A, ON_B),
        (DecisionKey("q", 2), ON_A, None),
        (DecisionKey("r", 1), None, ON_A),
    ]


def test_decisions_are_read_back_from_csv() -> None:
    decided = {DecisionKey("d/p", 1): NOWHERE, DecisionKey('d/"q,', 2): ON_A}
    assert from_csv(to_csv(decided)) == decided


@pytest.mark.parametrize("content", [b"", b"a,b\n", b"pod,attempt,result,node\np,x,s,a\n"])
def test_other_csv_files_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_csv(content)
