"""Decisions as a value with a schema."""

import msgspec

from bayplan.explain.decisions import Decisions, decisions_schema, node_result
from bayplan.framework.status import Code, Status
from bayplan.history.node_verdict import NodeVerdict
from bayplan.journal import AttemptRecord

RECORD = AttemptRecord(
    at_seconds=1.0, pod="a/p", uid="u", profile="p", attempt=2, result="unschedulable"
)


def test_a_verdict_names_the_results_of_all_plugins() -> None:
    full = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "Fit")
    verdict = NodeVerdict(RECORD, "n1", rejection=full, alone=(("Fit", full), ("Taint", None)))
    result = node_result(verdict)
    assert result.rejection is not None
    assert (result.attempt, result.rejection.plugin, result.rejection.message) == (
        2,
        "Fit",
        "Insufficient cpu",
    )
    assert [(each.plugin, each.code) for each in result.alone] == [
        ("Fit", "Unschedulable"),
        ("Taint", ""),
    ]


def test_the_document_has_a_version_and_fields_of_the_schema() -> None:
    decisions = Decisions(subject="a/p", source="runs/a", has_node=False, records=(RECORD,))
    document = msgspec.to_builtins(decisions)
    assert (document["apiVersion"], document["kind"]) == ("bayplan.dev/v1alpha1", "Decisions")
    assert document["records"][0]["attempt"] == 2
    assert set(document) == set(decisions_schema()["$defs"]["Decisions"]["properties"])
