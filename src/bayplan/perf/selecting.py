"""Which workloads of the files are run: by their names and by upstream's label filter."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """``names``: patterns of which one occurs in "TestCase/Workload"; none: all names.

    ``label_filter``: upstream's -perf-scheduling-label-filter: labels that must be there, those
    with "-" (or "!") in front must not, separated by commas.
    """

    names: Sequence[re.Pattern[str]] = ()
    label_filter: str = ""

    def takes(self, name: str, labels: Iterable[str]) -> bool:
        """``labels``: those of the test case and of the workload."""
        if self.names and not any(pattern.search(name) for pattern in self.names):
            return False
        present = set(labels)
        return all(_holds(part.strip(), present) for part in self.label_filter.split(","))


def _holds(part: str, present: set[str]) -> bool:
    if not part:
        return True
    if part[0] in "-!":
        return part[1:] not in present
    return part.removeprefix("+") in present
