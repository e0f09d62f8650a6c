"""Answers to questions about a cluster: documents that a reader sees as texts and tables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import final

from msgspec import Struct, field
from rich.console import RenderableType
from rich.text import Text

from bayplan.model.unjudged import UnjudgedWorkload
from bayplan.pages import as_html, as_text
from bayplan.sim.output.report import BLANK, by_message, examples, new_table, pods_by_node

API_VERSION = "bayplan.dev/v1alpha1"

#: The most pods named in a line.
_NAMED_PODS_MAX = 5


@final
class WaitingPods(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods of the cluster that wait, when a question is asked."""

    #: Pods that were placed first, as the cluster's scheduler would.
    placed: int = 0
    #: Pods that do not fit and wait on; or, where they were left out, all that wait.
    waiting: int = 0
    #: Whether none of them was tried.
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


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer: ``str()`` gives its text, a notebook shows it, msgspec writes the document."""

    def parts(self) -> list[RenderableType]:
        """What a reader sees, from top to bottom."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self.parts())

    def _repr_html_(self) -> str:
        return as_html(self.parts())


def node_rows(by_node: Mapping[str, list[str]]) -> Iterator[RenderableType]:
    table = new_table("node", "pods", "for example")
    table.columns[1].justify = "right"
    return pods_by_node(table, by_node)


def left_over_rows(messages: Mapping[str, str], heading: str = "pods") -> Iterator[RenderableType]:
    """Pods that do not fit, grouped by the scheduler's message. ``messages``: by pod."""
    table = new_table(heading, "why they do not fit", "for example")
    table.columns[0].justify = "right"
    for names in by_message(messages):
        table.add_row(f"{len(names):,}", messages[names[0]], examples(names))
    yield table


def unjudged_table(objects: Iterable[UnjudgedWorkload], heading: str) -> RenderableType:
    table = new_table(heading, "why")
    for one in objects:
        table.add_row(one.object, one.message)
    return table


def note_lines(lines: Iterable[str]) -> list[RenderableType]:
    """Lines at the end of an answer."""
    shown = [Text(line) for line in lines]
    return [BLANK, *shown] if shown else []


def pod_count(count: int) -> str:
    """ "1 pod", "2 pods"."""
    return f"{count:,} pod{'s' * (count != 1)}"


def named_pods(names: list[str]) -> str:
    listed = ", ".join(names[:_NAMED_PODS_MAX])
    more = f" and {len(names) - _NAMED_PODS_MAX:,} more" * (len(names) > _NAMED_PODS_MAX)
    return f"{pod_count(len(names))}: {listed}{more}"
