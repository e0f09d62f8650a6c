"""Seeds as they are written: `0..9`, `42`, `1,2,10..12`."""

import re
from collections.abc import Sequence

from bayplan.problems import Problem, wrong

WANTED = "seeds such as 0..9, or 1,2,5"
#: More than this is a slip of the pen.
SEEDS_MAX = 100_000
_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")


def parse_seeds(value: object, path: str) -> tuple[tuple[int, ...], list[Problem]]:
    """The seeds in the order in which they are written, each once; and what is wrong."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,), []
    if isinstance(value, str):
        return _parsed(value.split(","), value, path)
    if isinstance(value, Sequence):
        return _parsed([str(part) for part in value], value, path)
    return (), [wrong(path, value, WANTED)]


def _parsed(
    parts: Sequence[str], value: object, path: str
) -> tuple[tuple[int, ...], list[Problem]]:
    seeds: dict[int, None] = {}
    for part in parts:
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return (), [wrong(path, value, WANTED)]
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first or last - first >= SEEDS_MAX:
            return (), [wrong(path, part.strip(), f"an ascending range, of {SEEDS_MAX:,} at most")]
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return tuple(seeds), [] if seeds else [wrong(path, None, WANTED)]
