"""How many more pods of some shapes fit into a cluster today.

A shape is a pod, a controller's template or a pod group. Each shape is counted alone, in a trial of
its own, so the shapes do not compete with one another.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, final

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import short_text
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import natural_key
from bayplan.answers.reasons import short_reason
from bayplan.answers.table import BLANK, Table, number_columns
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.model.additions import Additions
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import RunMoment
from bayplan.model.unjudged import UnjudgedWorkload
from bayplan.whatif.copies import Unit, units_of
from bayplan.whatif.fit import LIMIT, MaxFit, check_schedulers, max_fit
from bayplan.whatif.placing import placed_first
from bayplan.whatif.text import PendingPodCounts, note_lines, unjudged_table

#: See `headroom`.
SortKey = Literal["file", "fit", "shape"]


@final
class ShapeHeadroom(Value, frozen=True, kw_only=True):
    """One shape."""

    #: A short name. It is the name of the workload, with its namespace if the name alone is not
    #: unique.
    shape: str
    #: What one pod, or all members of a group together, request.
    requests: dict[str, int]
    max: MaxFit

    @property
    def count_text(self) -> str:
        """The count; "+" stands for "or more"."""
        return f"{self.max.count:,}{'+' * self.max.is_limit}"


@final
class Headroom(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan headroom`."""

    kind: Literal["Headroom"] = "Headroom"
    field_of_list: ClassVar[str] = "shapes"
    #: The name of the cluster, for messages.
    cluster: str
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    shapes: tuple[ShapeHeadroom, ...]
    #: The objects among the shapes that have no pod which could be counted.
    unjudged: tuple[UnjudgedWorkload, ...] = ()
    #: The pods of the cluster that wait.
    waiting: PendingPodCounts = PendingPodCounts()
    notes: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        resources = list(dict.fromkeys(name for one in self.shapes for name in one.requests))
        # Without this column, room that other pods hold would look like free room.
        evicts = ("evicted pods",) if any(one.max.victim_count for one in self.shapes) else ()
        table = Table("shape", *number_columns("fit", *evicts, *resources), "the next does not fit")
        for one in self.shapes:
            requests = (
                short_text(name, one.requests[name]) if name in one.requests else ""
                for name in resources
            )
            message = one.max.message
            shown = message if is_wide else short_reason(message)
            victims = [f"{one.max.victim_count:,}"] * len(evicts)
            table.add_row(one.shape, one.count_text, *victims, *requests, shown)
        head = f"how many more pods fit into {self.cluster}"
        if not self.shapes:
            head = f"nothing was counted: the shapes have no pod to place into {self.cluster}"
        parts: list[RenderableType] = [Text(head, style="bold")]
        parts += [BLANK, table] if self.shapes else []
        if self.unjudged:
            parts += [BLANK, unjudged_table(self.unjudged, "not counted")]
        return [*parts, *note_lines([*self.waiting.lines(), *self.notes])]

    def rows(self) -> Rows:
        """The shapes."""
        headings = ("shape", "count", "is_limit", "message", "victims")
        shapes = (
            (
                one.shape,
                one.max.count,
                one.max.is_limit,
                one.max.message,
                one.max.victim_count,
            )
            for one in self.shapes
        )
        return Rows(headings, shapes)


def headroom(
    model: ClusterModel,
    additions: Additions,
    kinds: PodGroupKinds,
    limit: int = LIMIT,
    *,
    ignores_waiting: bool = False,
    notes: Iterable[str] = (),
    sort_by: SortKey = "file",
) -> Headroom:
    """How many more pods of each shape fit. The model stays as it is.

    ``kinds``: the kinds of pod groups. ``ignores_waiting``: whether to leave out the pods of the
    cluster that wait. ``notes``: the notes about the shapes. ``sort_by``: "file" keeps the order of
    the file; with "fit" the shapes with the least room come first. Raises BadInputError for a pod
    of a scheduler that the configuration does not have.
    """
    check_schedulers(model, additions.pods)
    units = units_of(additions, kinds)
    names = shape_names(units)
    with model.trial():
        waiting = placed_first(model, is_ignored=ignores_waiting)
        pairs = zip(units, names, strict=True)
        shapes = [_shape(model, unit, name, limit) for unit, name in pairs]
    shapes.sort(key=_SORTS[sort_by])
    return Headroom(
        cluster=model.source.source,
        moment=model.source.moment,
        shapes=tuple(shapes),
        unjudged=additions.unjudged,
        waiting=waiting,
        notes=(*notes, *model.source.notes, *additions.notes),
    )


#: The sort keys. A sort keeps the order of equal values.
_SORTS: Mapping[SortKey, Callable[[ShapeHeadroom], Any]] = {
    "file": lambda _one: 0,
    "fit": lambda one: one.max.count,
    "shape": lambda one: natural_key(one.shape),
}


def _shape(model: ClusterModel, unit: Unit, name: str, limit: int) -> ShapeHeadroom:
    with model.trial():
        count = max_fit(model, unit, limit)
    return ShapeHeadroom(shape=name, requests=unit.requests(), max=count)


def shape_names(units: Sequence[Unit]) -> list[str]:
    """A short name for each shape. It is the name of the workload, or the long name if two
    workloads have the same name."""
    short = [unit.name.rpartition("/")[2] for unit in units]
    counts = Counter(short)
    pairs = zip(units, short, strict=True)
    return [name if counts[name] == 1 else unit.name for unit, name in pairs]
