"""Programs of Kubernetes for tests, built once from Go modules with fixed versions.

A set of programs comes from the folder that an environment variable names. Without the variable it
comes from a cache folder, and `GoPrograms.build` fills that folder once.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NoBinaries(Exception):
    """The programs are missing and cannot be built. The message says how to get them."""


@dataclass(frozen=True, slots=True)
class GoModule:
    """A folder with go.mod and go.sum, and the packages to build from it."""

    folder: Path
    #: Program → package. A program ending in ".test" is the test binary of its package.
    packages: dict[str, str]
    #: Flags of `go build`.
    flags: Sequence[str] = ()

    def build(self, program: str, target: Path) -> bool:
        """Build one program. False: Go reported an error, which is on standard error."""
        # Without vet, which would check every package that the test binary needs.
        verb = ["test", "-c", "-vet=off"] if program.endswith(".test") else ["build"]
        command = ["go", *verb, "-trimpath", *self.flags, "-o", target, self.packages[program]]
        return subprocess.run(command, cwd=self.folder, check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class GoPrograms:
    """Programs that are needed together."""

    #: The beginning of the cache folder's name, for example "control-plane".
    name: str
    #: The environment variable that names a folder with the programs.
    variable: str
    modules: tuple[GoModule, ...]

    def folder(self) -> Path | None:
        """The folder with all programs; None: they are not built. Raises NoBinaries if the
        variable names a folder that lacks one."""
        named = os.environ.get(self.variable)
        if not named:
            return None if self._missing(self.cache()) else self.cache()
        missing = self._missing(Path(named))
        if missing:
            raise NoBinaries(f"{self.variable}={named} has no {' and no '.join(missing)}")
        return Path(named)

    def cache(self) -> Path:
        """A folder for these versions of the modules."""
        text = b"".join(
            (module.folder / file).read_bytes()
            for module in self.modules
            for file in ("go.mod", "go.sum")
        )
        root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        digest = hashlib.sha256(text).hexdigest()[:12]
        return Path(root).expanduser() / "bayplan" / f"{self.name}-{digest}"

    def build(self) -> Path:
        """Build what the cache folder lacks. Raises NoBinaries."""
        if shutil.which("go") is None:
            raise NoBinaries(self.how_to_get_them)
        cache = self.cache()
        cache.mkdir(parents=True, exist_ok=True)
        missing = self._missing(cache)
        print(f"building {', '.join(missing)} into {cache}; minutes, once", flush=True)
        with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
            for module in self.modules:
                for program in module.packages:
                    if program not in missing:
                        continue
                    target = Path(folder) / program
                    if not module.build(program, target):
                        raise NoBinaries(f"{program} could not be built; {self.how_to_get_them}")
                    # Another process that builds at the same time reads a complete file or none.
                    target.replace(cache / program)
        return cache

    def get(self) -> Path:
        """The folder with all programs, which are built if they are missing. Raises NoBinaries."""
        return self.folder() or self.build()

    def main(self) -> None:
        """Print the folder. Exits with a message if programs are missing and cannot be built."""
        try:
            print(self.get())
        except NoBinaries as problem:
            sys.exit(str(problem))

    @property
    def how_to_get_them(self) -> str:
        """A sentence for a person whose machine lacks the programs."""
        names = ", ".join(self._programs())
        return (
            f"these tests need {names}: set {self.variable} to a folder that holds them, "
            "or install Go 1.26 or newer, and they are built once"
        )

    def _programs(self) -> list[str]:
        return [program for module in self.modules for program in module.packages]

    def _missing(self, folder: Path) -> list[str]:
        return [name for name in self._programs() if not os.access(folder / name, os.X_OK)]
