"""Errors of an input: all problems of all files are reported together."""

from collections.abc import Iterable
from typing import final

from bayplan.printable import printable
from bayplan.problems import BadInputError, Problem

#: The most lines in a message; further lines are counted.
LINES_MAX = 20


class InputError(BadInputError, ValueError):
    """An input that cannot be simulated; one line per problem, each with file and place."""

    def __init__(self, lines: Iterable[str], remarks: Iterable[str] = ()) -> None:
        """``remarks``: what may explain the problems."""
        self.lines = tuple(map(printable, lines))
        printed = self.lines[:LINES_MAX]
        more = len(self.lines) - len(printed)
        rest = [f"and {more} more"] if more else []
        super().__init__("\n".join((*printed, *rest, *map(printable, remarks))))


@final
class InputErrors:
    """Collects problems while an input is read to its end."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        #: What the reader should know, whether there are problems or not.
        self.remarks: list[str] = []

    def add(self, place: str, problem: Problem | str) -> None:
        """``place``: file and where in it."""
        self._lines.append(f"{place}: {problem}")

    def add_all(self, place: str, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add(place, problem)

    def raise_if_any(self) -> None:
        """Raises InputError."""
        if self._lines:
            raise InputError(self._lines, self.remarks)
