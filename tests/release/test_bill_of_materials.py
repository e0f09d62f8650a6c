"""The SBOM names every dependency; licences are allowed by a list."""

import re
from pathlib import Path
from typing import Any

import pytest

from bayplan import __version__
from tests.release import bill_of_materials, environments

#: The machine may be busy while environments and packages are built.
pytestmark = pytest.mark.timeout(600)


def component(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"name": "library", "licenses": [*entries]}


def problems(*entries: dict[str, Any]) -> list[str]:
    return bill_of_materials.unlisted({"components": [component(*entries)]})


@pytest.mark.parametrize(
    "entry",
    [
        {"license": {"id": "MIT"}},
        {"expression": "(Apache-2.0 OR BSD-3-Clause) AND MIT"},
        {"license": {"name": "License :: OSI Approved :: Apache Software License"}},
    ],
)
def test_permissive_licences_are_allowed_however_they_are_written(entry: dict[str, Any]) -> None:
    assert not problems(entry)


def test_an_unlisted_licence_and_a_missing_one_are_reported() -> None:
    assert problems({"expression": "MIT AND GPL-3.0-only"}) == ["library: GPL-3.0-only"]
    assert problems({"license": {"name": "Proprietary"}}) == ["library: Proprietary"]
    assert problems() == ["library: no licence"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_bill_of_the_wheel_has_its_dependencies_with_allowed_licences(
    python: Path, tmp_path: Path
) -> None:
    bill = bill_of_materials.write(python, tmp_path / "bill.json", is_validated=False)
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["version"] == __version__
    names = {canonical(each["name"]) for each in bill["components"]}
    assert names == {canonical(name) for name in environments.required_distributions("bayplan")}
    assert all(each["purl"].startswith("pkg:pypi/") for each in bill["components"])
    assert not bill_of_materials.unlisted(bill)
