"""What `import bayplan` brings."""

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


def test_simulation_is_loaded_when_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, timeout=100)


def test_other_names_are_missing_as_anywhere() -> None:
    with pytest.raises(AttributeError, match="module 'bayplan' has no attribute 'compere'"):
        getattr(bayplan, "compere")  # noqa: B009
