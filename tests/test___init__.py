"""The names that `import bayplan` provides."""

import ast
import importlib
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bayplan
from bayplan.comparison.comparing import compare

_STUB = Path(bayplan.__file__).with_suffix(".pyi")


def run(script: str) -> str:
    """Standard output of a script in a new process."""
    command = [sys.executable, "-c", script]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    return completed.stdout


def stub_imports() -> list[ast.ImportFrom]:
    body = ast.parse(_STUB.read_text()).body
    return [each for each in body if isinstance(each, ast.ImportFrom)]


def test_every_public_name_exists() -> None:
    assert all(hasattr(bayplan, name) for name in bayplan.__all__)
    assert bayplan.compare is compare


def test_the_stub_has_every_public_name_from_the_same_module() -> None:
    imports = [
        each for each in ast.parse(_STUB.read_text()).body if isinstance(each, ast.ImportFrom)
    ]
    in_stub = {alias.name: each.module for each in imports for alias in each.names}
    assert set(in_stub) == set(bayplan.__all__)
    for name, module in in_stub.items():
        assert module is not None
        assert getattr(importlib.import_module(module), name) is getattr(bayplan, name)


def test_the_stub_exports_each_name() -> None:
    """A type checker treats a name in a stub as private unless the import has an alias."""
    imports = [
        each for each in ast.parse(_STUB.read_text()).body if isinstance(each, ast.ImportFrom)
    ]
    assert all(alias.asname == alias.name for each in imports for alias in each.names)


def test_the_list_of_attributes_is_complete_before_any_is_used() -> None:
    script = "import bayplan; print(set(bayplan.__all__) - set(dir(bayplan)), bayplan.__version__)"
    assert run(script) == f"set() {version('bayplan')}\n"


def test_a_star_import_provides_every_public_name() -> None:
    script = "import bayplan; from bayplan import *; print(set(bayplan.__all__) - set(globals()))"
    assert run(script) == "set()\n"


def test_public_classes_and_their_values_can_be_pickled() -> None:
    script = (
        "import bayplan, pickle\n"
        "for name in bayplan.__all__:\n"
        "    value = getattr(bayplan, name)\n"
        "    if isinstance(value, type) and '[' not in repr(value):\n"
        "        assert pickle.loads(pickle.dumps(value)) is value, name\n"
        "status = bayplan.unschedulable('no room')\n"
        "print(pickle.loads(pickle.dumps(status)) == status)"
    )
    assert run(script) == "True\n"


def test_each_type_in_a_signature_of_the_contract_can_be_imported_from_bayplan() -> None:
    """Values that an author passes or receives. Arrays, API objects and base classes are not among
    them if plain Python or a protocol of `bayplan` is enough. What a scheduler fills a handle with
    concerns no author."""
    filled_in = {
        "HandleServices",
        "SnapshotNotLent",
        "UndeclaredKind",
        "undeclared",
    }
    homes = ("bayplan.framework.plugin", "bayplan.framework.types", "bayplan.framework.handle")
    public = {
        name: value
        for home in homes
        for name, value in vars(importlib.import_module(home)).items()
        if getattr(value, "__module__", "") in homes and name[0] != "_" and name != "ArgsT"
    }
    assert len(public) > 30
    absent = {n for n, each in public.items() if getattr(bayplan, n, None) is not each}
    assert absent == filled_in


@pytest.mark.parametrize(
    "name",
    [
        "Caching",
        "EVENT_ASSIGNED_POD_DELETE",
        "NodeToStatus",
        "QueuedPodInfo",
        "RowFilter",
        "RowScore",
        "StateNotFound",
        "WaitingPod",
        "as_error",
        "code_of",
        "is_success",
    ],
)
def test_names_in_the_docs_can_be_imported_from_bayplan(name: str) -> None:
    assert name in bayplan.__all__


def test_simulation_is_loaded_when_compare_is_used() -> None:
    script = (
        "import sys, bayplan\n"
        "bayplan.ScorePlugin; print('bayplan.sim' in sys.modules)\n"
        "bayplan.compare; print('bayplan.sim' in sys.modules)"
    )
    assert run(script) == "False\nTrue\n"


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'bayplan' has no attribute 'compere'"):
        getattr(bayplan, "compere")  # noqa: B009
