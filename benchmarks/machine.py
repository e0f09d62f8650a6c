"""The machine of a measurement, and the tables in documents."""

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> str:
    """Processor, cores, system and versions, in a line."""
    parts = [processor(), f"{os.cpu_count()} cores", f"{platform.system()} {platform.machine()}"]
    parts += [f"Python {platform.python_version()}", f"numpy {version('numpy')}"]
    return ", ".join([*parts, f"Bayplan {version('bayplan')}"])


def processor() -> str:
    """The model of the processor, if the system reports it."""
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "a processor without a name"


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown. The first column is text; all other columns are numbers."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def put_between(path: Path, name: str, lines: Iterable[str]) -> None:
    """Replace the lines between a document's two marks of this name. Raises ValueError."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, mark, remaining = path.read_text(encoding="utf-8").partition(begin)
    _, other_mark, after = remaining.partition(end)
    if not mark or not other_mark:
        raise ValueError(f"{path} has no lines {begin} and {end}: put them where the table goes")
    path.write_text("\n".join([before + begin, *lines, end]) + after, encoding="utf-8")
