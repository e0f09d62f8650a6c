"""Reads the files, the folders and the standard input that the command line names, and objects
that a program has.

In a folder, the suffix decides what a file is (.yaml, .yml, .json, .csv; other files are not read).
A file that is named itself is CSV if its suffix is .csv, and YAML or JSON otherwise. Lists of
objects, as kubectl prints them, are split here, so that later steps see single objects with their
place. Files of other tools in a folder are passed over, and a remark names them
(`foreign_files.py`). The same holds for what cannot hold objects at all: a FIFO, or the broken link
with which an editor locks a file. A file of a folder that cannot be read is refused, because
nobody knows which objects the answer would lack.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

from msgspec import Struct

from bayplan.answers.amounts import counted
from bayplan.answers.names import listed_names
from bayplan.problems import wrong
from bayplan.regular_files import kind_of_entry, read_regular_file
from bayplan.sim.input import foreign_files
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.openb import is_table
from bayplan.yaml_documents import Document, DocumentError, load_documents

STANDARD_INPUT = "-"
SCENARIO = "Scenario"
WHAT_IF = "WhatIf"
OWN_KINDS = (SCENARIO, WHAT_IF)
_OWN_GROUP = "bayplan.dev"
OWN_API_VERSION = f"{_OWN_GROUP}/v1alpha1"

#: The files of a run's folder; sim/output/run_folder.py writes them.
INPUTS = "inputs"
MANIFEST = "run.json"
JOURNAL = "journal.jsonl"
SUMMARY = "summary.json"
PLACEMENTS = "placements.csv"
STATES = "states"
RUN_FILES = (MANIFEST, SUMMARY, PLACEMENTS, JOURNAL, INPUTS, STATES)

#: The suffixes of files that are read from a folder.
_BYTES_MAX = 4 << 30
_SUFFIXES = (".csv", ".json", ".yaml", ".yml")


@final
class Part(Struct, frozen=True):
    """One value of an input and its place: `a.yaml, document 2, items[3]`."""

    value: Any
    place: str
    #: From a folder: such a file may be meant for another program.
    is_from_folder: bool = False


class ObjectText(NamedTuple):
    """Objects as YAML or JSON, and the place of the text."""

    content: bytes
    place: str


#: A file, a folder, standard input ("-"), a text, or an object (or List) as plain values, with its
#: place.
InputSource: TypeAlias = str | Path | Mapping[str, Any] | ObjectText | Part


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
        elif isinstance(path, ObjectText):
            parts += _parsed(path.content, path.place, errors)
        elif path == STANDARD_INPUT:
            parts += _parsed(sys.stdin.buffer.read(), "standard input", errors)
        elif path == "":
            errors.add('""', f"found nothing, wanted a file, a folder or {STANDARD_INPUT}")
        elif Path(path).is_dir():
            parts += _Folder(Path(path), errors).parts()
        else:
            parts += _file(Path(path), errors)
    return parts


def _file(path: Path, errors: InputErrors) -> list[Part | CsvText]:
    content = _content(path, errors)
    if content is None:
        return []
    if path.suffix.lower() == ".csv":
        return [*_csv(content, str(path), errors)]
    return [*_parsed(content, str(path), errors)]


def _content(path: Path, errors: InputErrors, *, is_named: bool = True) -> bytes | None:
    """A file that is named may be a FIFO of the shell: <(kubectl get …)."""
    try:
        return path.read_bytes() if is_named else read_regular_file(path, _BYTES_MAX)
    except (OSError, ValueError) as problem:
        link = f"; it is a link to {path.readlink()}" if path.is_symlink() else ""
        _refuse_unreadable(path, problem, errors, link)
        return None


def _refuse_unreadable(
    path: Path, problem: OSError | ValueError, errors: InputErrors, detail: str = ""
) -> None:
    reason = getattr(problem, "strerror", None) or str(problem)
    errors.add(str(path), f"cannot be read: {reason}{detail}")


#: The most files of other tools that a remark names.
_NAMES_MAX = 8


@final
class _Folder:
    """Reads a folder, without the files of other tools and without what is no file."""

    def __init__(self, folder: Path, errors: InputErrors) -> None:
        self._folder = folder
        self._errors = errors
        #: What is no file, with its name and kind: "lock.yaml (a FIFO)".
        self._no_files: list[str] = []
        self._files = [*self._listed_files()]
        self._charts = {path.parent for path in self._files if path.name == foreign_files.CHART}
        #: Charts with templates that are not rendered.
        self._unrendered: dict[Path, None] = {}
        self._passed_over: list[Path] = []

    def _listed_files(self) -> Iterator[Path]:
        """The files to read, in the order of their paths, each file once.

        As for kubectl, links to folders are not followed. A file that several links lead to counts
        once: Kubernetes mounts a ConfigMap as links to files of a hidden folder.
        """
        seen: set[str] = set()
        for path in sorted(self._entries()):
            # Folders of runs may be below the folder of the input; they are no input.
            if belongs_to_run(path):
                continue
            kind, target = kind_of_entry(path), os.path.realpath(path)
            if path.is_dir():
                if not Path(target).is_relative_to(os.path.realpath(self._folder)):
                    self._no_files.append(f"{path.relative_to(self._folder)} ({kind})")
            elif path.suffix.lower() not in _SUFFIXES:
                continue
            elif kind is not None:
                self._no_files.append(f"{path.relative_to(self._folder)} ({kind})")
            elif target not in seen:
                seen.add(target)
                yield path

    def _entries(self) -> Iterator[Path]:
        """All files below the folder, and all links to folders."""

        def refuse(problem: OSError) -> None:
            _refuse_unreadable(Path(problem.filename), problem, self._errors)

        for parent, folders, files in os.walk(self._folder, onerror=refuse):
            yield from (Path(parent, name) for name in files)
            yield from (path for name in folders if (path := Path(parent, name)).is_symlink())

    def parts(self) -> list[Part | CsvText]:
        if not self._files:
            suffixes = ", ".join(_SUFFIXES)
            self._errors.add(str(self._folder), f"found no file ending in one of {suffixes}")
        parts = [part for path in self._files for part in self._file(path)]
        for chart in self._unrendered:
            message = foreign_files.template_message(str(chart))
            self._errors.add(f"{chart}/templates", f"found {message}")
        if self._files and len(self._passed_over) == len(self._files):
            self._errors.add(str(self._folder), "found no objects of Kubernetes in its files")
        self._errors.remarks += self._remarks()
        return parts

    def _file(self, path: Path) -> Iterable[Part | CsvText]:
        content = _content(path, self._errors, is_named=False)
        if content is None:
            return ()
        if path.suffix.lower() == ".csv":
            texts = [*_csv(content, str(path), self._errors)]
            if not texts or is_table(texts[0].text):
                return texts
            self._passed_over.append(path)
            return ()
        return self._parsed(path, content)

    def _parsed(self, path: Path, content: bytes) -> Iterable[Part]:
        try:
            documents = _documents(content, str(path))
        except DocumentError as problem:
            chart = next((each for each in path.parents if each in self._charts), None)
            if chart is not None and foreign_files.is_template(content, problem.line):
                self._unrendered[chart] = None
            elif foreign_files.can_hold_objects(content):
                _add_problem(problem, content, self._errors)
            else:
                self._passed_over.append(path)
            return ()
        if all(foreign_files.is_foreign(document.value, str(path)) for document in documents):
            self._passed_over.append(path)
            return ()
        return _parts(documents, self._errors, is_from_folder=True)

    def _remarks(self) -> Iterator[str]:
        names = [str(path.relative_to(self._folder)) for path in self._passed_over]
        if names:
            files = counted(len(names), "file")
            named = listed_names(names, _NAMES_MAX)
            yield f"{self._folder}: passed over {files} without objects: {named}"
        if self._no_files:
            named = listed_names(self._no_files, _NAMES_MAX)
            yield f"{self._folder}: passed over what is not a file: {named}"
        for path in self._passed_over:
            if foreign_files.is_kustomization(str(path)):
                command = foreign_files.kustomize_command(str(path.parent))
                yield f"{path} is not applied, its files are read as they are; or: {command}"


def _csv(content: bytes, place: str, errors: InputErrors) -> Iterator[CsvText]:
    try:
        yield CsvText(content.decode("utf-8-sig"), place)
    except UnicodeDecodeError:
        errors.add(place, "is not UTF-8")


def _parsed(content: bytes, source: str, errors: InputErrors) -> list[Part]:
    """The objects of a file that was named, or of standard input."""
    try:
        documents = _documents(content, source)
    except DocumentError as problem:
        _add_problem(problem, content, errors)
        return []
    if not documents:
        errors.add(source, "found nothing in it, wanted Kubernetes objects or a Scenario")
    objects: list[Document] = []
    for document in documents:
        described = foreign_files.description(document.value, source)
        if described is None:
            objects.append(document)
        else:
            errors.add(f"{source}, document {document.index}", f"found {described}")
    return _parts(objects, errors)


def _documents(content: bytes, source: str) -> list[Document]:
    """Raises DocumentError."""
    documents = load_documents(content, source)
    if any(own_kind(document.value) == SCENARIO for document in documents):
        # A patch removes with null, which means nothing anywhere else.
        documents = load_documents(content, source, keeps_nulls=True)
    return documents


def _parts(
    documents: Iterable[Document], errors: InputErrors, *, is_from_folder: bool = False
) -> list[Part]:
    parts: list[Part] = []
    for document in documents:
        place = f"{document.source}, document {document.index}"
        _take_apart(Part(document.value, place, is_from_folder), errors, parts)
    return parts


def _add_problem(problem: DocumentError, content: bytes, errors: InputErrors) -> None:
    place, message = _split_place(problem)
    if foreign_files.is_template(content, problem.line):
        message = f"found {foreign_files.template_message(None)}"
    elif text := foreign_files.text_among_objects(content):
        message = f"found {text}"
    errors.add(place, message)


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
    meta = value.get("metadata")
    if isinstance(meta, dict) and meta.get("continue"):
        errors.remarks.append(
            f"{part.place}: the list is cut off (metadata.continue), and the answer lacks its other"
            " objects; read it without a limit"
        )
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
    WHAT_IF; "" for any other value. Of another group, it is meant to be one if it has no metadata,
    which each object of an API server has."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind not in OWN_KINDS:
        return ""
    is_of_group = str(value.get("apiVersion")).partition("/")[0] == _OWN_GROUP
    return kind if is_of_group or not value.get("metadata") else ""


def belongs_to_run(path: Path) -> bool:
    """Whether a run wrote the file into its folder. Such a file is no input of another run."""
    return any(
        path.relative_to(folder).parts[0] in RUN_FILES and (folder / MANIFEST).is_file()
        for folder in path.parents
    )
