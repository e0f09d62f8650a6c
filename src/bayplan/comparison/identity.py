"""What makes two runs the same run: a key over everything a run follows from.

The code is part of it, by content and not by version alone: that of Bayplan, and that of every
plugin and metric that is installed. Whatever is edited, no run of before is taken for one of now.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bayplan.comparison.extensions import METRICS_GROUP, PREPARATIONS_GROUP
from bayplan.plugins.registry import ENTRY_POINT_GROUP

_GROUPS = (ENTRY_POINT_GROUP, METRICS_GROUP, PREPARATIONS_GROUP)
#: So much of a key names its folder.
_KEY_LENGTH = 24


def key_of(parts: object) -> str:
    """A name for what follows from plain values and this code."""
    return digest(msgspec.json.encode((code_digest(), parts), order="deterministic"))[:_KEY_LENGTH]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@cache
def code_digest() -> str:
    """A hash over the code that decides."""
    found = hashlib.sha256(version("bayplan").encode())
    for package in sorted({"bayplan", *_installed()}):
        for path in _sources(package):
            found.update(path.name.encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _installed() -> Iterator[str]:
    """The top packages of whatever extends Bayplan here."""
    for group in _GROUPS:
        for point in entry_points(group=group):
            yield point.module.partition(".")[0]


def _sources(package: str) -> Iterable[Path]:
    spec = find_spec(package)
    if spec is None:
        return ()
    if spec.submodule_search_locations:
        folders = sorted(spec.submodule_search_locations)
        return [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
