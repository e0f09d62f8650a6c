"""A run on disk: what was decided, and what is needed to decide it again.

summary.json     the object that --format json prints
placements.csv   pod, node, bound_at
journal.jsonl    every decision
inputs/          configuration, plugins and workload, as given: enough to replay the run
"""

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, final

import msgspec
from msgspec import Struct

from bayplan.journal import JournalError, Record, read
from bayplan.sim.result import SimulationResult
from bayplan.sim.workload import Workload

_MANIFEST = "inputs/manifest.json"
_JOURNAL = "journal.jsonl"
_WORKLOAD = "inputs/workload.json"


class RunFolderError(Exception):
    """A folder that cannot be written, or that holds no run; the message says which and why."""


class Manifest(Struct, frozen=True, kw_only=True):
    """How the run was started."""

    seed: int
    #: The configuration's text, None for the default one.
    config: str | None
    feature_gates: str
    #: Plugin files, by their names inside inputs/.
    plugins: tuple[str, ...]


@final
class RunFolder:
    """Writes or reads one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # ---- writing --------------------------------------------------------------------------

    def start(
        self, manifest: Manifest, workload: Workload, plugin_files: Sequence[Path]
    ) -> BinaryIO:
        """Keep the inputs; returns the journal file to write to. Raises RunFolderError."""
        try:
            (self.path / "inputs").mkdir(parents=True, exist_ok=True)
            for name, source in zip(manifest.plugins, plugin_files, strict=True):
                shutil.copyfile(source, self.path / "inputs" / name)
            self._write(_MANIFEST, msgspec.json.encode(manifest))
            self._write(_WORKLOAD, msgspec.json.encode(workload))
            return (self.path / _JOURNAL).open("wb")
        except OSError as problem:
            raise RunFolderError(f"{self.path}: cannot be written: {problem.strerror}") from None

    def finish(self, result: SimulationResult) -> None:
        """Raises RunFolderError."""
        try:
            encoded = msgspec.json.format(msgspec.json.encode(result), indent=2)
            self._write("summary.json", encoded)
            with (self.path / "placements.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("pod", "node", "bound_at"))
                for name, node in result.placements.items():
                    writer.writerow((name, node, result.pods[name].bound_at))
        except OSError as problem:
            raise RunFolderError(f"{self.path}: cannot be written: {problem.strerror}") from None

    def _write(self, name: str, content: bytes) -> None:
        (self.path / name).write_bytes(content)

    # ---- reading --------------------------------------------------------------------------

    def journal(self) -> Iterator[Record]:
        """Every record. Raises RunFolderError."""
        try:
            with (self.path / _JOURNAL).open("rb") as file:
                yield from read(file)
        except OSError as problem:
            raise self._not_a_run(problem) from None
        except JournalError as problem:
            raise RunFolderError(f"{self.path / _JOURNAL}: {problem}") from None

    def inputs(self) -> tuple[Manifest, Workload, list[Path]]:
        """What the run was made from. Raises RunFolderError."""
        try:
            manifest = msgspec.json.decode((self.path / _MANIFEST).read_bytes(), type=Manifest)
            workload = msgspec.json.decode((self.path / _WORKLOAD).read_bytes(), type=Workload)
        except OSError as problem:
            raise self._not_a_run(problem) from None
        except msgspec.MsgspecError as problem:
            raise RunFolderError(f"{self.path}/inputs: {problem}") from None
        return manifest, workload, [self.path / "inputs" / name for name in manifest.plugins]

    def _not_a_run(self, problem: OSError) -> RunFolderError:
        return RunFolderError(
            f"{self.path}: no run is kept here ({problem.strerror}: {problem.filename}); "
            f"wanted a folder that `bayplan simulate --out` wrote"
        )
