"""The chart's README: its table of values, made from the comments in values.yaml."""

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from tests.deploy.rendering import CHART

VALUES = CHART / "values.yaml"
README = CHART / "README.md"
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"
_MARK = "# -- "


class Value(NamedTuple):
    """One row. A mapping with a comment is one value; without a comment, it is read key by key."""

    path: str
    default: str
    #: "": the value has no comment in values.yaml.
    description: str


def values(text: str) -> list[Value]:
    document = yaml.compose(text)
    assert isinstance(document, yaml.MappingNode)
    return [*_values(document, "", text.splitlines())]


def _values(mapping: yaml.MappingNode, prefix: str, lines: list[str]) -> Iterator[Value]:
    for key, node in mapping.value:
        path = f"{prefix}{key.value}"
        description = _comment_above(lines, key.start_mark.line)
        if isinstance(node, yaml.MappingNode) and node.value and not description:
            yield from _values(node, f"{path}.", lines)
        else:
            default = yaml.safe_load(yaml.serialize(node))
            yield Value(path, _flow(default), description)


def _comment_above(lines: list[str], number: int) -> str:
    """The comment that ends above this line and begins with the mark."""
    texts: list[str] = []
    for line in reversed(lines[:number]):
        text = line.strip()
        if text.startswith(_MARK):
            return " ".join([text.removeprefix(_MARK), *reversed(texts)])
        if not text.startswith("# "):
            break
        texts.append(text.removeprefix("# "))
    return ""


def _flow(default: object) -> str:
    text = yaml.safe_dump(default, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def table(text: str) -> str:
    rows = ["| value | default | meaning |", "| --- | --- | --- |"]
    for value in values(text):
        meaning = value.description.replace("|", "\\|")
        rows.append(f"| `{value.path}` | `{value.default}` | {meaning} |")
    return "\n".join(rows) + "\n"


def with_table(readme: str, text: str) -> str:
    """The README with the table of these values between its two marks."""
    head, tail = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{table(text)}\n{END}{tail.split(END)[1]}"
