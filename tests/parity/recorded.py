"""The cases beside this file, to be compared as they are and changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.plugins.registry import Registry, in_tree_plugins
from tests.parity import world
from tests.parity.runner import compare_file_line, found_files
from tests.parity.tally import Tally

Json = dict[str, Any]

CASES = Path(__file__).parent / "cases"
FILES = found_files([CASES])


def case(suite: str, name: str) -> Json:
    for line in (CASES / f"{suite}.jsonl").read_bytes().splitlines():
        found = json.loads(line)
        if found["id"] == name:
            return found
    raise KeyError(name)


def compared(*cases: Json) -> Tally:
    tally = Tally()
    for each in cases:
        compare_file_line(json.dumps(each).encode(), "test", tally)
    return tally


def different_fields(tally: Tally) -> set[str]:
    return {name for (_, name), entry in tally.fields.items() if entry.different}


def answer(found: Json, pod: str) -> Json:
    [wanted] = [a for a in found["answers"]["pods"] if a["pod"] == f"default/{pod}"]
    return wanted


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if these plugins did not exist here."""
    kept = [plugin for plugin in in_tree_plugins() if plugin.name not in names]
    monkeypatch.setattr(world, "REGISTRY", Registry(kept))
