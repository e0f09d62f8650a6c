"""The order of names, and the suffix that names of nodes share."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from heapq import nsmallest

_DIGITS = re.compile(r"(\d+)")
#: The keys of so many names are kept: the names of nodes are sorted in every answer.
_KEYS_MAX = 1 << 15
#: A shorter suffix is not worth a line.
_SUFFIX_MIN = 8


@lru_cache(maxsize=_KEYS_MAX)
def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A key for sorting: numbers inside a name count as numbers, so that n2 is before n10."""
    return tuple(
        (not index % 2, int(part) if index % 2 else 0, part)
        for index, part in enumerate(_DIGITS.split(name))
    )


def in_natural_order(names: Iterable[str]) -> list[str]:
    """Names in their natural order: n2 before n10."""
    return sorted(names, key=natural_key)


def first_in_natural_order(names: Iterable[str], count: int) -> list[str]:
    """The first names in natural order."""
    return nsmallest(count, names, key=natural_key)


def common_suffix(names: Iterable[str]) -> str:
    """The longest suffix, from a dot on, that all names with a dot share: ".eu-west-1.internal".

    "": fewer than two names have a dot, or they share none, or one that is short.
    """
    dotted = [name for name in dict.fromkeys(names) if "." in name.strip(".")]
    if len(dotted) < 2:
        return ""
    suffix = dotted[0][dotted[0].index(".") :]
    while suffix and not all(name.endswith(suffix) and name != suffix for name in dotted):
        _, dot, further = suffix[1:].partition(".")
        suffix = dot + further
    return suffix if len(suffix) >= _SUFFIX_MIN else ""


#: Names that a list shows.
_NAMES_MAX = 5


def listed_names(names: Sequence[str], count_max: int = _NAMES_MAX) -> str:
    """The first names, and how many follow."""
    shown = ", ".join(names[:count_max])
    further = len(names) - count_max
    return shown if further <= 0 else f"{shown} and {further:,} more"
