"""The excerpts of a document in their order: code, configurations, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
_PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
DOCUMENTS = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in _PAGES))

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4,}\S(?:[^\n\\]|\\\n|\\.)*$", re.MULTILINE)
_INLINE = re.compile(r"`(bayplan [a-z][^`]*)`")
_PROGRAM = re.compile(r"(\.venv/bin/)?bayplan ")


@dataclass(frozen=True)
class Excerpt:
    """``line``: its line in the document. A command is a line for a shell that runs `bayplan`. A
    console has commands, each after ``$``, with all their output."""

    kind: Literal["python", "yaml", "console", "command", "mention"]
    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """The words of a command without the program."""
        text = re.sub(r"[\[\]]", " ", self.text)
        return shlex.split(text, comments=True)[1:]


def excerpts_of(text: str) -> list[Excerpt]:
    """All excerpts, ordered by line."""
    text = _with_shell_indented(text)
    excerpts = [
        *_fenced(text),
        *_commands(_without_fences(text)),
        *_mentions(_without_fences(text)),
    ]
    return sorted(excerpts, key=lambda excerpt: excerpt.line)


def make_targets(text: str) -> list[str]:
    text = _with_shell_indented(text)
    lines = [line.split() for line in re.findall(r"^ {4,}(make .*)$", text, re.MULTILINE)]
    return [words[1] for words in lines]


def _with_shell_indented(text: str) -> str:
    """The text with shell blocks as indented blocks; lines keep their numbers."""

    def indented(match: re.Match[str]) -> str:
        if match[1] not in ("sh", "bash"):
            return match[0]
        return "\n" + "".join(f"    {line}\n" for line in match[2].splitlines())

    return _FENCED.sub(indented, text)


def _fenced(text: str) -> Iterator[Excerpt]:
    for match in _FENCED.finditer(text):
        language, code = match.groups()
        if language == "python" or language == "yaml" or language == "console":
            yield Excerpt(language, code, _line(text, match.start()))


def _commands(text: str) -> Iterator[Excerpt]:
    for match in _INDENTED.finditer(text):
        for command in match[0].replace("\\\n", " ").split("&&"):
            if _PROGRAM.match(command.strip()):
                yield Excerpt("command", command.strip(), _line(text, match.start()))


def _mentions(text: str) -> Iterator[Excerpt]:
    for match in _INLINE.finditer(text):
        yield Excerpt("mention", " ".join(match[1].split()), _line(text, match.start()))


def _without_fences(text: str) -> str:
    """The text with empty lines in place of fenced blocks; lines keep their numbers."""
    return _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
