"""What is wrong with a configuration: where, what was found, what was wanted.

A problem is one line. All of them are collected, so that a file is mended in one go.
"""

import difflib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

#: More names than this are not listed; a command or the documents do that better.
LISTED_NAMES_MAX = 12
_SHOWN_LENGTH_MAX = 60
#: Below this a suggestion would rather mislead (difflib's ratio).
_LIKENESS_MIN = 0.75


@dataclass(frozen=True, slots=True)
class Problem:
    """``path``: as in profiles[0].plugins.score.enabled[2].name."""

    path: str
    found: str
    wanted: str = ""

    def __str__(self) -> str:
        text = f"{self.found}; {self.wanted}" if self.wanted else self.found
        return f"{self.path}: {text}" if self.path else text

    def under(self, path: str) -> "Problem":
        """The same problem where ``self.path`` is relative to ``path``."""
        return Problem(joined(path, self.path), self.found, self.wanted)


class ConfigError(Exception):
    """A configuration that is refused; prints one line per problem."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        assert self.problems
        before = f"{source}: " if source else ""
        super().__init__("\n".join(before + str(problem) for problem in self.problems))


def joined(path: str, rest: str) -> str:
    """One path after another: "a" and "[0].b" give "a[0].b"."""
    if not path or not rest:
        return path or rest
    return f"{path}{rest}" if rest.startswith("[") else f"{path}.{rest}"


def shown(value: Any) -> str:
    """A value in a message: quoted where it is a string, never long."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…"


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that ``name`` was probably meant to be."""
    folded = {other.lower(): other for other in sorted(known)}
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_LIKENESS_MIN)
    return folded[matches[0]] if matches else None


def suggestion(name: str, known: Collection[str]) -> str:
    """What to write in place of an unknown name; "" where there is no telling."""
    match = nearest(name, known)
    if match is not None:
        return f'did you mean "{match}"?'
    return f"wanted {listed(known)}" if 0 < len(known) <= LISTED_NAMES_MAX else ""


def listed(names: Iterable[str]) -> str:
    """ "a", "b" or "c" """
    quoted = [f'"{name}"' for name in sorted(names)]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))
