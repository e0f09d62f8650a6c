"""What a document shows, piece by piece and in its order: code, configurations, commands."""

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
class Shown:
    """``line``: where it stands. A command is one of ours, as a shell would be given it; a console
    shows some, each after ``$``, with all that they print."""

    sort: Literal["python", "yaml", "console", "command", "mention"]
    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """Of a command, without the program."""
        text = re.sub(r"[\[\]]", " ", self.text)
        return shlex.split(text, comments=True)[1:]


def shown_in(text: str) -> list[Shown]:
    """Everything, by its place."""
    text = _with_shell_indented(text)
    found = [*_fenced(text), *_commands(_without_fences(text)), *_mentions(_without_fences(text))]
    return sorted(found, key=lambda shown: shown.line)


def make_targets(text: str) -> list[str]:
    text = _with_shell_indented(text)
    lines = [line.split() for line in re.findall(r"^ {4,}(make .*)$", text, re.MULTILINE)]
    return [words[1] for words in lines]


def _with_shell_indented(text: str) -> str:
    """With blocks of a shell as if they were indented; lines keep their numbers."""

    def indented(found: re.Match[str]) -> str:
        if found[1] not in ("sh", "bash"):
            return found[0]
        return "\n" + "".join(f"    {line}\n" for line in found[2].splitlines())

    return _FENCED.sub(indented, text)


def _fenced(text: str) -> Iterator[Shown]:
    for found in _FENCED.finditer(text):
        language, code = found.groups()
        if language == "python" or language == "yaml" or language == "console":
            yield Shown(language, code, _line(text, found.start()))


def _commands(text: str) -> Iterator[Shown]:
    for found in _INDENTED.finditer(text):
        for command in found[0].replace("\\\n", " ").split("&&"):
            if _PROGRAM.match(command.strip()):
                yield Shown("command", command.strip(), _line(text, found.start()))


def _mentions(text: str) -> Iterator[Shown]:
    for found in _INLINE.finditer(text):
        yield Shown("mention", " ".join(found[1].split()), _line(text, found.start()))


def _without_fences(text: str) -> str:
    """With empty lines in their place, so that lines keep their numbers."""
    return _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
