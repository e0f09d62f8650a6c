"""Decisions: the answer about records."""

import msgspec

from bayplan.answers.document import schema_of
from bayplan.journal import AttemptRecord
from bayplan.sim.decisions import Decisions

RECORD = AttemptRecord(
    at_seconds=1.0, pod="a/p", uid="u", profile="p", attempt=2, result="unschedulable"
)


def test_the_document_has_a_version_and_fields_of_the_schema() -> None:
    decisions = Decisions(subject="a/p", source="runs/a", has_node=False, records=(RECORD,))
    document = msgspec.to_builtins(decisions)
    assert (document["apiVersion"], document["kind"]) == ("bayplan.dev/v1alpha1", "Decisions")
    assert document["records"][0]["attempt"] == 2
    assert set(document) == set(schema_of(Decisions)["$defs"]["Decisions"]["properties"])


def test_the_records_are_rows_and_the_subject_is_the_name() -> None:
    decisions = Decisions(subject="a/p", has_node=False, records=(RECORD,))
    assert [*decisions.rows().rows] == [(1.0, "attempt", "unschedulable", "", 2, "", "")]
    assert [*decisions.names()] == ["a/p"]
