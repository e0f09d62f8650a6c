"""Virtual environments with the built wheel, without access to the checkout."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

#: Variables that a shell may set, and that could lead to the checkout.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def create(folder: Path, python: str = sys.executable) -> Path:
    """Create an environment without pip. Returns its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def install(python: Path, *arguments: str | Path) -> None:
    """Install into the environment of this interpreter, with the pip of the tests."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--quiet"]
    command += ["--disable-pip-version-check", "install", *map(str, arguments)]
    subprocess.run(command, check=True, env=clean_environment())


def link_dependencies(python: Path, distribution: str) -> None:
    """Link only the libraries that the distribution requires without extras.

    The links lead to the libraries that are installed for the tests and need no network.
    """
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    completed = subprocess.run(command, check=True, capture_output=True, text=True)
    target = Path(completed.stdout.strip())
    for name in required_distributions(distribution):
        library = metadata.distribution(name)
        for top in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
            if not (target / top).exists():
                (target / top).symlink_to(str(library.locate_file(top)))


def required_distributions(distribution: str) -> set[str]:
    """The names of all direct and indirect requirements, without those of extras."""
    names: set[str] = set()
    waiting = [distribution]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            requirement = Requirement(text)
            is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_needed and requirement.name not in names:
                names.add(requirement.name)
                waiting.append(requirement.name)
    return names


def run(python: Path, *arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command `bayplan` of the environment in this folder."""
    command = [str(python.parent / "bayplan"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean_environment(), capture_output=True, text=True, check=False
    )


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _FOREIGN}
