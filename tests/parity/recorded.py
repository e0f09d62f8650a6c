"""The cases in this folder, to be compared unchanged and changed."""

import json
from pathlib import Path
from typing import Any

from tests.parity.runner import compare_file_line, files_of
from tests.parity.tally import Tally

Json = dict[str, Any]

CASES = Path(__file__).parent / "cases"
FILES = files_of([CASES])


def case(suite: str, name: str) -> Json:
    for line in (CASES / f"{suite}.jsonl").read_bytes().splitlines():
        content = json.loads(line)
        if content["id"] == name:
            return content
    raise KeyError(name)


def compared(*cases: Json) -> Tally:
    tally = Tally()
    for each in cases:
        compare_file_line(json.dumps(each).encode(), "test", tally)
    return tally


def different_fields(tally: Tally) -> set[str]:
    return {name for (_, name), entry in tally.fields.items() if entry.different}


def answer(content: Json, pod: str) -> Json:
    [expected] = [a for a in content["answers"]["pods"] if a["pod"] == f"default/{pod}"]
    return expected
