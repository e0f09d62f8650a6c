"""The contents of the wheel and the sdist, and a second build of both."""

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from bayplan import __version__
from tests.release.packages import (
    Packages,
    build,
    expected_sdist_names,
    expected_wheel_names,
    sdist_names,
    unpack,
    wheel_names,
)

#: The machine may be busy while environments and packages are built.
pytestmark = pytest.mark.timeout(600)


def test_the_wheel_holds_the_package_and_its_examples(packages: Packages) -> None:
    names = wheel_names(packages.wheel)
    assert names == expected_wheel_names()
    assert {"bayplan/py.typed", "bayplan/examples/quickstart/cluster.yaml"} <= names
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]


def test_the_sdist_has_all_files_for_a_build_and_for_the_tests(packages: Packages) -> None:
    assert sdist_names(packages.sdist) == expected_sdist_names()


def test_a_wheel_built_from_the_sdist_is_identical_to_the_byte(
    packages: Packages, tmp_path: Path
) -> None:
    """The second build is in another folder with other file times, and has equal bytes."""
    again = build(unpack(packages.sdist, tmp_path / "source"), tmp_path / "dist")
    assert again.wheel.read_bytes() == packages.wheel.read_bytes()
    assert again.sdist.read_bytes() == packages.sdist.read_bytes()


def test_the_metadata_name_the_version_the_licence_and_the_optional_extras(
    packages: Packages,
) -> None:
    with zipfile.ZipFile(packages.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Provides-Extra") == ["compare", "dask", "mcp", "uvloop"]
