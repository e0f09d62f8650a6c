"""What `import bayplan` brings."""

import importlib
import subprocess
import sys

import pytest

import bayplan
from bayplan.comparison.comparing import compare

_SCRIPT = """
import sys, bayplan
assert "bayplan.sim" not in sys.modules
bayplan.compare
assert "bayplan.sim" in sys.modules
"""


def test_every_public_name_is_there() -> None:
    assert all(hasattr(bayplan, name) for name in bayplan.__all__)
    assert bayplan.compare is compare


def test_each_type_in_a_signature_of_the_contract_can_be_imported_from_bayplan() -> None:
    """Values that an author hands over or receives; arrays, API objects and bases are not among
    them where plain Python or a protocol of `bayplan` does."""
    homes = ("bayplan.framework.plugin", "bayplan.framework.types", "bayplan.framework.handle")
    public = {
        name: value
        for home in homes
        for name, value in vars(importlib.import_module(home)).items()
        if getattr(value, "__module__", "") in homes and name[0] != "_" and name != "ArgsT"
    }
    assert len(public) > 30
    assert {n for n, each in public.items() if getattr(bayplan, n, None) is not each} == set()


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
def test_what_the_docs_name_can_be_imported_from_bayplan(name: str) -> None:
    assert name in bayplan.__all__


def test_simulation_is_loaded_when_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=100)


def test_other_names_are_missing_as_anywhere() -> None:
    with pytest.raises(AttributeError, match="module 'bayplan' has no attribute 'compere'"):
        getattr(bayplan, "compere")  # noqa: B009
