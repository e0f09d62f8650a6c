"""Problems of an input: the place, what was found, what was wanted, the nearest known name.

A problem is one line. All problems of a file are collected, so that a user can correct them
together. Configurations, objects and scenarios use the same words.
"""

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from bayplan.durations import DESCRIPTION, DurationError, parse_duration
from bayplan.printable import printable

#: Longer lists of names are not printed: commands and documents have them.
LISTED_NAMES_MAX = 12
_SHOWN_LENGTH_MAX = 60
#: A suggestion below this ratio (difflib) would mislead. In a short name, one wrong letter has more
#: weight.
_SIMILARITY_MIN = 0.75
#: A shorter name is the beginning of too many.
_PREFIX_MIN = 3
_SHORT_SIMILARITY_MIN = 0.6
_SHORT_LENGTH_MAX = 5


class BadInputError(Exception):
    """An input that its author must correct. The message has one line per problem."""


class Problem(Struct, frozen=True):
    """``path``: for example profiles[0].plugins.score.enabled[2].name."""

    path: str
    actual: str
    expected: str = ""

    def __str__(self) -> str:
        text = f"{self.actual}; {self.expected}" if self.expected else self.actual
        return printable(f"{self.path}: {text}" if self.path else text)

    def under(self, path: str) -> "Problem":
        """The same problem, with ``self.path`` appended to ``path``."""
        return Problem(joined(path, self.path), self.actual, self.expected)


class ConfigError(BadInputError):
    """A refused configuration, with all its errors."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        assert self.problems
        before = f"{source}: " if source else ""
        super().__init__("\n".join(before + str(problem) for problem in self.problems))


def joined(path: str, child: str) -> str:
    """Two paths joined: "a" and "[0].b" give "a[0].b"."""
    if not path or not child:
        return path or child
    return f"{path}{child}" if child.startswith("[") else f"{path}.{child}"


def wrong(path: str, value: Any, expected: str, names: Collection[str] = ()) -> Problem:
    """A problem of a wrong value. ``names``: names that the value may be a misspelling of."""
    meant = nearest(value, names) if isinstance(value, str) else None
    actual = "nothing" if value in (None, "") else shown(value)
    return Problem(path, f"found {actual}, wanted {expected}", _did_you_mean(meant))


def not_a_text(path: str, value: Any, expected: str = "a string") -> Problem:
    """A problem of a value that had to be a string. Without quotes, YAML reads yes, 8080 and 1.10
    as a boolean and as numbers."""
    problem = wrong(path, value, expected)
    is_unquoted = isinstance(value, bool | int | float)
    return Problem(path, problem.actual, "quote it") if is_unquoted else problem


def duration_of(path: str, value: Any) -> float:
    """Seconds, 0 or more, of a duration that a user wrote. Raises BadInputError."""
    try:
        return parse_duration(value)
    except DurationError:
        raise BadInputError(str(wrong(path, value, DESCRIPTION))) from None


def optional_duration(path: str, value: Any) -> float | None:
    """The same; None: no duration was written. Raises BadInputError."""
    return None if value is None else duration_of(path, value)


def shown(value: Any) -> str:
    """A value for a message: short, on one line; a string is quoted."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…"


def nearest(name: str, names: Collection[str]) -> str | None:
    """The known name that is probably meant by ``name``: the only one that differs before the
    last slash alone, as in its namespace; the only one that it begins, a similar
    one, or one with a similar part that people remember: "zone" of topology.kubernetes.io/zone,
    "ip-10-0-2-101" of ip-10-0-2-101.eu-west-1.compute.internal. None: none is, or it begins
    several, unless it lacks only the last letter of one of them."""
    elsewhere = _elsewhere(name, names)
    if elsewhere:
        return elsewhere[0] if len(elsewhere) == 1 else None
    begun = _begun(name, names)
    whole = [each for each in begun if each.startswith(f"{name}.")]
    for only in (begun, whole):
        if len(only) == 1:
            return only[0]
    if begun:
        # "ReadWriteOnc" lacks a letter of ReadWriteOnce, although it begins ReadWriteOncePod, too.
        lacks_one = [each for each in begun if len(each) == len(name) + 1]
        return lacks_one[0] if len(lacks_one) == 1 else None
    folded = {each.casefold(): each for each in sorted(names)}
    parts = {_memorable_part(each): each for each in folded}
    by_part = {part: folded[whole] for part, whole in parts.items()}
    # A path such as spec.replicas is neither a key nor the name of a host.
    part = name.rpartition("/")[2]
    return _similar(name, folded) or (None if "." in part else _similar(part, by_part))


def _elsewhere(name: str, names: Iterable[str]) -> list[str]:
    """The names that are equal behind the last slash."""
    _, slash, own = name.rpartition("/")
    return [each for each in names if slash and each.rpartition("/")[2] == own and "/" in each]


def _begun(name: str, names: Iterable[str]) -> list[str]:
    """The names that ``name`` is the beginning of."""
    return [each for each in names if each.startswith(name)] if len(name) >= _PREFIX_MIN else []


def _similar(name: str, folded: Mapping[str, str]) -> str | None:
    """``folded``: names without capitals → what each stands for."""
    similarity_min = _SIMILARITY_MIN if len(name) > _SHORT_LENGTH_MAX else _SHORT_SIMILARITY_MIN
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=similarity_min)
    return folded[matches[0]] if matches else None


def _memorable_part(name: str) -> str:
    """Behind the last slash of a key; before the first dot of a name of a host."""
    return name.rpartition("/")[2] if "/" in name else name.partition(".")[0]


def suggestion(name: str, names: Collection[str]) -> str:
    """A suggestion in place of an unknown name; "" if there is none."""
    meant = nearest(name, names)
    if meant is not None:
        return _did_you_mean(meant)
    choices = _elsewhere(name, names) or _begun(name, names) or names
    return f"wanted {listed(choices)}" if 0 < len(choices) <= LISTED_NAMES_MAX else ""


def _did_you_mean(name: str | None) -> str:
    return "" if name is None else f'did you mean "{name}"?'


def listed(names: Iterable[str]) -> str:
    """ "a", "b" or "c" """
    quoted = [f'"{name}"' for name in sorted(names)]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))
