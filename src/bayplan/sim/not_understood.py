"""What of an input nobody reads: kinds that are passed over, and fields that a kind does not have.

A typo in a field is no error to a server that does not validate strictly: the pod is placed as if
the line were not there. Therefore both are named, and `--strict` refuses them. One mistake that
many objects share is one line: its path, how many objects have it, and the first of them.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import final

from bayplan.adapters.api_versions import in_stored_version
from bayplan.adapters.object_names import Content, ObjectKey, key_of, kind_of
from bayplan.api.device_objects import RESOURCE_CLAIM_TEMPLATE
from bayplan.api.field_tables import unknown_fields
from bayplan.api.objects import decoded_kinds
from bayplan.sim.controller_kinds import CONTROLLERS
from bayplan.sim.refusals import LINES_MAX, Complaints

#: The kinds that a simulation reads, whatever plugins there are.
READ_KINDS = frozenset((*decoded_kinds(), *CONTROLLERS, RESOURCE_CLAIM_TEMPLATE))


class _Mistake:
    """A field that a kind does not have."""

    def __init__(self, first: str, hint: str) -> None:
        self.first = first
        self.hint = hint
        self.objects: set[ObjectKey] = set()


@final
class NotUnderstood:
    """Collects it while an input is read."""

    def __init__(self, read_kinds: Collection[str] = ()) -> None:
        """``read_kinds``: those that plugins read."""
        self._read_kinds = READ_KINDS.union(read_kinds)
        #: Kind as "batch/v1 CronJob" → its objects.
        self.passed_over: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        #: By kind and path.
        self._mistakes: dict[tuple[str, str], _Mistake] = {}

    def see(self, content: Content, place: str) -> None:
        """``place``: file, document and object."""
        kind = kind_of(content)
        if kind not in self._read_kinds and kind_of(in_stored_version(content)) not in READ_KINDS:
            self.passed_over[kind] += 1
            self._first.setdefault(kind, place)
            return
        for path, hint in unknown_fields(kind, content):
            mistake = self._mistakes.setdefault((kind, path), _Mistake(place, hint))
            mistake.objects.add(key_of(content))

    def refuse(self, complaints: Complaints) -> None:
        """Complain about all of it."""
        for kind, count in self._kinds():
            more = f" and {count - 1:,} more" if count > 1 else ""
            wanted = "a kind that a simulation or a plugin reads"
            complaints.add(f"{self._first[kind]}{more}", f"found kind {kind}, wanted {wanted}")
        for place, problem in self._fields():
            complaints.add(place, problem)

    def notes(self) -> list[str]:
        """What the reader should know."""
        notes: list[str] = []
        if self.passed_over:
            named = ", ".join(f"{count:,} {kind}" for kind, count in self._kinds())
            notes.append(f"passed over, since nothing here reads them: {named}")
        lines = [f"{place}: {problem}" for place, problem in self._fields()]
        notes += lines[:LINES_MAX]
        if len(lines) > LINES_MAX:
            notes.append(f"and {len(lines) - LINES_MAX:,} more fields that no kind has")
        return notes

    def _kinds(self) -> list[tuple[str, int]]:
        return sorted(self.passed_over.items(), key=lambda one: (-one[1], one[0]))

    def _fields(self) -> Iterator[tuple[str, str]]:
        """(place, problem)"""
        for (kind, path), mistake in self._mistakes.items():
            short, count = kind.rpartition(" ")[2], len(mistake.objects)
            more = f" and {count - 1:,} more" if count > 1 else ""
            hint = f"; {mistake.hint}" if mistake.hint else ""
            yield f"{mistake.first}{more}", f"{path} is no field of a {short}{hint}"
