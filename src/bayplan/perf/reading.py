"""Reads files of scheduler_perf: folders, YAML, test cases, operations by their opcodes.

Reading is as strict as upstream: an unknown field or opcode, a value of another type and a
duplicate name are refused with the file, the path, the value and the known names. All problems of
all files are reported together.

Upstream's files rely on encoding/json, which ignores the case of field names: ``NodeTaintsPolicy``
is ``nodeTaintsPolicy``. So the members of a value get the names of the fields of its type before it
is decoded. An exact name wins; other names stay.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from msgspec import inspect

from bayplan.config.decoding import decode
from bayplan.perf.schema import NOT_SUPPORTED, OPERATIONS, NotSupported, Operation, TestCase
from bayplan.problems import Problem, joined, shown, suggestion
from bayplan.sim.input.errors import InputErrors
from bayplan.yaml_documents import DocumentError, load_documents

# ---- field names ----------------------------------------------------------------------------


def with_field_names(value: Any, kind: Any) -> Any:
    """``value`` with its members named as the fields of ``kind``, a struct or a type of structs."""
    return _renamed(value, _described(kind))


@cache
def _described(kind: Any) -> inspect.Type:
    """Made once for a type: a file of a pod would take milliseconds each time."""
    return inspect.type_info(kind)


def _renamed(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _renamed(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        for member in kind.types:
            value = _renamed(value, member)
        return value
    if isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
        return _members(value, kind)
    if isinstance(kind, inspect.DictType) and isinstance(value, Mapping):
        return {name: _renamed(part, kind.value_type) for name, part in value.items()}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        return [_renamed(part, kind.item_type) for part in value]
    return value


def _members(value: Mapping[str, Any], kind: inspect.StructType) -> dict[str, Any]:
    fields = {field.encode_name: field for field in kind.fields}
    folded = {name.casefold(): name for name in fields}
    members: dict[str, Any] = {}
    for written, part in value.items():
        name = written if written in fields else folded.get(written.casefold(), written)
        if name != written and name in value:
            name = written
        field = fields.get(name)
        members[name] = part if field is None else _renamed(part, field.type)
    return members


# ---- reading --------------------------------------------------------------------------------


#: Upstream's name of such a file. A folder may contain other YAML files.
FILE_NAME = "performance-config.yaml"


@dataclass(frozen=True, slots=True)
class ReadCase:
    """A test case with its operations and its place."""

    source: Path
    #: The path within the file, such as "[3]".
    path: str
    case: TestCase
    operations: tuple[Operation, ...]

    @property
    def place(self) -> str:
        return f"{self.source}: {self.path} ({self.case.name})"


def read_files(paths: Iterable[str], errors: InputErrors) -> list[ReadCase]:
    """The test cases of files and folders, in order. Problems are collected in the errors."""
    cases: list[ReadCase] = []
    for path in paths:
        for file in _files(Path(path), errors):
            cases += _read(file, errors)
    return cases


def _files(path: Path, errors: InputErrors) -> list[Path]:
    """The files of a path: the file itself, or of a folder all files below it with upstream's name.
    Without such files, all YAML files in the folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob(FILE_NAME)) or sorted(path.glob("*.yaml"))
    if not files:
        errors.add(str(path), f"found no {FILE_NAME} and no other .yaml in it")
    return files


def _read(file: Path, errors: InputErrors) -> Iterator[ReadCase]:
    try:
        documents = load_documents(file.read_bytes(), str(file))
    except DocumentError as problem:
        line = f"line {problem.line}: " if problem.line is not None else ""
        errors.add(str(file), f"{line}{problem.message}")
        return
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        errors.add(str(file), f"cannot be read: {reason}")
        return
    values = documents[0].value if len(documents) == 1 else None
    if not isinstance(values, list) or not values:
        errors.add(str(file), "wanted one list of test cases, as in scheduler_perf")
        return
    cases = [_case(file, index, value, errors) for index, value in enumerate(values)]
    valid_cases = [case for case in cases if case is not None]
    errors.add_all(str(file), _repeated([case.case.name for case in valid_cases], ""))
    yield from valid_cases


def _case(file: Path, index: int, value: Any, errors: InputErrors) -> ReadCase | None:
    path = f"[{index}]"
    case, problems = decode(with_field_names(value, TestCase), TestCase, path)
    if case is None or problems:
        errors.add_all(str(file), problems)
        return None
    read = ReadCase(file, path, case, tuple(_operations(case, path, problems)))
    problems += _missing(case, path)
    problems += _repeated([one.name for one in case.workloads], f"{path}.workloads")
    errors.add_all(str(file), problems)
    return None if problems else read


def _missing(case: TestCase, path: str) -> Iterator[Problem]:
    if not case.workloads:
        yield Problem(joined(path, "workloads"), "found none", "wanted at least one")
    if not case.workload_template:
        yield Problem(joined(path, "workloadTemplate"), "found no operation", "wanted some")


def _repeated(names: Sequence[str], path: str) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            index = len(names) - 1 - list(reversed(names)).index(name)
            yield Problem(f"{path}[{index}].name", f'"{name}" is given twice', "wanted once")


def _operations(case: TestCase, path: str, problems: list[Problem]) -> Iterator[Operation]:
    for index, value in enumerate(case.workload_template):
        at = f"{path}.workloadTemplate[{index}]"
        opcode = next((v for name, v in value.items() if name.casefold() == "opcode"), None)
        if opcode in NOT_SUPPORTED:
            yield NotSupported(opcode=cast(str, opcode))
        elif not isinstance(opcode, str) or opcode not in OPERATIONS:
            hint = suggestion(str(opcode), OPERATIONS) or "known are " + ", ".join(OPERATIONS)
            problems.append(Problem(f"{at}.opcode", f"found {shown(opcode)}", hint))
        else:
            kind = OPERATIONS[opcode]
            decoded, wrong = decode(with_field_names(value, kind), kind, at)
            problems += wrong
            if decoded is not None:
                yield cast(Operation, decoded)
