"""The folder of a shadow: its report and each decision, beside the recording.

    DIR/report.json        the ShadowReport
    DIR/running.json       the ShadowReport so far, until the end
    DIR/decisions.jsonl    a Decision on each line; one that disagrees up to some seconds later

Only the owner may read the files. `bayplan ui DIR` shows them.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from bayplan.problems import BadInputError
from bayplan.regular_files import lines_of_regular_file, read_regular_file
from bayplan.shadow.report import Decision, ShadowReport

REPORT: Final = "report.json"
RUNNING: Final = "running.json"
DECISIONS: Final = "decisions.jsonl"
#: The beginning of a file in which the kind of a report is looked for.
_HEAD_BYTES = 400
_REPORT_BYTES_MAX = 1 << 30


@final
class DecisionFile:
    """Writes decisions while they happen."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError, FileExistsError for a folder of another shadow."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _new_file(folder / DECISIONS)

    def write(self, decision: Decision) -> None:
        self._file.write(msgspec.json.encode(decision) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def write_report(folder: Path, report: ShadowReport) -> None:
    """Write the report of the end. Raises OSError, FileExistsError."""
    _write(folder / REPORT, report)
    (folder / RUNNING).unlink(missing_ok=True)


def write_report_so_far(folder: Path, report: ShadowReport) -> None:
    """Raises OSError."""
    part = folder / f"{RUNNING}.part"
    part.unlink(missing_ok=True)
    _write(part, report)
    part.replace(folder / RUNNING)


def _write(path: Path, report: ShadowReport) -> None:
    with _new_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _new_file(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "wb")


# ---- reading --------------------------------------------------------------------------------


def is_shadow(path: Path) -> bool:
    """Whether a path is the folder of a shadow, or the report of one as JSON."""
    if path.is_dir():
        return is_shadow(path / REPORT) or is_shadow(path / RUNNING)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"ShadowReport"' in file.read(_HEAD_BYTES)


def written_so_far(folder: Path) -> int | None:
    """When the report so far was written, in ns; None: the shadow is at its end."""
    try:
        return (folder / RUNNING).stat().st_mtime_ns
    except OSError:
        return None


def read_shadow(path: Path) -> tuple[ShadowReport, Sequence[Decision]]:
    """The report, and all decisions in the order of time; of a report without a folder, those that
    disagree. While the shadow runs, the report is the one so far. Raises BadInputError."""
    file = path / REPORT if path.is_dir() else path
    try:
        report = msgspec.json.decode(_content(file), type=ShadowReport)
        decisions = _decisions(file.parent / DECISIONS) if path.is_dir() else None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise BadInputError(f"{file}: {problem}") from None
    if decisions is None:
        decisions = [
            Decision(
                pod=one.pod,
                at_seconds=one.at_seconds,
                node=one.node,
                result=one.result,
                disagreement=one,
            )
            for one in report.disagreements
        ]
    return report, sorted(decisions, key=lambda one: one.at_seconds)


def _content(report: Path) -> bytes:
    """Of the report, or of the one so far. Raises OSError."""
    running = report.with_name(RUNNING)
    if report.name == REPORT and not report.exists() and running.exists():
        # The end may come here; it writes the report first.
        with suppress(FileNotFoundError):
            return read_regular_file(running, _REPORT_BYTES_MAX)
    return read_regular_file(report, _REPORT_BYTES_MAX)


def _decisions(path: Path) -> list[Decision] | None:
    """None: there is no such file."""
    if not path.exists():
        return None
    decoder = msgspec.json.Decoder(Decision)
    # While the shadow runs, the last line may be written in part.
    lines = lines_of_regular_file(path)
    return [decoder.decode(line) for line in lines if line.endswith(b"\n")]
