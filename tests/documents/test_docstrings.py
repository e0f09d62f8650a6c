"""What docstrings and comments of the source name exists: members of classes, and files."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.documents.reading import ROOT

_SOURCE = ROOT / "src" / "bayplan"
#: In the prose of a file alone: code has no backticks.
_MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)")
#: A file with its folder; a name without one may be an example.
_FILE = re.compile(r"(?<![\w/.{<])((?:[a-z_]+/)+[a-z_]+\.(?:py|md))(?!\w)")


@cache
def _texts() -> dict[Path, str]:
    return {file: file.read_text("utf-8") for file in sorted(_SOURCE.rglob("*.py"))}


def _members_of(owner: ast.ClassDef) -> Iterator[str]:
    """Methods, fields, and attributes that a method assigns."""
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _classes() -> dict[str, set[str]]:
    """Class → its members and those of its bases. Classes of one name share an entry."""
    members: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for text in _texts().values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(_members_of(node))
                words = re.findall(r"\w+", " ".join(map(ast.unparse, node.bases)))
                bases.setdefault(node.name, set()).update(words)
    for _ in range(5):
        for name, own in members.items():
            own.update(*(members.get(base, ()) for base in bases[name]))
    return members


def test_members_that_docstrings_name_exist() -> None:
    members = _classes()
    named = [
        (f"{file.relative_to(ROOT)}: {owner}.{member}", member in members[owner])
        for file, text in _texts().items()
        for owner, member in _MEMBER.findall(text)
        if owner in members
    ]
    assert len(named) > 100
    assert [place for place, exists in named if not exists] == []


def test_files_that_docstrings_name_exist() -> None:
    paths = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.py"), *_texts()]
    files = {f"/{path.relative_to(ROOT).as_posix()}" for path in paths}
    named = {
        (file.relative_to(ROOT).as_posix(), name)
        for file, text in _texts().items()
        for name in _FILE.findall(text)
    }
    assert len(named) > 30
    assert {
        (file, name) for file, name in named if not any(one.endswith(f"/{name}") for one in files)
    } == set()
