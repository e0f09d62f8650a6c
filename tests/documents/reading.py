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
class Excerpt:
    """``line``: its line in the document. A command is a line for a shell that runs `bayplan`,
    ``other`` a line that runs another program. A console has commands, each after ``$``, with all
    their output."""

    kind: Literal["python", "yaml", "console", "command", "other", "mention"]
    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """The words of a command without the program."""
        return shlex.split(re.sub(r"[\[\]]", " ", self.command))[1:]

    @property
    def command(self) -> str:
        """A command without its remark and what stands before the program, with single blanks."""
        text = _PROGRAM.sub("bayplan ", _COMMENT.sub("", self.text), count=1)
        return " ".join(text.split())


def excerpts_of(text: str) -> list[Excerpt]:
    """All excerpts, ordered by line."""
    text = _with_shell_indented(text)
    outside = _without_fences(text)
    excerpts = [*_fenced(text), *_commands(outside), *_mentions(outside)]
    return sorted(excerpts, key=lambda excerpt: excerpt.line)


def commands_of(path: str) -> list[Excerpt]:
    """The command lines in the blocks of a document, of `bayplan` and of other programs."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return [excerpt for excerpt in excerpts_of(text) if excerpt.kind in ("command", "other")]


def make_targets(text: str) -> list[str]:
    text = _with_shell_indented(text)
    lines = [line.split() for line in re.findall(r"^ {4,}(make .*)$", text, re.MULTILINE)]
    return [words[1] for words in lines]


def _with_shell_indented(text: str) -> str:
    """With blocks of a shell as if they were indented; lines keep their numbers."""

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
            kind = "command" if _PROGRAM.match(command.strip()) else "other"
            yield Excerpt(kind, command.strip(), _line(text, match.start()))


def _mentions(text: str) -> Iterator[Excerpt]:
    for match in _INLINE.finditer(text):
        yield Excerpt("mention", " ".join(match[1].split()), _line(text, match.start()))


def _without_fences(text: str) -> str:
    """With empty lines in their place, so that lines keep their numbers."""
    return _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
