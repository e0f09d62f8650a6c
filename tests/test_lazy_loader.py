"""Code that is imported at its first use."""

import pytest

from bayplan.lazy_loader import load
from bayplan.metrics import SchedulerMetrics
from tests.cli.command_line import process


def test_a_place_is_a_module_and_an_attribute() -> None:
    assert load("bayplan.metrics:SchedulerMetrics") is SchedulerMetrics


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("bayplan.metric:SchedulerMetrics", ModuleNotFoundError),
        ("bayplan.metrics:SchedulerMetric", AttributeError),
    ],
)
def test_a_misspelt_place_fails_when_it_is_used(place: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        load(place)


# ---- what a command loads -------------------------------------------------------------------


_LOADED = """
import sys
from bayplan.cli import cli
cli(sys.argv[1:], standalone_mode=False)
sys.stderr.write("\\n".join(sys.modules))
"""
#: Libraries that take as long to import as Python itself, or longer.
_COSTLY = (
    "aiohttp",
    "asyncio",
    "cel_expr_python",
    "cryptography",
    "importlib.metadata",
    "kubernetes_asyncio",
    "msgspec",
    "numpy",
    "prometheus_client",
    "rich",
    "ssl",
    "yaml",
)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_answer_that_needs_no_command_loads_none(option: str) -> None:
    loaded = process(option, script=_LOADED).stderr.decode().split()
    assert not set(_COSTLY) & set(loaded)
    assert len([name for name in loaded if name.startswith("bayplan")]) <= 9
