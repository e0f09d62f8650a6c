"""Amounts that are valid, and that are probably a mistake: memory of 512m, 500 cores.

``512m`` is 0.512 bytes, and ``512`` are 512 bytes: the author meant ``512Mi``. ``cpu: 500`` are 500
cores: the author meant ``500m``. The API server accepts them (it warns of a part of a byte), and
so does a simulation. A remark names the first place of each such amount.
"""

from collections.abc import Iterator
from typing import Any, final

from bayplan.api.objects import NODE, POD
from bayplan.api.quantity import QuantityError, parse
from bayplan.objects.keys import ObjectKey
from bayplan.problems import joined
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.errors import LINES_MAX
from bayplan.sim.input.workload import Content

#: No container can run with less memory, and none needs less disk.
_BYTES_MIN = 1_000_000
_BYTES = ("memory", "ephemeral-storage")
#: A plain number of cores from here on is probably meant in thousandths, unless a node has so many.
_CORES_MIN = 100


@final
class LikelyMistakes:
    """Collects such amounts while an input is read."""

    def __init__(self) -> None:
        #: By kind, path and amount: the first place, and the number of objects.
        self._amounts: dict[tuple[str, str, str], tuple[str, int]] = {}
        #: Plain numbers of cores among them.
        self._cores: dict[tuple[str, str, str], float] = {}
        self._cores_of_nodes = 0.0

    def see(self, key: ObjectKey, content: Content, place: str) -> bool:
        """Returns whether the object has such amounts.

        ``content``: valid; ``place``: its file and document.
        """
        if key.kind == NODE:
            self._see_node(content)
            return False
        amounts = list(_amounts(key.kind, content))
        for path, resource, amount in amounts:
            mark = (key.kind, path, str(amount))
            first, count = self._amounts.get(mark, (f"{place} ({key})", 0))
            self._amounts[mark] = first, count + 1
            if resource == "cpu":
                self._cores[mark] = float(amount)
        return bool(amounts)

    def _see_node(self, content: Content) -> None:
        status = content.get("status") or {}
        amount = (status.get("allocatable") or status.get("capacity") or {}).get("cpu")
        if amount is not None:
            self._cores_of_nodes = max(self._cores_of_nodes, float(parse(amount)))

    def notes(self) -> list[str]:
        """The remarks about likely mistakes, for the reader of the result."""
        notes: list[str] = []
        for mark, (first, count) in self._amounts.items():
            _, path, amount = mark
            cores = self._cores.get(mark)
            if cores is not None and cores <= self._cores_of_nodes:
                continue
            more = f" and {count - 1:,} more" if count > 1 else ""
            notes.append(f"{first}{more}: {path}: {_explained(amount, is_cpu=cores is not None)}")
        hidden = len(notes) - LINES_MAX
        more = [f"and {hidden:,} more amounts that are probably a mistake"] if hidden > 0 else []
        return notes[:LINES_MAX] + more


def _explained(amount: str, *, is_cpu: bool) -> str:
    if is_cpu:
        return f'{amount} are {amount} cores; was "{amount}m" meant?'
    number = amount.removesuffix("m")
    if number != amount:
        return f'{amount} is a part of a byte (m: thousandths); was "{number}Mi" meant?'
    meant = f'; was "{amount}Mi" meant?' if amount.isdigit() else ""
    return f"{amount} is less than a megabyte{meant}"


def _amounts(kind: str, content: Content) -> Iterator[tuple[str, str, Any]]:
    """(path, resource, amount) of each such amount of a pod or of a controller's template."""
    if kind == POD:
        yield from _of_spec(content.get("spec") or {}, "spec")
    elif kind in CONTROLLERS:
        template = (content.get("spec") or {}).get("template") or {}
        yield from _of_spec(template.get("spec") or {}, "spec.template.spec")


def _of_spec(spec: Content, path: str) -> Iterator[tuple[str, str, Any]]:
    yield from _of_resources(spec.get("resources"), joined(path, "resources"))
    for member in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(member) or ()):
            place = f"{joined(path, member)}[{number}].resources"
            yield from _of_resources(container.get("resources"), place)


def _of_resources(resources: Content | None, path: str) -> Iterator[tuple[str, str, Any]]:
    for member in ("requests", "limits"):
        for resource, amount in ((resources or {}).get(member) or {}).items():
            if resource == "cpu":
                is_likely = str(amount).isdigit() and int(amount) >= _CORES_MIN
            else:
                is_likely = resource in _BYTES and _is_tiny(amount)
            if is_likely:
                yield f"{path}.{member}.{resource}", resource, amount


def _is_tiny(amount: Any) -> bool:
    try:
        return 0 < parse(amount) < _BYTES_MIN
    except QuantityError:
        return False
