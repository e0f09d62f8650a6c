"""The base of all answers: documents with an apiVersion, a kind and a schema.

An answer is made once. A command prints it, a page shows a part of it, Python returns it, and all
of them have the same fields. ``parts`` is what a reader sees; ``rows`` is the list of the answer,
one entry a row; ``field_of_list`` is the field with that list, of which a page is taken.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast, dataclass_transform

import msgspec
from msgspec import Struct, field, structs
from rich.console import RenderableType

from bayplan.answers.pages import as_html, as_text

API_VERSION = "bayplan.dev/v1alpha1"
#: The most entries of each further list in a page of an answer.
FURTHER_MAX = 500


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an answer: an object whose fields have names in camel case."""


class Rows(NamedTuple):
    """The list of an answer as plain values, for programs. The first column has the names."""

    headings: Sequence[str]
    rows: Iterable[Sequence[Any]]


class Answer(Value, frozen=True, kw_only=True):
    """An answer. ``str()`` gives its text, and a notebook shows it."""

    api_version: Literal["bayplan.dev/v1alpha1"] = API_VERSION
    kind: str = ""

    #: The name of the field whose entries are the list of the answer; "": it has no list.
    field_of_list: ClassVar[str] = ""

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """What a reader sees, from top to bottom: lines and tables. ``is_wide``: with whole
        sentences, all examples and all manifests."""
        raise NotImplementedError

    def rows(self) -> Rows:
        """The list of the answer."""
        raise NotImplementedError

    def names(self) -> Iterator[str]:
        """The names of the list, each once: as other commands take them."""
        yield from dict.fromkeys(str(row[0]) for row in self.rows().rows)

    def page(self, offset: int, limit: int, *, further_max: int = FURTHER_MAX) -> tuple[Self, int]:
        """The answer with a part of its list, and the length of the whole list. Further lists of
        the answer end after ``further_max`` entries, so that a page is bounded."""
        offset = max(offset, 0)
        parts = {
            name: _part(value, offset, limit)
            if name == self.field_of_list
            else _part(value, 0, further_max)
            for name, value in structs.asdict(self).items()
        }
        entries: Any = getattr(self, self.field_of_list) if self.field_of_list else ()
        return structs.replace(self, **parts), len(entries)

    def __str__(self) -> str:
        return as_text(self.parts())

    def _repr_html_(self) -> str:
        return as_html(self.parts())


def _part(value: Any, offset: int, limit: int) -> Any:
    """Entries of a list, or of an object; lists in an object are bounded, too."""
    if isinstance(value, dict):
        items = islice(cast("dict[str, Any]", value).items(), offset, offset + limit)
        return {name: _part(each, 0, limit) for name, each in items}
    if isinstance(value, tuple | list):
        return cast("Sequence[Any]", value)[offset : offset + limit]
    return value


def schema_of(answer: type[Answer]) -> dict[str, Any]:
    """The schema of a kind of answers (JSON Schema, draft 2020-12)."""
    (whole,), parts = msgspec.json.schema_components([answer], ref_template="#/$defs/{name}")
    root = parts[answer.__name__]
    kind = root["properties"]["kind"]["default"]
    root["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, "title": kind, **whole, "$defs": parts}
