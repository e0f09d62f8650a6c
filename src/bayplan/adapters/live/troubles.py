"""What cannot be done at present: told once when it begins, once when it is over.

A reflector tries for ever; a log line at each attempt would bury the one that matters.
"""

import logging
from collections.abc import Mapping
from typing import final

_log = logging.getLogger(__name__)


@final
class Troubles:
    """By what was tried ("list v1 Node"), why it failed."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        return self._problems

    def begin(self, what: str, problem: Exception) -> None:
        """It failed, perhaps once more."""
        why = str(problem)
        if self._problems.get(what) != why:
            self._problems[what] = why
            _log.error("cannot %s: %s", what, why)

    def end(self, what: str) -> None:
        """It works."""
        if self._problems and self._problems.pop(what, None) is not None:
            _log.info("can %s again", what)
