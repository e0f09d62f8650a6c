"""Code that is imported at its first use."""

import json
from pathlib import Path

import pytest

from bayplan.lazy_loader import load
from bayplan.metrics import SchedulerMetrics
from tests.cli.command_line import process, write_objects
from tests.kit.manifests import node, pod


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


#: Modules that only some runs need: a real API server, endpoints, selectors of devices.
_SPECIAL = (
    "aiohttp",
    "cel_expr_python",
    "cryptography",
    "kubernetes_asyncio",
    "prometheus_client",
    "rich.progress",
    "bayplan.plugins.coscheduling",
    "bayplan.plugins.score_connectors",
    "bayplan.serving.endpoints",
)


def loaded_by(*arguments: str | Path) -> set[str]:
    """The modules that a command has loaded when it ends."""
    ended = process(*arguments, script=_LOADED)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.decode().split())


def own_count(loaded: set[str]) -> int:
    return len([name for name in loaded if name.partition(".")[0] == "bayplan"])


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_output_that_needs_no_command_loads_none(option: str) -> None:
    loaded = loaded_by(option)
    assert not set(_COSTLY) & loaded
    assert own_count(loaded) <= 8


def test_a_simulation_and_a_why_load_only_the_modules_that_they_use(tmp_path: Path) -> None:
    """A new module raises these numbers; a large rise means an import at the wrong place."""
    objects = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"))
    simulating = loaded_by("simulate", objects, "--out", tmp_path / "run")
    assert not set(_SPECIAL) & simulating
    assert own_count(simulating) <= 363
    asking = loaded_by("why", "default/a", "--run", tmp_path / "run")
    assert not set(_SPECIAL) & asking
    assert "bayplan.plugins.node_name" in simulating - asking
    assert own_count(asking) <= 270


def test_an_answer_about_a_live_cluster_loads_no_library_for_watches_and_metrics(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    user = {"name": "u", "user": {"token": "t"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    content = {"clusters": [cluster], "users": [user], "contexts": [context]}
    config.write_text(json.dumps({"kind": "Config", "current-context": "c", **content}))
    script = """
import asyncio, sys
import bayplan.cli.event_loop, bayplan.cli.why_now, bayplan.model.live_reading
from bayplan.adapters.live.client import open_client
async def main():
    async with open_client(sys.argv[1]): pass
asyncio.run(main())
sys.stderr.write("\\n".join(sys.modules))
"""
    ended = process(config, script=script)
    assert ended.returncode == 0, ended.stderr
    loaded = set(ended.stderr.decode().split())
    assert not {"aiohttp", "kubernetes_asyncio", "prometheus_client"} & loaded
    assert "httptools" in loaded


def test_a_public_name_loads_its_module_and_no_command() -> None:
    ended = process(script="import sys, bayplan; sys.stderr.write('\\n'.join(sys.modules))")
    assert own_count(set(ended.stderr.decode().split())) <= 2
    script = "import sys; from bayplan import Status; sys.stderr.write('\\n'.join(sys.modules))"
    loaded = set(process(script=script).stderr.decode().split())
    assert "bayplan.framework.status" in loaded
    assert not {"bayplan.cli", "bayplan.framework.plugin", "bayplan.plugins"} & loaded
