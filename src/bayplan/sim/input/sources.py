"""Reads the files, the folders and the standard input that the command line names, and objects
that a program has.

In a folder, the suffix decides what a file is (.yaml, .yml, .json, .csv; other files are not read).
A file that is named itself is CSV if its suffix is .csv, and YAML or JSON otherwise. Lists of
objects, as kubectl prints them, are split here, so that later steps see single objects with their
place.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from bayplan.problems import wrong
from bayplan.sim.input.errors import InputErrors
from bayplan.yaml_documents import DocumentError, load_documents

STANDARD_INPUT = "-"
SCENARIO = "Scenario"
WHAT_IF = "WhatIf"
SCENARIO_GROUP = "bayplan.dev"

#: The files of a run's folder; sim/output/run_folder.py writes them.
INPUTS = "inputs"
MANIFEST = f"{INPUTS}/manifest.json"
JOURNAL = "journal.jsonl"
SUMMARY = "summary.json"
PLACEMENTS = "placements.csv"
STATES = "states"
RUN_FILES = (SUMMARY, PLACEMENTS, JOURNAL, INPUTS, STATES)

_SUFFIXES = (".csv", ".json", ".yaml", ".yml")


class Part(NamedTuple):
    """One value of an input and its place: `a.yaml, document 2, items[3]`."""

    value: Any
    place: str
    #: From a folder: such a file may be meant for another program.
    is_from_folder: bool = False


#: A file, a folder, standard input ("-"), or an object (or List) as plain values, with its place.
InputSource: TypeAlias = str | Path | Mapping[str, Any] | Part


class CsvText(NamedTuple):
    """The text of a CSV file."""

    text: str
    place: str


def read_sources(sources: Iterable[InputSource], errors: InputErrors) -> list[Part | CsvText]:
    """All values, in the order of the arguments and, in folders, of names."""
    parts: list[Part | CsvText] = []
    for number, path in enumerate(sources, 1):
        if isinstance(path, Part | Mapping):
            part = path if isinstance(path, Part) else Part(dict(path), f"object {number}")
            own_parts: list[Part] = []
            _take_apart(part, errors, own_parts)
            parts += own_parts
        elif path == STANDARD_INPUT:
            parts += _parsed(sys.stdin.buffer.read(), "standard input", False, errors)
        elif Path(path).is_dir():
            parts += _folder(Path(path), errors)
        else:
            parts += _file(Path(path), False, errors)
    return parts


def _folder(folder: Path, errors: InputErrors) -> Iterator[Part | CsvText]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    # Folders of runs may be below the folder of the input; they are no input.
    files = [path for path in paths if not path.is_dir() and not belongs_to_run(path)]
    if not files:
        errors.add(str(folder), f"found no file ending in one of {', '.join(_SUFFIXES)}")
    for path in files:
        yield from _file(path, True, errors)


def _file(path: Path, is_from_folder: bool, errors: InputErrors) -> Sequence[Part | CsvText]:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        errors.add(str(path), f"cannot be read: {reason}")
        return ()
    if path.suffix.lower() == ".csv":
        return tuple(_csv(content, str(path), errors))
    return _parsed(content, str(path), is_from_folder, errors)


def _csv(content: bytes, place: str, errors: InputErrors) -> Iterator[CsvText]:
    try:
        yield CsvText(content.decode("utf-8-sig"), place)
    except UnicodeDecodeError:
        errors.add(place, "is not UTF-8")


def _parsed(content: bytes, source: str, is_from_folder: bool, errors: InputErrors) -> list[Part]:
    parts: list[Part] = []
    try:
        documents = load_documents(content, source)
        if any(own_kind(document.value) == SCENARIO for document in documents):
            # A patch removes with null, which means nothing anywhere else.
            documents = load_documents(content, source, keeps_nulls=True)
    except DocumentError as problem:
        errors.add(*_split_place(problem))
        return parts
    if not documents:
        errors.add(source, "found nothing in it, wanted Kubernetes objects or a Scenario")
    for document in documents:
        place = f"{source}, document {document.index}"
        _take_apart(Part(document.value, place, is_from_folder), errors, parts)
    return parts


def _split_place(problem: DocumentError) -> tuple[str, str]:
    """The place in the form of all messages, and the message."""
    line = f", line {problem.line}" if problem.line is not None else ""
    return f"{problem.source}, document {problem.document}{line}", problem.message


def _take_apart(part: Part, errors: InputErrors, parts: list[Part]) -> None:
    """Add a part to ``parts``, or the items of a List (List, PodList, …).

    Items may have no kind of their own.
    """
    value = part.value
    if not _is_list(value):
        parts.append(part)
        return
    items: Any = value.get("items")
    if items is None:
        return
    if not isinstance(items, list):
        errors.add(part.place, wrong("items", items, "a list of objects"))
        return
    kind = value["kind"].removesuffix("List")
    of_kind = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
    for index, item in enumerate(items):
        whole = {**of_kind, **item} if isinstance(item, dict) else item
        inner = Part(whole, f"{part.place}, items[{index}]", part.is_from_folder)
        if isinstance(whole, dict) and not str(whole.get("kind")).endswith("List"):
            parts.append(inner)
        else:
            _take_apart(inner, errors, parts)


def _is_list(value: Any) -> bool:
    """Whether the value is a List: a kind that ends in "List", without a name."""
    if not isinstance(value, dict):
        return False
    kind, meta = value.get("kind"), value.get("metadata")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return False
    return not (isinstance(meta, dict) and meta.get("name"))


def own_kind(value: Any) -> str:
    """The kind of a value that is meant to be a document of ours, of any version: SCENARIO or
    WHAT_IF; "" for any other value."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in (SCENARIO, WHAT_IF):
        return ""
    return kind if str(value.get("apiVersion")).partition("/")[0] == SCENARIO_GROUP else ""


def belongs_to_run(path: Path) -> bool:
    """Whether a run wrote the file into its folder. Such a file is no input of another run."""
    return any(
        path.relative_to(folder).parts[0] in RUN_FILES and (folder / MANIFEST).is_file()
        for folder in path.parents
    )
