"""The output of `make coverage` and `make coverage-floor`: the total, and parts below their floor.

    python -m tests.coverage_report FILE [MEASURED]

FILE is the output of `coverage json`; MEASURED names the measured code, if it is not all code. A
signature that reads the wrong fields gives a pod the answers of another pod, so tests have to run
the lines of every `sign_pod` and of the cache of results: the floor is 95 % of the lines of each.
Every other module has a floor of half of its lines, so that none is without tests.
The exit status is 1 if a part is below its floor.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FLOOR_PERCENT = 95.0
#: Of the lines of every module.
MODULE_FLOOR_PERCENT = 50.0
#: Files of src/bayplan with the higher floor, and a function that has it in every file.
FILES = ("engine/reuse/cache.py",)
FUNCTION = "sign_pod"


class Part(NamedTuple):
    """A file or a function, and how many of its lines the tests ran."""

    name: str
    covered_count: int
    line_count: int
    floor_percent: float

    @property
    def percent(self) -> float:
        return 100.0 * self.covered_count / self.line_count if self.line_count else 100.0


def parts(report: dict[str, Any]) -> Iterator[Part]:
    """Every module, and the functions that have a floor of their own."""
    for path, file in sorted(report["files"].items()):
        name = path.partition("bayplan/")[2] or path
        floor = FLOOR_PERCENT if name in FILES else MODULE_FLOOR_PERCENT
        yield _part(name, file["summary"], floor)
        for function, region in file.get("functions", {}).items():
            if function.rpartition(".")[2] == FUNCTION:
                yield _part(f"{name} {function}", region["summary"], FLOOR_PERCENT)


def _part(name: str, summary: dict[str, Any], floor_percent: float) -> Part:
    return Part(name, summary["covered_lines"], summary["num_statements"], floor_percent)


def lines(report: dict[str, Any], measured: str = "") -> Iterator[str]:
    """Parts below the floor, and the total."""
    measured_parts = list(parts(report))
    missing = [name for name in FILES if name not in {part.name for part in measured_parts}]
    yield from (f"not measured: {name}" for name in missing)
    for part in below(report):
        yield f"below {part.floor_percent:g} % of lines: {part.name}, {part.percent:.1f} %"
    totals = report["totals"]
    branches = f"{totals['covered_branches']:,} of {totals['num_branches']:,} branches"
    of_lines = f"{totals['covered_lines']:,} of {totals['num_statements']:,} lines"
    signed_count = sum(part.floor_percent == FLOOR_PERCENT for part in measured_parts)
    yield f"{signed_count} parts with a floor of {FLOOR_PERCENT:g} % of lines"
    subject = f"coverage of {measured}" if measured else "coverage"
    yield f"{subject} {totals['percent_covered']:.1f} %: {of_lines}, {branches}"


def below(report: dict[str, Any]) -> list[Part]:
    return [part for part in parts(report) if part.percent < part.floor_percent]


def main(path: str, measured: str = "") -> int:
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    print("\n".join(lines(report, measured)))
    return 1 if below(report) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
