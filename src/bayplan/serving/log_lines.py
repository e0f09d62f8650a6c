"""Log lines: a constant text and keys, in klog's text format or as JSON.

    I1122 02:51:18.123456       1 scheduler] "Successfully bound pod to node" pod="a/b" node="n1"
    {"ts":1764,"logger":"scheduler","level":"info","v":2,"msg":"Successfully bound …","pod":"a/b"}

Verbosity is klog's: a line of level v is written with -v=v or more; warnings and errors always.
Python's logging level of v is INFO - v, so that lines of libraries are treated the same. Upstream:
k8s.io/klog/v2, component-base/logs/json.

A journal sink writes one line for each outcome of a pod, with kube-scheduler's text if it has such
a line, so that searches in its logs work. Upstream: pkg/scheduler/schedule_one.go.
"""

import logging
import os
import sys
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, assert_never, final

import msgspec

from bayplan import journal
from bayplan.clock import RealClock
from bayplan.framework.status import NO_NODES_AVAILABLE
from bayplan.printable import printable

# ---- log lines ------------------------------------------------------------------------------


TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

#: The lowest level of `logging` that is used: DEBUG.
VERBOSITY_MAX = logging.INFO - logging.DEBUG

_ROOT = "bayplan"
_KEYS = "bayplan_keys"
_SEVERITIES = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


@final
class Log:
    """Writes lines of one part of the scheduler."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._logger = logging.getLogger(f"{_ROOT}.{part}")
        #: Whether lines of a level of `logging` are written.
        self.is_enabled_for = self._logger.isEnabledFor

    def info(self, text: str, *, v: int = 0, **keys: Any) -> None:
        """``v``: the verbosity from which the line is written."""
        level, logger = logging.INFO - v, self._logger
        if not logger.isEnabledFor(level):
            return
        # Most lines are written here, so the usual one is made without a record of `logging`.
        handlers = logging.root.handlers
        handler = handlers[0] if len(handlers) == 1 else None
        if isinstance(handler, _LineHandler) and handler.write(level, self._part, text, keys):
            return
        # As logger.log, but does not look for the caller.
        extra = {_KEYS: keys}
        record = logger.makeRecord(logger.name, level, "", 0, text, (), None, extra=extra)
        logger.handle(record)

    def warning(self, text: str, **keys: Any) -> None:
        self._logger.warning(text, extra={_KEYS: keys})

    def error(self, text: str, **keys: Any) -> None:
        self._logger.error(text, extra={_KEYS: keys})


def write_log(verbosity: int, form: str, stream: TextIO | None = None) -> None:
    """Write log lines to ``stream`` (None: standard error), in place of earlier settings."""
    assert 0 <= verbosity <= VERBOSITY_MAX, verbosity
    lines = _JsonLines() if form == JSON else _TextLines()
    handler = _LineHandler(stream or sys.stderr, lines)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_ROOT).setLevel(logging.INFO - verbosity)
    logging.captureWarnings(True)


_quoted = msgspec.json.Encoder().encode


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{_ROOT}.")


def _keys(record: logging.LogRecord) -> Mapping[str, Any]:
    keys: dict[str, Any] = dict(getattr(record, _KEYS, {}))
    if record.exc_info and record.exc_info[0] is not None:
        keys["err"] = logging.Formatter().formatException(record.exc_info)
    return keys


@lru_cache(maxsize=4)
def _second(epoch_seconds: int) -> str:
    """A moment without its fraction: many lines share it."""
    return f"{datetime.fromtimestamp(epoch_seconds, tz=UTC):%m%d %H:%M:%S}"


class _Lines(logging.Formatter):
    """Makes the line of a record, or of the parts of a record."""

    @abstractmethod
    def line(
        self, created: float, level: int, part: str, text: str, *, keys: Mapping[str, Any]
    ) -> str:
        """``created``: seconds since the epoch; ``level``: of `logging`."""

    @final
    def format(self, record: logging.LogRecord) -> str:
        text, keys = record.getMessage(), _keys(record)
        return self.line(record.created, record.levelno, _part(record), text, keys=keys)


@final
class _TextLines(_Lines):
    def line(
        self, created: float, level: int, part: str, text: str, *, keys: Mapping[str, Any]
    ) -> str:
        second, fraction = divmod(int(created * 1e6), 1_000_000)
        head = f"{_SEVERITIES.get(level, 'I')}{_second(second)}.{fraction:06}"
        line = f"{head} {os.getpid():>7} {part}] {_quoted_text(text)}"
        for key, value in keys.items():
            line += f" {key}={_quoted_text(value) if type(value) is str else _shown(value)}"
        return line


def _level(number: int) -> str:
    """The level of a line: lines of any verbosity are information."""
    return "info" if number <= logging.INFO else logging.getLevelName(number).lower()


@final
class _JsonLines(_Lines):
    def line(
        self, created: float, level: int, part: str, text: str, *, keys: Mapping[str, Any]
    ) -> str:
        line: dict[str, Any] = {"ts": round(created * 1000, 3), "logger": part}
        # Upstream has `v` in lines without an error, and no level.
        line["level"] = _level(level)
        if level <= logging.INFO:
            line["v"] = logging.INFO - level
        line |= {"msg": text, **keys}
        return msgspec.json.encode(line, enc_hook=str).decode()


@final
class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream."""

    def __init__(self, stream: TextIO, lines: _Lines) -> None:
        super().__init__(stream)
        self._lines = lines
        self._epoch_seconds = RealClock().epoch_seconds
        self.setFormatter(lines)

    def write(self, level: int, part: str, text: str, keys: Mapping[str, Any]) -> bool:
        """Write a line without a record. False: it failed; `logging` has to report the failure."""
        lock, stream = self.lock, self.stream
        assert lock is not None, "a handler has a lock"
        try:
            line = self._lines.line(self._epoch_seconds(), level, part, text, keys=keys)
            with lock:
                stream.write(f"{line}\n")
                stream.flush()
        except Exception:  # noqa: BLE001 - the line is written again, and `logging` reports it
            return False
        return True


# A union in place of this tuple would be made at every call.
_NUMBERS = (int, float)


def _shown(value: Any) -> str:
    """A value as in klog's text format: strings are quoted, on one line."""
    if isinstance(value, _NUMBERS):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return _quoted_text(str(value))


@lru_cache(maxsize=64)
def _quoted_text(text: str) -> str:
    """A text in quotes, on one line. Lines of equal pods share their message."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return printable(_quoted(text).decode())


# ---- outcome log ----------------------------------------------------------------------------


#: The verbosity from which outcomes are logged, as upstream.
OUTCOME = 2
_DETAIL = 4
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_NO_NODES = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
_RETRYING = "Error scheduling pod; retrying"


@final
class OutcomeLog:
    """journal.Sink."""

    def __init__(self) -> None:
        self._log = Log("scheduler")

    def write(self, record: journal.Record) -> None:
        if isinstance(record, journal.AttemptRecord):
            # The usual outcome; its line is rarely written.
            if record.result != "scheduled" or self._log.is_enabled_for(logging.INFO - _DETAIL):
                self._attempt(record)
        elif isinstance(record, journal.NoteRecord):
            # Each victim of a preemption has one.
            self._note(record)
        elif isinstance(record, journal.BindingRecord):
            self._binding(record)
        elif isinstance(record, journal.GateRecord):
            self._gate(record)
        elif isinstance(record, journal.GroupRecord):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._group(record)
        else:
            assert_never(record)

    def _binding(self, record: journal.BindingRecord) -> None:
        if record.result == "bound":
            text = "Successfully bound pod to node"
            self._log.info(text, v=OUTCOME, pod=record.pod, node=record.node)
        elif record.is_rejected:
            self._log.info(_NO_FIT, v=OUTCOME, pod=record.pod, err=record.message)
        else:
            self._log.error(_RETRYING, pod=record.pod, node=record.node, err=record.message)

    def _attempt(self, record: journal.AttemptRecord) -> None:
        if record.message == NO_NODES_AVAILABLE:
            self._log.info(_NO_NODES, v=OUTCOME, pod=record.pod)
        elif record.result == "unschedulable":
            self._log.info(_NO_FIT, v=OUTCOME, pod=record.pod, err=record.message)
        elif record.result == "error":
            keys = {"plugin": record.plugin}
            self._log.error(_RETRYING, pod=record.pod, **keys, err=record.message)
        else:
            chosen = {"node": record.node, "evaluatedNodes": record.node_count}
            feasible = {"feasibleNodes": record.feasible_count}
            self._log.info("Chose node for pod", v=_DETAIL, pod=record.pod, **chosen, **feasible)

    def _gate(self, record: journal.GateRecord) -> None:
        if record.code:
            text, keys = "Unexpected error running PreEnqueue plugin", {"plugin": record.plugin}
            self._log.error(text, pod=record.pod, **keys, err=record.message)
        else:
            text, keys = "Pod is held back", {"plugin": record.plugin, "message": record.message}
            self._log.info(text, v=OUTCOME, pod=record.pod, **keys)

    def _group(self, record: journal.GroupRecord) -> None:
        name, api_group = record.group, record.api_group
        if record.result == "error":
            text = "Error scheduling group of pods; retrying"
            self._log.error(text, podGroup=name, apiGroup=api_group, err=record.message)
        elif record.result == "placed":
            text, count = "Placed group of pods", record.fitting
            self._log.info(text, v=OUTCOME, podGroup=name, apiGroup=api_group, pods=count)
        else:
            text, keys = "Group of pods waits", {"result": record.result, "err": record.message}
            self._log.info(text, v=OUTCOME, podGroup=name, apiGroup=api_group, **keys)

    def _note(self, record: journal.NoteRecord) -> None:
        if record.kind == journal.BUG_NOTE:
            self._log.error("Bug in the scheduler", subject=record.subject, err=record.text)
        elif record.plugin:
            subject, plugin = record.subject, record.plugin
            self._log.error("Plugin failed", subject=subject, plugin=plugin, err=record.text)
        else:
            self._log.info("Noted", v=OUTCOME, subject=record.subject, note=record.text)
