"""The change log: a bounded log of (generation, row, facets).

A reader remembers the generation it has seen and gets the rows that changed since in the facets it
reads. If that generation is older than the log, the reader gets a superset from per-row
generations. Generations never go back: undoing a trial is one more change of its rows. Each change
is the next generation, so its entry is at (generation - 1) modulo the length of the log.
"""

from enum import IntFlag

import numpy as np
import numpy.typing as npt

from bayplan.state.columns import Column, Rows, places_of

LOG_LENGTH_MAX = 1 << 16

#: In place of a row: the change may affect the result of every row.
ALL_ROWS = -1

#: Up to this many entries, a loop is faster than array operations.
_FEW_ENTRIES = 16


class Facet(IntFlag):
    """The parts of a row that change independently; a plugin declares those it reads."""

    REQUESTED = 1
    ALLOCATABLE = 2
    LABELS = 4
    TAINTS = 8
    PORTS = 16
    #: The images of the node, and how many nodes (of how many) have them.
    IMAGES = 32
    #: The pods of the node, with their labels and affinity terms.
    PODS = 64
    ANNOTATIONS = 128
    CONDITIONS = 256
    #: Volumes of the node's pods, attached volumes, and the limits of attachable volumes.
    VOLUMES = 512
    #: The row began or ended to hold a node.
    NODE = 1024
    #: A field path that a plugin declares.
    DECLARED = 2048
    #: Claims, volumes, classes and CSI objects, including assumed versions. They may affect the
    #: result of every row.
    STORAGE = 4096


ALL_FACETS = Facet(8191)


class ChangeLog:
    """The newest changes, and the last generation of each row for readers that are far behind."""

    def __init__(self, row_generations: Column, length_max: int = LOG_LENGTH_MAX) -> None:
        self.generation = 0
        #: (row, facets) of the last change; before the first one, `ALL_ROWS` and none.
        self.newest: tuple[int, int] = ALL_ROWS, 0
        #: Combination of facets → the last generation with this combination.
        self._last: dict[int, int] = {}
        self._row_generations = row_generations
        #: The generation of the last change of all rows.
        self.all_rows_generation = 0
        self._length_max = length_max
        # np.zeros does not touch memory, so unused pages take no RAM.
        self._rows: npt.NDArray[np.int32] = np.zeros(length_max, np.int32)
        self._facets: npt.NDArray[np.int32] = np.zeros(length_max, np.int32)

    def note(self, row: int, facets: int) -> None:
        """One more change; ``row`` may be ALL_ROWS."""
        place = self.generation % self._length_max
        self.generation += 1
        self.newest = row, facets
        self._rows[place] = row
        self._facets[place] = facets
        self._last[facets] = self.generation
        if row >= 0:
            self._row_generations.values[row] = self.generation
        else:
            self.all_rows_generation = self.generation

    def note_many(self, rows: Rows, facets: int) -> None:
        """As `note` for each row in turn; a row may repeat, and none is ALL_ROWS."""
        if not len(rows):
            return
        generations = np.arange(self.generation + 1, self.generation + len(rows) + 1)
        places = (generations - 1) % self._length_max
        # Of several values for one place, the last one stays.
        self._rows[places] = rows
        self._facets[places] = facets
        self._row_generations.values[rows] = generations
        self.generation += len(rows)
        self.newest = rows.item(-1), facets
        self._last[facets] = self.generation

    def rows_since(self, generation: int, facets: int) -> Rows:
        """Rows changed after ``generation`` in one of ``facets``, ascending.

        Exact as far back as the log reaches. Beyond that, or if every row changed, the result may
        include freed rows and rows that changed in other facets.
        """
        count = self.generation - generation
        if count <= 0:
            return _NO_ROWS
        if count > self._length_max:
            return self._rows_late(generation)
        rows, changed = self._newest(count)
        # A plain integer: arithmetic with flags is slow.
        facet_bits = int(facets)
        if count == 1 and rows.item(0) != ALL_ROWS:
            # The usual case: one pod was placed since.
            return rows.astype(np.intp) if changed.item(0) & facet_bits else _NO_ROWS
        if count <= _FEW_ENTRIES:
            pairs = zip(rows.tolist(), changed.tolist(), strict=True)
            few = sorted({row for row, bits in pairs if bits & facet_bits})
            return self._rows_ever_used() if few[:1] == [ALL_ROWS] else np.array(few, np.intp)
        changed_rows = rows[(changed & facet_bits) != 0]
        if len(changed_rows) and changed_rows.min() == ALL_ROWS:
            return self._rows_ever_used()
        marked = np.zeros(len(self._row_generations.values), np.bool_)
        marked[changed_rows] = True
        return places_of(marked)

    def few_since(
        self, generation: int, count_max: int, facets: int = int(ALL_FACETS)
    ) -> list[tuple[int, int]] | None:
        """(row, facets) of each change after ``generation`` in one of ``facets``, oldest first.

        None if there are more changes, or a change of all rows.
        """
        count = self.generation - generation
        if count == 1:
            # The usual case: one pod was placed since.
            row, changed = self.newest
            if not changed & facets:
                return []
            return None if row == ALL_ROWS else [(row, changed)]
        if count > self._length_max:
            return None
        rows, all_changed = self._newest(count)
        if count > count_max:
            is_relevant = (all_changed & facets) != 0
            if np.count_nonzero(is_relevant) > count_max:
                return None
            rows, all_changed = rows[is_relevant], all_changed[is_relevant]
        relevant: list[tuple[int, int]] = []
        for row, changed in zip(rows.tolist(), all_changed.tolist(), strict=True):
            if changed & facets:
                if row == ALL_ROWS:
                    return None
                relevant.append((row, changed))
        return relevant

    def is_changed_since(self, generation: int, facets: int) -> bool:
        """Whether any row changed after ``generation`` in one of ``facets``."""
        for changed, last in self._last.items():  # noqa: SIM110 - asked often, and twice as fast
            if last > generation and changed & facets:
                return True
        return False

    def _newest(self, count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(row, facets) of the last ``count`` changes."""
        end = (self.generation - 1) % self._length_max + 1
        if count <= end:
            return self._rows[end - count : end], self._facets[end - count : end]
        places = np.arange(end - count, end)  # negative ones stand at the end
        return self._rows[places], self._facets[places]

    def _rows_late(self, generation: int) -> Rows:
        if self.all_rows_generation > generation:
            return self._rows_ever_used()
        return np.flatnonzero(self._row_generations.values > max(generation, 0))

    def _rows_ever_used(self) -> Rows:
        return np.flatnonzero(self._row_generations.values)


_NO_ROWS: Rows = np.empty(0, np.intp)
