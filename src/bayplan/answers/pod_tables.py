"""Tables of pods: by node, and by the message that says why they wait.

A message is kube-scheduler's sentence. A table has its short form, and the whole sentence with
``is_wide``.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.names import in_natural_order, natural_key
from bayplan.answers.reasons import short_reason, without_member
from bayplan.answers.table import Column, Table, name_columns, number_columns

#: The most pods named as examples, and in a line.
EXAMPLES_MAX = 3
_NAMED_MAX = 5
#: The most messages, and the most nodes, with a row of their own.
GROUPS_MAX = 12
_NODES_MAX = 12
#: A count of nodes, not a digit inside a name.
_NUMBER = re.compile(r"(0/)?(?<![\w.-])\d+(?![\w.-])")


def by_message(messages: Mapping[str, str]) -> list[list[str]]:
    """Pods → message as groups of pods, the largest first.

    Sentences that differ in their counts and names only are one group.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in in_natural_order(messages):
        groups[message_kind(name, messages[name])].append(name)
    return sorted(groups.values(), key=lambda pods: (-len(pods), natural_key(pods[0])))


def message_kind(name: str, message: str) -> str:
    """A sentence without its counts and its pod's name; its reasons sorted, not by count."""
    message = without_member(message)
    for own in (name, name.partition("/")[2]):
        if own in message:
            message = re.sub(rf"(?<![\w./-]){re.escape(own)}(?![\w/-])", "", message)
    return ", ".join(
        sorted(part.strip(" .") for part in re.split("[,:]", _NUMBER.sub("", message)))
    )


def messages_table(
    heading: str, why: str, messages: Mapping[str, str], *, is_wide: bool = False
) -> Table:
    """Pods → message as a table, the largest groups first. ``heading``: of the numbers of pods.
    ``why``: the heading of the messages."""
    table = Table(*number_columns(heading), why, Column("for example", "examples"))
    groups = by_message(messages)
    for pods in groups[:GROUPS_MAX]:
        message = messages[pods[0]] or "not tried yet"
        shown = message if is_wide else short_reason(message)
        table.add_row(f"{len(pods):,}", shown, examples(pods))
    further = groups[GROUPS_MAX:]
    if further:
        count = sum(map(len, further))
        reasons = counted(len(further), "further reason")
        table.add_row(f"{count:,}", reasons, examples([pods[0] for pods in further]))
    return table


def nodes_table(by_node: Mapping[str, Sequence[str]]) -> Iterator[RenderableType]:
    """A table of the nodes with most pods, and a line about the other nodes. ``by_node``: pods by
    node."""
    table = Table(*name_columns("node"), *number_columns("pods"), Column("for example", "examples"))
    ordered = sorted(by_node, key=lambda node: (-len(by_node[node]), natural_key(node)))
    for node in ordered[:_NODES_MAX]:
        table.add_row(node, f"{len(by_node[node]):,}", examples(by_node[node]))
    yield table
    further = ordered[_NODES_MAX:]
    if further:
        count = sum(len(by_node[node]) for node in further)
        yield Text(f"and {pod_count(count)} on {len(further):,} more nodes")


def examples(pods: Sequence[str]) -> str:
    """The first pods."""
    shown = ", ".join(pods[:EXAMPLES_MAX])
    return shown if len(pods) <= EXAMPLES_MAX else f"{shown}, …"


def named_pods(pods: Sequence[str]) -> str:
    """The number of pods, and the first of them."""
    listed = ", ".join(pods[:_NAMED_MAX])
    more = f" and {len(pods) - _NAMED_MAX:,} more" * (len(pods) > _NAMED_MAX)
    return f"{pod_count(len(pods))}: {listed}{more}"
