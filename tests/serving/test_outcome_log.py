"""One log line for each outcome."""

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NoteRecord,
    Record,
)
from bayplan.serving.outcome_log import OUTCOME, OutcomeLog


def attempt(result: str, **fields: Any) -> AttemptRecord:
    return AttemptRecord(
        at_seconds=1.0, pod="a/p", uid="u", profile="x", attempt=1, result=result, **fields
    )


def binding(result: str, message: str = "") -> BindingRecord:
    return BindingRecord(
        at_seconds=1.0, pod="a/p", uid="u", node="n1", result=result, message=message
    )


def group(result: str, message: str = "") -> GroupRecord:
    return GroupRecord(
        at_seconds=1.0, group="a/g", api_group="x.io", result=result, fitting=2, message=message
    )


GATE = GateRecord(at_seconds=1.0, pod="a/p", uid="u", plugin="SchedulingGates", message="wait")
CASES: dict[str, tuple[Record, int, str, dict[str, Any]]] = {
    "bound": (
        binding("bound"),
        logging.INFO - OUTCOME,
        "Successfully bound pod to node",
        {"pod": "a/p", "node": "n1"},
    ),
    "not bound": (
        binding("failed", "conflict"),
        logging.ERROR,
        "Error scheduling pod; retrying",
        {"pod": "a/p", "node": "n1", "err": "conflict"},
    ),
    "rejected at Permit": (
        replace(binding("failed", "0/1 nodes are available: 1 no."), is_rejected=True),
        logging.INFO - OUTCOME,
        "Unable to schedule pod; no fit; waiting",
        {"pod": "a/p", "err": "0/1 nodes are available: 1 no."},
    ),
    "unschedulable": (
        attempt("unschedulable", message="0/3 nodes are available"),
        logging.INFO - OUTCOME,
        "Unable to schedule pod; no fit; waiting",
        {"pod": "a/p", "err": "0/3 nodes are available"},
    ),
    "no nodes": (
        attempt("unschedulable", message="no nodes available to schedule pods"),
        logging.INFO - OUTCOME,
        "Unable to schedule pod; no nodes are registered to the cluster; waiting",
        {"pod": "a/p"},
    ),
    "error": (
        attempt("error", message="broken", plugin="Mine"),
        logging.ERROR,
        "Error scheduling pod; retrying",
        {"pod": "a/p", "plugin": "Mine", "err": "broken"},
    ),
    "gated": (
        GATE,
        logging.INFO - OUTCOME,
        "Pod is held back",
        {"pod": "a/p", "plugin": "SchedulingGates", "message": "wait"},
    ),
    "a plugin fails at PreEnqueue": (
        GateRecord(
            at_seconds=1.0, pod="a/p", uid="u", plugin="Mine", message="broken", code="Error"
        ),
        logging.ERROR,
        "Unexpected error running PreEnqueue plugin",
        {"pod": "a/p", "plugin": "Mine", "err": "broken"},
    ),
    "a plugin fails where nothing follows from it": (
        NoteRecord(at_seconds=1.0, subject="a/p", text="broken", plugin="Mine"),
        logging.ERROR,
        "Plugin failed",
        {"subject": "a/p", "plugin": "Mine", "err": "broken"},
    ),
    "a group is placed": (
        group("placed"),
        logging.INFO - OUTCOME,
        "Placed group of pods",
        {"podGroup": "a/g", "apiGroup": "x.io", "pods": 2},
    ),
    "a group waits": (
        group("unschedulable", "no room"),
        logging.INFO - OUTCOME,
        "Group of pods waits",
        {"podGroup": "a/g", "apiGroup": "x.io", "result": "unschedulable", "err": "no room"},
    ),
    "a group's attempt fails": (
        group("error", "broken"),
        logging.ERROR,
        "Error scheduling group of pods; retrying",
        {"podGroup": "a/g", "apiGroup": "x.io", "err": "broken"},
    ),
    "a bug": (
        NoteRecord(at_seconds=1.0, subject="a/p", text="bug in the scheduler: Traceback"),
        logging.ERROR,
        "Bug in the scheduler",
        {"subject": "a/p", "err": "bug in the scheduler: Traceback"},
    ),
    "a note": (
        NoteRecord(at_seconds=1.0, subject="node n1", text="ignored"),
        logging.INFO - OUTCOME,
        "Noted",
        {"subject": "node n1", "note": "ignored"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_outcome_is_one_line(name: str, caplog: pytest.LogCaptureFixture) -> None:
    record, level, text, keys = CASES[name]
    caplog.set_level(logging.DEBUG, logger="bayplan")
    OutcomeLog().write(record)
    (line,) = caplog.records
    assert (line.levelno, line.getMessage()) == (level, text)
    assert vars(line)["bayplan_keys"] == keys


def test_a_choice_alone_is_a_detail(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO - OUTCOME, logger="bayplan")
    OutcomeLog().write(attempt("scheduled", node="n1"))
    assert caplog.records == []
