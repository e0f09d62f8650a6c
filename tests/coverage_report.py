"""The output of `make coverage` and `make coverage-floor`: the total, and parts below their floor.

    python -m tests.coverage_report FILE [MEASURED]

FILE is the output of `coverage json`; MEASURED names the measured code, if it is not all code. A
signature that reads the wrong fields gives a pod the answers of another pod, so tests have to run
the lines of every `sign_pod` and of the cache of results: the floor is 95 % of the lines of each.
The exit status is 1 if a part is below its floor.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FLOOR_PERCENT = 95.0
#: Files of src/bayplan with a floor for the whole file, and a function with a floor in every file.
FILES = ("engine/reuse/cache.py",)
FUNCTION = "sign_pod"


class Part(NamedTuple):
    """A file or a function, and how many of its lines the tests ran."""

    name: str
    covered_count: int
    line_count: int

    @property
    def percent(self) -> float:
        return 100.0 * self.covered_count / self.line_count if self.line_count else 100.0


def parts(report: dict[str, Any]) -> Iterator[Part]:
    """The parts that have a floor."""
    for path, file in sorted(report["files"].items()):
        name = path.partition("bayplan/")[2] or path
        if name in FILES:
            yield _part(name, file["summary"])
        for function, region in file.get("functions", {}).items():
            if function.rpartition(".")[2] == FUNCTION:
                yield _part(f"{name} {function}", region["summary"])


def _part(name: str, summary: dict[str, Any]) -> Part:
    return Part(name, summary["covered_lines"], summary["num_statements"])


def lines(report: dict[str, Any], measured: str = "") -> Iterator[str]:
    """Parts below the floor, and the total."""
    measured_parts = list(parts(report))
    missing = [name for name in FILES if name not in {part.name for part in measured_parts}]
    yield from (f"not measured: {name}" for name in missing)
    for part in below(report):
        yield f"below {FLOOR_PERCENT:g} % of lines: {part.name}, {part.percent:.1f} %"
    totals = report["totals"]
    branches = f"{totals['covered_branches']:,} of {totals['num_branches']:,} branches"
    of_lines = f"{totals['covered_lines']:,} of {totals['num_statements']:,} lines"
    yield f"{len(measured_parts)} parts with a floor of {FLOOR_PERCENT:g} % of lines"
    subject = f"coverage of {measured}" if measured else "coverage"
    yield f"{subject} {totals['percent_covered']:.1f} %: {of_lines}, {branches}"


def below(report: dict[str, Any]) -> list[Part]:
    return [part for part in parts(report) if part.percent < FLOOR_PERCENT]


def main(path: str, measured: str = "") -> int:
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    print("\n".join(lines(report, measured)))
    return 1 if below(report) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
