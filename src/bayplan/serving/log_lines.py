"""Log lines: a constant text and keys, as text like klog's or as JSON.

    I1122 02:51:18.123456       1 scheduler] "Successfully bound pod to node" pod="a/b" node="n1"
    {"ts":1764,"logger":"scheduler","level":"info","v":2,"msg":"Successfully bound …","pod":"a/b"}

Verbosity is klog's: a line of level v is written with -v=v or more, problems always. To Python's
logging level v is INFO - v, so that libraries' own lines take the same way. Upstream:
k8s.io/klog/v2, component-base/logs/json.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, final

import msgspec

from bayplan.printable import printable

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

#: Below it nothing is asked for: DEBUG.
VERBOSITY_MAX = logging.INFO - logging.DEBUG

_ROOT = "bayplan"
_KEYS = "bayplan_keys"
_SEVERITIES = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


@final
class Log:
    """Writes lines of one part of the scheduler."""

    def __init__(self, part: str) -> None:
        self._logger = logging.getLogger(f"{_ROOT}.{part}")

    def info(self, text: str, *, v: int = 0, **keys: Any) -> None:
        """``v``: the verbosity from which it is of interest."""
        level, logger = logging.INFO - v, self._logger
        if logger.isEnabledFor(level):
            # As logger.log, but who called it is not looked for: most lines are written here.
            extra = {_KEYS: keys}
            record = logger.makeRecord(logger.name, level, "", 0, text, (), None, extra=extra)
            logger.handle(record)

    def warning(self, text: str, **keys: Any) -> None:
        self._logger.warning(text, extra={_KEYS: keys})

    def error(self, text: str, **keys: Any) -> None:
        self._logger.error(text, extra={_KEYS: keys})


def write_log(verbosity: int, form: str, stream: TextIO | None = None) -> None:
    """From now on, to ``stream`` (standard error), in place of what was said before."""
    assert 0 <= verbosity <= VERBOSITY_MAX, verbosity
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if form == JSON else _TextLines())
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


@final
class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        second, fraction = divmod(int(record.created * 1e6), 1_000_000)
        severity = _SEVERITIES.get(record.levelno, "I")
        moment = f"{_second(second)}.{fraction:06}"
        head = f"{severity}{moment} {record.process:>7} {_part(record)}]"
        keys = "".join(f" {key}={_shown(value)}" for key, value in _keys(record).items())
        return f"{head} {_shown(record.getMessage())}{keys}"


def _level(number: int) -> str:
    """Verbosity is no level: all of its lines are information."""
    return "info" if number <= logging.INFO else logging.getLevelName(number).lower()


@final
class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"ts": round(record.created * 1000, 3), "logger": _part(record)}
        # Upstream has `v` in lines without an error, and no level.
        line["level"] = _level(record.levelno)
        if record.levelno <= logging.INFO:
            line["v"] = logging.INFO - record.levelno
        line |= {"msg": record.getMessage(), **_keys(record)}
        return msgspec.json.encode(line, enc_hook=str).decode()


def _shown(value: Any) -> str:
    """Strings quoted and on one line, everything else as it is."""
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return printable(_quoted(str(value)).decode())
