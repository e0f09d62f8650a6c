"""The formats of `-o`: what each writes of an answer.

text and wide are for a reader, and a terminal prints them (`Answer.parts`). json and yaml are the
whole document; csv is its list, with one row per entry; name is the names in this list, one a line;
markdown is the text for a comment in a review; jsonpath fills in a template as kubectl does.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from bayplan.answers.csv_text import csv_text
from bayplan.answers.document import Answer, schema_of
from bayplan.answers.json_path import JsonPath
from bayplan.answers.markdown import as_markdown
from bayplan.problems import BadInputError, wrong

JSON_PATH = "jsonpath"
FORMATS = ("text", "wide", "json", "yaml", "csv", "name", "markdown", JSON_PATH)
_OPTION = "-o"


class OutputFormat(NamedTuple):
    """A format of the output."""

    name: str
    #: Of jsonpath.
    template: JsonPath | None = None

    @property
    def is_text(self) -> bool:
        """Whether the answer is printed for a reader, with a terminal's width."""
        return self.name in ("text", "wide")

    @property
    def is_wide(self) -> bool:
        return self.name == "wide"


def output_format(text: str, formats: Sequence[str] = FORMATS) -> OutputFormat:
    """What a user wrote behind ``-o``. ``formats``: those of the command. Raises BadInputError,
    which names them."""
    name, has_value, value = text.partition("=")
    if name not in formats or (has_value and name != JSON_PATH):
        raise BadInputError(str(wrong(_OPTION, text, description(formats), formats)))
    return OutputFormat(name, JsonPath(value) if name == JSON_PATH else None)


def description(formats: Sequence[str]) -> str:
    """ "text, json or jsonpath=TEMPLATE" """
    *first, last = (f"{name}=TEMPLATE" if name == JSON_PATH else name for name in formats)
    return f"{', '.join(first)} or {last}" if first else last


def written(answer: Answer, output: OutputFormat) -> bytes:
    """The answer in a format that is not text. Raises BadInputError."""
    match output.name:
        case "csv":
            return csv_text(*answer.rows()).encode()
        case "name":
            return "".join(f"{_one_line(name)}\n" for name in answer.names()).encode()
        case "markdown":
            return as_markdown(answer.parts()).encode()
        case _ if output.template is not None:
            return output.template.text(plain(answer), _field_names(type(answer))).encode()
        case _:
            return written_document(answer, output.name)


def written_document(document: Any, name: str) -> bytes:
    """Any value as JSON or as YAML."""
    if name == "json":
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(plain(document), Dumper=dumper, sort_keys=False, allow_unicode=True).encode()


def plain(document: Any) -> Any:
    """A value as JSON has it: objects, lists, texts, numbers."""
    return msgspec.json.decode(msgspec.json.encode(document))


def _one_line(name: str) -> str:
    return re.sub(r"[\r\n]", " ", name)


@lru_cache
def _field_names(answer: type[Answer]) -> Collection[str]:
    """The names of all fields of an answer and of its parts."""
    schema = schema_of(answer)
    return frozenset(_properties(schema))


def _properties(schema: Any) -> set[str]:
    names: set[str] = set()
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, Mapping):
                names.update(value)
            names |= _properties(value)
    elif isinstance(schema, list):
        for each in schema:
            names |= _properties(each)
    return names
