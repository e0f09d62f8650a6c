"""`make release-check`: checks whether this commit can be released. Each check prints a line.

The packages, the installation on each Python at hand, the SBOMs in `dist`, and the licences of
all dependencies. New environments are installed, which needs the network.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.release import bill_of_materials, environments, packages

PYTHONS = ("3.11", "3.12", "3.13")
#: The version in the image: ARG PYTHON in deploy/Dockerfile.
IMAGE_PYTHON = "3.13"
DIST = packages.ROOT / "dist"
_LOCK = packages.ROOT / "requirements-dev.lock"


class Report:
    """Prints lines, and records whether one of them is a failure."""

    def __init__(self) -> None:
        self.has_failed = False

    def line(self, is_good: bool, text: str) -> None:
        self.has_failed |= not is_good
        print(f"{'ok     ' if is_good else 'FAILED '} {text}", flush=True)

    def skip(self, text: str) -> None:
        print(f"absent  {text}", flush=True)


def main() -> None:
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = _check_packages(report, folder)
        interpreters = {version: interpreter(version) for version in PYTHONS}
        for version, python in interpreters.items():
            if python is None:
                report.skip(f"Python {version} is not at hand: not tested here")
            else:
                _check_installation(report, wheel, version, python, folder)
        image = interpreters[IMAGE_PYTHON] or sys.executable
        _write_bill(report, wheel, "", f"{packages.DISTRIBUTION}.cdx.json", sys.executable, folder)
        _write_bill(
            report, wheel, "[uvloop]", f"{packages.DISTRIBUTION}-image.cdx.json", image, folder
        )
        _check_licences(report, wheel, folder)
    sys.exit(report.has_failed)


def interpreter(version: str) -> str | None:
    """A working interpreter of this version: on the path, or one of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, sorted(root.glob(f"versions/{version}.*/bin/python{version}")))
    # pyenv has shims for versions that are not selected; these fail.
    return next((each for each in candidates if each and _works(each)), None)


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def _check_packages(report: Report, folder: Path) -> Path:
    """Build twice and compare. The wheel is stored in `dist`."""
    first = packages.build(packages.ROOT, folder / "first")
    second = packages.build(packages.unpack(first.sdist, folder / "source"), folder / "second")
    for one, other in zip(first, second, strict=True):
        digest = hashlib.sha256(one.read_bytes()).hexdigest()
        is_equal = one.read_bytes() == other.read_bytes()
        report.line(is_equal, f"{one.name}: two builds are identical: sha256 {digest}")
    for kind, names, expected in (
        ("wheel", packages.wheel_names(first.wheel), packages.expected_wheel_names()),
        ("sdist", packages.sdist_names(first.sdist), packages.expected_sdist_names()),
    ):
        differences = ", ".join(sorted(names ^ expected)[:5])
        text = f"the {kind} holds {len(names)} files"
        report.line(not differences, f"{text}; differences: {differences}" if differences else text)
    DIST.mkdir(exist_ok=True)
    for package in first:
        shutil.copy(package, DIST)
    return first.wheel


def _check_installation(
    report: Report, wheel: Path, version: str, python: str, folder: Path
) -> None:
    """`pip install` of the wheel with the newest dependencies, then the demo."""
    try:
        fresh = environments.create(folder / f"python-{version}", python)
        environments.install(fresh, wheel)
    except subprocess.CalledProcessError as problem:
        report.line(False, f"Python {version}: pip install ended with {problem.returncode}")
        return
    empty = folder / f"empty-{version}"
    empty.mkdir()
    completed = environments.run(fresh, "demo", folder=empty)
    first_line = (completed.stdout or completed.stderr).partition("\n")[0]
    report.line(completed.returncode == 0, f"Python {version}: bayplan demo: {first_line}")


def _write_bill(
    report: Report, wheel: Path, extras: str, name: str, python: str, folder: Path
) -> None:
    """Write the SBOM of an environment with the locked versions."""
    fresh = environments.create(folder / name, python)
    environments.install(fresh, *_constraint(folder), f"{wheel}{extras}")
    bill = bill_of_materials.write(fresh, DIST / name)
    report.line(bool(bill["components"]), f"dist/{name}: {len(bill['components'])} components")


def _constraint(folder: Path) -> tuple[str, Path]:
    """The locked versions without their hashes: pip would want a hash of the wheel, too."""
    lines = [line for line in _LOCK.read_text(encoding="utf-8").splitlines() if "==" in line]
    path = folder / "versions.txt"
    path.write_text("".join(line.removesuffix("\\").rstrip() + "\n" for line in lines))
    return "--constraint", path


def _check_licences(report: Report, wheel: Path, folder: Path) -> None:
    """Check the licences of all dependencies, including those of the extras."""
    fresh = environments.create(folder / "extras")
    environments.install(fresh, *_constraint(folder), f"{wheel}[uvloop,compare,dask]")
    bill = bill_of_materials.write(fresh, folder / "extras.json")
    problems = bill_of_materials.unlisted(bill)
    text = "; ".join(problems) or bill_of_materials.summary(bill)
    report.line(not problems, f"licences of {len(bill['components'])} dependencies: {text}")


if __name__ == "__main__":
    main()
