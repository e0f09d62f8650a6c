"""Compare our answers with kube-scheduler's recorded ones.

    python -m tests.parity.runner PARITY_DIR_OR_FILES... [--kubernetes VERSION] [--examples N]

Every recorded case runs in the real framework. Which answers are compared is described in
pod_answers.py, signature_answers.py and hint_cases.py beside it. Prints per suite and field how
many answers were compared and how many differ; exits with 1 if any does.
"""

import argparse
import gzip
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bayplan.config.kubernetes_versions import (
    NEWEST,
    VERSION_CHOICES,
    KubernetesVersion,
    version_of_release,
)
from tests.parity import gates, hint_cases, pod_cases, registrations
from tests.parity.tally import Sheet, Tally, report

Json = dict[str, Any]

#: Cases per task of a process.
_BATCH = 40
#: Files with one answer: name → the suite and its comparison.
_WHOLE_FILES: Mapping[str, tuple[str, Callable[[Json, Sheet], None]]] = {
    "hints-registered.json": (registrations.SUITE, registrations.compare_registrations),
    "feature-gates.json": (gates.SUITE, gates.compare_gates),
}


def compare_file_line(
    line: bytes, place: str, tally: Tally, kubernetes: KubernetesVersion = NEWEST
) -> None:
    """Compare one case of any suite. No content of a case ends the run."""
    try:
        case = json.loads(line)
        suite, name = str(case["suite"]), str(case["id"])
    except (ValueError, KeyError, TypeError):
        Sheet(tally, "unknown", place).not_understood("a line that is no case", is_answer=True)
        return
    tally.cases[suite] += 1
    sheet = Sheet(tally, suite, name, kubernetes)
    compare = _shape_of(case)
    if compare is None:
        sheet.not_understood("a case of another shape", is_answer=True)
        return
    try:
        compare(case, sheet)
    except Exception as problem:  # noqa: BLE001 - reported as a difference with its place
        sheet.compare("case", "answers", f"{type(problem).__name__}: {problem}")


def _shape_of(case: Json) -> Callable[[Json, Sheet], None] | None:
    if "event" in case:
        return hint_cases.compare_case
    return pod_cases.compare_case if "pending" in case or "queue" in case else None


# ---- files ---------------------------------------------------------------------------------


def files_of(places: Iterable[Path]) -> list[Path]:
    """The files among ``places``, and the files in the folders among them."""
    files: list[Path] = []
    for place in places:
        files += sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    return files


def _lines(file: Path) -> Iterator[bytes]:
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    yield from (line for line in content.splitlines() if line.strip())


def _batches(files: Sequence[Path]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    for file in files:
        for number, line in enumerate(_lines(file), start=1):
            batch.append((f"{file.name}:{number}", line))
            if len(batch) == _BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def _is_cases(file: Path) -> bool:
    return file.name.endswith((".jsonl", ".jsonl.gz"))


def _compare_batch(kubernetes: KubernetesVersion, batch: Sequence[tuple[str, bytes]]) -> Tally:
    tally = Tally()
    for place, line in batch:
        compare_file_line(line, place, tally, kubernetes)
    return tally


def compare_files(
    files: Sequence[Path], processes: int = 1, kubernetes: KubernetesVersion = NEWEST
) -> Tally:
    """Compare all cases of these files, the table of registered events and that of gates.

    ``kubernetes``: the version whose answers they are.
    """
    tally = Tally()
    cases = [file for file in files if _is_cases(file)]
    for file in files:
        if file.name in _WHOLE_FILES:
            _compare_whole(file, tally, kubernetes)
        elif file not in cases and file.suffix != ".md":
            Sheet(tally, "unknown", file.name).not_understood(file.name, is_answer=False)
    for part in _compared(_batches(cases), processes, kubernetes):
        tally.merge(part)
    return tally


def _compare_whole(file: Path, tally: Tally, kubernetes: KubernetesVersion) -> None:
    suite, compare = _WHOLE_FILES[file.name]
    sheet = Sheet(tally, suite, file.name, kubernetes)
    tally.cases[suite] += 1
    try:
        compare(json.loads(file.read_bytes()), sheet)
    except Exception as problem:  # noqa: BLE001 - reported as a difference
        sheet.compare("file", "answers", f"{type(problem).__name__}: {problem}")


def _compared(
    batches: Iterator[list[tuple[str, bytes]]], processes: int, kubernetes: KubernetesVersion
) -> Iterator[Tally]:
    compare = partial(_compare_batch, kubernetes)
    if processes <= 1:
        yield from map(compare, batches)
        return
    # Spawned and not forked, so that nothing of this process is shared.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        yield from pool.map(compare, batches)


# ---- the command ---------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.runner", description=__doc__)
    parser.add_argument("places", nargs="+", type=Path, metavar="PARITY_DIR_OR_FILES")
    parser.add_argument("--examples", type=int, default=3, help="differences shown per field")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kubernetes", default=NEWEST, help="the version, such as 1.36.3")
    options = parser.parse_args(arguments)
    kubernetes = version_of_release(options.kubernetes)
    if kubernetes is None:
        parser.error(f"--kubernetes {options.kubernetes}: {VERSION_CHOICES}")
    absent = [str(place) for place in options.places if not place.exists()]
    if absent:
        parser.error(f"no such file or folder: {', '.join(absent)}")
    tally = compare_files(files_of(options.places), options.processes, kubernetes)
    print("\n".join(report(tally, options.examples)))
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
