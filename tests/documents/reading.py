"""What a document shows, piece by piece and in its order: code, configurations, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
_PAGES = [
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "how-to").glob("*.md"),
    *(ROOT / "examples").glob("*/README.md"),
    ROOT / "deploy" / "chart" / "README.md",
]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in _PAGES),
)

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4,}\S(?:[^\n\\]|\\\n|\\.)*$", re.MULTILINE)
_INLINE = re.compile(r"`(bayplan [a-z][^`]*)`")
_PROGRAM = re.compile(r"(\.venv/bin/|kubectl )?bayplan ")
_COMMENT = re.compile(r"\s+#\s.*$")


@dataclass(frozen=True)
class Shown:
    """``line``: where it stands. A command is one of ours, as a shell would be given it, and
    ``other`` one of another program; a console shows commands, each after ``$``, with all that
    they print."""

    sort: Literal["python", "yaml", "console", "command", "other", "mention"]
    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """Of a command, without the program."""
        return shlex.split(re.sub(r"[\[\]]", " ", self.command))[1:]

    @property
    def command(self) -> str:
        """A command without its remark and what stands before the program, with single blanks."""
        text = _PROGRAM.sub("bayplan ", _COMMENT.sub("", self.text), count=1)
        return " ".join(text.split())


def shown_in(text: str) -> list[Shown]:
    """Everything, by its place."""
    text = _with_shell_indented(text)
    found = [*_fenced(text), *_commands(_without_fences(text)), *_mentions(_without_fences(text))]
    return sorted(found, key=lambda shown: shown.line)


def commands_of(path: str) -> list[Shown]:
    """The commands in the blocks of a document, ours and those of other programs."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return [one for one in shown_in(text) if one.sort in ("command", "other")]


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
            sort = "command" if _PROGRAM.match(command.strip()) else "other"
            yield Shown(sort, command.strip(), _line(text, found.start()))


def _mentions(text: str) -> Iterator[Shown]:
    for found in _INLINE.finditer(text):
        yield Shown("mention", " ".join(found[1].split()), _line(text, found.start()))


def _without_fences(text: str) -> str:
    """With empty lines in their place, so that lines keep their numbers."""
    return _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
