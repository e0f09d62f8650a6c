"""Answers to questions about a cluster: documents that a reader sees as texts and tables."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from bayplan.pages import as_html, as_text
from bayplan.sim.output.report import BLANK, by_message, examples, new_table, pods_by_node

API_VERSION = "bayplan.dev/v1alpha1"

#: The most pods named in a line.
_NAMED_PODS_MAX = 5
_WAIT_AND_WERE = "wait in the cluster already and were"


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


def left_over_rows(messages: Mapping[str, str]) -> Iterator[RenderableType]:
    """Pods that do not fit, grouped by the scheduler's message. ``messages``: by pod."""
    table = new_table("pods", "why they do not fit", "for example")
    table.columns[0].justify = "right"
    for names in by_message(messages):
        table.add_row(f"{len(names):,}", messages[names[0]], examples(names))
    yield table


def note_lines(pending_count: int, notes: tuple[str, ...]) -> list[RenderableType]:
    lines = [*notes]
    if pending_count:
        words = "waits in the cluster already and was" if pending_count == 1 else _WAIT_AND_WERE
        lines.append(f"{pod_count(pending_count)} {words} not tried")
    return [BLANK, *map(Text, lines)] if lines else []


def pod_count(count: int) -> str:
    """ "1 pod", "2 pods"."""
    return f"{count:,} pod{'s' * (count != 1)}"


def named_pods(names: list[str]) -> str:
    listed = ", ".join(names[:_NAMED_PODS_MAX])
    more = f" and {len(names) - _NAMED_PODS_MAX:,} more" * (len(names) > _NAMED_PODS_MAX)
    return f"{pod_count(len(names))}: {listed}{more}"
