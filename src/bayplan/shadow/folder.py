"""The folder of a shadow: its report and each decision, beside the recording.

    DIR/report.json        the ShadowReport
    DIR/decisions.jsonl    a Decision on each line; one that disagrees up to some seconds later

Only the owner may read the files. `bayplan ui DIR` shows them.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from bayplan.problems import BadInputError
from bayplan.shadow.report import KIND, Decision, ShadowReport

REPORT: Final = "report.json"
DECISIONS: Final = "decisions.jsonl"
#: The beginning of a file in which the kind of a report is looked for.
_HEAD_BYTES = 400


@final
class DecisionFile:
    """Writes decisions while they happen."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError, FileExistsError for a folder of another shadow."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _new_file(folder / DECISIONS)

    def write(self, decision: Decision) -> None:
        self._file.write(msgspec.json.encode(decision) + b"\n")

    def close(self) -> None:
        self._file.close()


def write_report(folder: Path, report: ShadowReport) -> None:
    """Raises OSError, FileExistsError."""
    with _new_file(folder / REPORT) as file:
        file.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _new_file(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "wb")


# ---- reading --------------------------------------------------------------------------------


def is_shadow(path: Path) -> bool:
    """Whether a path is the folder of a shadow, or the report of one as JSON."""
    if path.is_dir():
        return is_shadow(path / REPORT)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return f'"{KIND}"'.encode() in file.read(_HEAD_BYTES)


def read_shadow(path: Path) -> tuple[ShadowReport, Sequence[Decision]]:
    """The report, and all decisions in the order of time; of a report without a folder, those that
    disagree. Raises BadInputError."""
    file = path / REPORT if path.is_dir() else path
    try:
        report = msgspec.json.decode(file.read_bytes(), type=ShadowReport)
        decisions = _decisions(file.parent / DECISIONS) if path.is_dir() else None
    except (OSError, msgspec.MsgspecError) as problem:
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


def _decisions(path: Path) -> list[Decision] | None:
    """None: there is no such file."""
    if not path.exists():
        return None
    decoder = msgspec.json.Decoder(Decision)
    with path.open("rb") as file:
        return [decoder.decode(line) for line in file]
