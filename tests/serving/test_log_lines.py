"""Log lines as text and as JSON, one for each outcome."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.journal import (
    BUG_NOTE,
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NoteRecord,
    Record,
)
from bayplan.serving.log_lines import JSON, OUTCOME, TEXT, VERBOSITY_MAX, Log, OutcomeLog, write_log

# ---- log lines ------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("bayplan")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], level, our_level = before[0], before[1], before[2]
    root.setLevel(level)
    ours.setLevel(our_level)
    logging.captureWarnings(False)


def written(form: str, verbosity: int = 2) -> io.StringIO:
    stream = io.StringIO()
    write_log(verbosity, form, stream)
    return stream


def test_a_text_line_has_the_klog_format() -> None:
    stream = written(TEXT)
    Log("scheduler").info("Successfully bound pod to node", pod="a/b", node="n1", attempts=2)
    head, _, remainder = stream.getvalue().partition("] ")
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ scheduler", head)
    assert remainder == '"Successfully bound pod to node" pod="a/b" node="n1" attempts=2\n'


def test_a_line_stays_one_line_for_all_values() -> None:
    stream = written(TEXT)
    Log("scheduler").error("Error", err='first\nsecond "quoted"', ok=True)
    assert stream.getvalue().endswith('"Error" err="first\\nsecond \\"quoted\\"" ok=true\n')
    assert stream.getvalue().startswith("E")
    assert stream.getvalue().count("\n") == 1


def test_another_handler_gets_the_same_line_as_a_record() -> None:
    stream, other = written(TEXT), io.StringIO()
    handler = logging.StreamHandler(other)
    handler.setFormatter(logging.root.handlers[0].formatter)
    Log("scheduler").info("Chose", pod="a/b")
    logging.root.addHandler(handler)
    Log("scheduler").info("Chose", pod="a/b")
    first, second = stream.getvalue().splitlines()
    assert f"{second}\n" == other.getvalue()
    assert first.partition("] ")[2] == second.partition("] ")[2] == '"Chose" pod="a/b"'


def test_a_stream_that_fails_does_not_fail_the_writer(capsys: pytest.CaptureFixture[str]) -> None:
    stream = written(TEXT)
    stream.close()
    Log("scheduler").info("Chose", pod="a/b")
    assert "I/O operation on closed file" in capsys.readouterr().err


def test_a_json_line_has_its_keys_at_the_top_level() -> None:
    stream = written(JSON)
    Log("scheduler").info("Chose", v=2, pod="a/b", count=3)
    line: dict[str, Any] = json.loads(stream.getvalue())
    assert isinstance(line.pop("ts"), float)
    head = {"logger": "scheduler", "level": "info", "v": 2, "msg": "Chose"}
    assert line == {**head, "pod": "a/b", "count": 3}


def test_every_json_line_has_a_level_and_only_infos_have_a_verbosity() -> None:
    stream = written(JSON, 4)
    log = Log("election")
    log.info("Leads")
    log.info("Chose", v=4)
    log.warning("Late", err="busy")
    log.error("Lost", err="gone")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line.get("v")) for line in lines] == [
        ("info", 0),
        ("info", 4),
        ("warning", None),
        ("error", None),
    ]


@pytest.mark.parametrize(("verbosity", "count"), [(0, 1), (2, 2), (4, 3)])
def test_verbosity_selects_the_written_lines(verbosity: int, count: int) -> None:
    stream = written(TEXT, verbosity)
    log = Log("scheduler")
    for level in (0, 2, 4):
        log.info("line", v=level)
    assert stream.getvalue().count("\n") == count


def test_warnings_and_errors_are_written_at_any_verbosity() -> None:
    stream = written(TEXT, 0)
    Log("scheduler").error("Broken")
    Log("scheduler").warning("Bent")
    assert [line[0] for line in stream.getvalue().splitlines()] == ["E", "W"]


def test_lines_of_libraries_have_the_same_format() -> None:
    stream = written(JSON)
    try:
        raise ValueError("what")
    except ValueError:
        logging.getLogger("asyncio").exception("task failed")
    line = json.loads(stream.getvalue())
    assert (line["logger"], line["msg"], line["level"]) == ("asyncio", "task failed", "error")
    assert "ValueError: what" in line["err"]


def test_the_highest_verbosity_is_the_debug_level() -> None:
    stream = written(TEXT, VERBOSITY_MAX)
    logging.getLogger("bayplan.adapters").debug("detail")
    assert '"detail"' in stream.getvalue()


# ---- outcome log ----------------------------------------------------------------------------


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
        NoteRecord(
            at_seconds=1.0, subject="a/p", text="bug in the scheduler: Traceback", kind=BUG_NOTE
        ),
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


def test_a_choice_is_logged_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO - OUTCOME, logger="bayplan")
    OutcomeLog().write(attempt("scheduled", node="n1"))
    assert caplog.records == []
