"""What the answers to questions about a cluster have in common: pods that wait, and tables."""

from collections.abc import Iterable, Iterator
from typing import final

from msgspec import field
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import pod_count
from bayplan.answers.document import Value
from bayplan.answers.table import BLANK, Table
from bayplan.model.unjudged import UnjudgedWorkload


@final
class PendingPodCounts(Value, frozen=True, kw_only=True):
    """The pods of the cluster that wait, when a question is asked."""

    #: The pods that were placed first, as the cluster's scheduler would place them.
    placed: int = 0
    #: The pods that do not fit and still wait; or all waiting pods if none was tried.
    waiting: int = 0
    #: Whether no waiting pod was tried.
    is_ignored: bool = field(default=False, name="ignored")

    def lines(self) -> Iterator[str]:
        """What an answer says about them."""
        if self.is_ignored and self.waiting:
            yield f"{pod_count(self.waiting)} of the cluster without a node: not tried"
            return
        if self.placed:
            yield (
                f"{pod_count(self.placed)} of the cluster without a node: placed first, as its "
                "scheduler would"
            )
        if self.waiting:
            yield f"{pod_count(self.waiting)} of the cluster without a node: no room, still waiting"


def unjudged_table(objects: Iterable[UnjudgedWorkload], heading: str) -> RenderableType:
    table = Table(heading, "why")
    for one in objects:
        table.add_row(one.object, one.message)
    return table


def note_lines(lines: Iterable[str]) -> list[RenderableType]:
    """Lines at the end of an answer."""
    shown = [Text(line) for line in lines]
    return [BLANK, *shown] if shown else []
