"""The SBOM (CycloneDX) of an environment, and the licences that dependencies may have."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan import __version__
from tests.release.packages import ROOT

#: Licences that permit use and distribution under Apache-2.0 (SPDX identifiers). Libraries
#: under MPL-2.0 are used unchanged, as separate packages.
ALLOWED = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
    ]
)
#: Texts of older metadata → identifier.
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
#: Libraries without a licence in their metadata → the licence of their licence file.
_UNDECLARED = {"partd": "BSD-3-Clause"}
_OPERATORS = re.compile(r"[()]|\b(?:AND|OR|WITH)\b")


def write(python: Path, file: Path, *, is_validated: bool = True) -> dict[str, Any]:
    """Write the SBOM of the environment of this interpreter. Equal environments give equal bytes.

    The validation against CycloneDX's schema takes ten times as long as the generation.
    """
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    command += ["--pyproject", "pyproject.toml", "--mc-type", "application", str(python)]
    command += ["--validate" if is_validated else "--no-validate"]
    completed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    bill: dict[str, Any] = json.loads(completed.stdout)
    # The tool does not read a version that the build takes from the source.
    bill["metadata"]["component"] |= {
        "version": __version__,
        "purl": f"pkg:pypi/bayplan@{__version__}",
    }
    file.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return bill


def licences(component: dict[str, Any]) -> Iterator[str]:
    """SPDX identifiers; a text that is not an identifier is returned unchanged."""
    if not component.get("licenses") and component["name"] in _UNDECLARED:
        yield _UNDECLARED[component["name"]]
    for entry in component.get("licenses", ()):
        if "expression" in entry:
            parts = _OPERATORS.split(entry["expression"])
            yield from filter(None, map(str.strip, parts))
        elif "id" in entry["license"]:
            yield entry["license"]["id"]
        else:
            name: str = entry["license"]["name"].rpartition(" :: ")[2]
            yield _CLASSIFIERS.get(name, name)


def unlisted(bill: dict[str, Any]) -> list[str]:
    """Components without a licence, or with a licence that is not in `ALLOWED`."""
    problems: list[str] = []
    for component in bill["components"]:
        names = set(licences(component))
        if not names:
            problems.append(f"{component['name']}: no licence")
        problems += [f"{component['name']}: {name}" for name in sorted(names - ALLOWED)]
    return problems


def summary(bill: dict[str, Any]) -> str:
    counts = Counter(name for each in bill["components"] for name in set(licences(each)))
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
