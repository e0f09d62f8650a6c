"""Log lines, as text and as JSON."""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.serving.log_lines import JSON, TEXT, VERBOSITY_MAX, Log, write_log


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


def test_a_text_line_is_klogs() -> None:
    stream = written(TEXT)
    Log("scheduler").info("Successfully bound pod to node", pod="a/b", node="n1", attempts=2)
    head, _, rest = stream.getvalue().partition("] ")
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ scheduler", head)
    assert rest == '"Successfully bound pod to node" pod="a/b" node="n1" attempts=2\n'


def test_a_line_stays_a_line_whatever_is_in_it() -> None:
    stream = written(TEXT)
    Log("scheduler").error("Error", err='first\nsecond "quoted"', ok=True)
    assert stream.getvalue().endswith('"Error" err="first\\nsecond \\"quoted\\"" ok=true\n')
    assert stream.getvalue().startswith("E")
    assert stream.getvalue().count("\n") == 1


def test_a_json_line_has_its_keys_at_the_top() -> None:
    stream = written(JSON)
    Log("scheduler").info("Chose", v=2, pod="a/b", count=3)
    line: dict[str, Any] = json.loads(stream.getvalue())
    assert isinstance(line.pop("ts"), float)
    head = {"logger": "scheduler", "level": "info", "v": 2, "msg": "Chose"}
    assert line == {**head, "pod": "a/b", "count": 3}


def test_every_json_line_has_a_level_and_problems_have_no_verbosity() -> None:
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
def test_verbosity_decides_what_is_written(verbosity: int, count: int) -> None:
    stream = written(TEXT, verbosity)
    log = Log("scheduler")
    for level in (0, 2, 4):
        log.info("line", v=level)
    assert stream.getvalue().count("\n") == count


def test_problems_are_written_at_any_verbosity() -> None:
    stream = written(TEXT, 0)
    Log("scheduler").error("Broken")
    Log("scheduler").warning("Bent")
    assert [line[0] for line in stream.getvalue().splitlines()] == ["E", "W"]


def test_lines_of_libraries_take_the_same_way() -> None:
    stream = written(JSON)
    try:
        raise ValueError("what")
    except ValueError:
        logging.getLogger("asyncio").exception("task failed")
    line = json.loads(stream.getvalue())
    assert (line["logger"], line["msg"], line["level"]) == ("asyncio", "task failed", "error")
    assert "ValueError: what" in line["err"]


def test_the_greatest_verbosity_is_what_logging_calls_debug() -> None:
    stream = written(TEXT, VERBOSITY_MAX)
    logging.getLogger("bayplan.adapters").debug("detail")
    assert '"detail"' in stream.getvalue()
