"""The wheel and the sdist: their build from a folder, and their expected contents."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from bayplan import __version__

ROOT = Path(__file__).parents[2]
DISTRIBUTION = f"bayplan-{__version__}"
#: The date of files in packages. `make` uses the date of the last commit.
_EPOCH = "1600000000"

_METADATA = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
_SDIST_FOLDERS = ("benchmarks", "changes", "deploy", "docs", "examples", "src", "tests")
_SDIST_FILES = (
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "mkdocs.yml",
    "pyproject.toml",
    "requirements-dev.lock",
    "requirements.lock",
)


class Packages(NamedTuple):
    wheel: Path
    sdist: Path


def build(source: Path, target: Path) -> Packages:
    """The packages of the project in this folder."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", _EPOCH)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=source, env=env, check=True, capture_output=True)
    return Packages(target / f"{DISTRIBUTION}-py3-none-any.whl", target / f"{DISTRIBUTION}.tar.gz")


def unpack(sdist: Path, target: Path) -> Path:
    """The folder of the project within the unpacked sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    return target / DISTRIBUTION


def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sdist_names(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {member.name.removeprefix(f"{DISTRIBUTION}/") for member in archive.getmembers()}


#: What `bayplan mcp` gives to agents.
_CARRIED_DOCUMENTS = tuple(
    f"docs/{name}.md" for name in ("agents", "fit", "glossary", "what-if", "why")
)


def expected_wheel_names() -> set[str]:
    """The package, the examples without their tests, documents for agents, and the metadata."""
    names = {f"{DISTRIBUTION}.dist-info/{name}" for name in _METADATA}
    for name in project_files():
        if name.startswith("src/bayplan/"):
            names.add(name.removeprefix("src/"))
        elif name.startswith("examples/") and not name.startswith("examples/gpu_sharing/tests/"):
            names.add(f"bayplan/{name}")
    return names | {f"bayplan/{name}" for name in _CARRIED_DOCUMENTS}


def expected_sdist_names() -> set[str]:
    """The files that are needed to build and test the release."""
    folders = tuple(f"{folder}/" for folder in _SDIST_FOLDERS)
    return {name for name in project_files() if name.startswith(folders)} | {
        *_SDIST_FILES,
        "PKG-INFO",
    }


def project_files() -> list[str]:
    """The tracked files and the untracked files that are not ignored, as paths under the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    completed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in completed.stdout.split("\0") if name and (ROOT / name).is_file()]
