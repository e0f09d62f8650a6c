"""What changed, row by row: a bounded log of (generation, row, facets).

A reader remembers the generation it has seen and asks for the rows changed since in the facets it
reads. One that is older than the log compares per-row generations instead and gets a superset.
Generations never go back: undoing a trial is one more change of its rows.
"""

from collections import deque
from enum import IntFlag

import numpy as np

from bayplan.state.columns import Column, Rows

LOG_LENGTH_MAX = 1 << 16


class Facet(IntFlag):
    """The parts of a row that change independently; a plugin declares those it reads."""

    REQUESTED = 1
    ALLOCATABLE = 2
    LABELS = 4
    TAINTS = 8
    PORTS = 16
    IMAGES = 32
    #: Which pods are here, with what labels and affinity terms.
    PODS = 64
    ANNOTATIONS = 128
    CONDITIONS = 256
    VOLUMES = 512
    #: The row began or ended to hold a node.
    NODE = 1024
    #: A field path some plugin declared.
    DECLARED = 2048


ALL_FACETS = Facet(4095)


class ChangeLog:
    """The newest changes, and each row's last generation for readers that come late."""

    def __init__(self, row_generations: Column, length_max: int = LOG_LENGTH_MAX) -> None:
        self.generation = 0
        self._row_generations = row_generations
        self._entries: deque[tuple[int, int, int]] = deque(maxlen=length_max)

    def note(self, row: int, facets: int) -> None:
        self.generation += 1
        self._row_generations.values[row] = self.generation
        self._entries.append((self.generation, row, facets))

    def rows_since(self, generation: int, facets: int) -> Rows:
        """Rows changed after ``generation`` in one of ``facets``, ascending."""
        if generation >= self.generation:
            return _NO_ROWS
        if generation + 1 < self._entries[0][0]:
            return np.flatnonzero(self._row_generations.values > generation)
        rows: set[int] = set()
        for at, row, changed in reversed(self._entries):
            if at <= generation:
                break
            if changed & facets:
                rows.add(row)
        return np.array(sorted(rows), np.intp)


_NO_ROWS: Rows = np.empty(0, np.intp)
