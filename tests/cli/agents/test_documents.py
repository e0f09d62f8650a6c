"""The documents that agents can read."""

import tomllib
from pathlib import Path

from bayplan.cli.agents.commands import Commands
from bayplan.cli.agents.documents import documents
from bayplan.cli.warm_models import WarmModels
from bayplan.clock import RealClock
from tests.cli.command_line import answer

ROOT = Path(__file__).parents[3]


def test_schemas_are_those_of_the_command() -> None:
    for document in documents(Commands(WarmModels(RealClock(), 60.0))):
        if document.media_type == "application/schema+json":
            assert document.read() == answer("schema", document.uri.rpartition("/")[2])


def test_the_wheel_carries_each_document() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    carried = [name for name in wheel["only-include"] if name.startswith("docs/")]
    uris = [each.uri for each in documents(Commands(WarmModels(RealClock(), 60.0)))]
    names = [uri.rpartition("/")[2] for uri in uris if uri.startswith("bayplan://docs/")]
    assert carried == [f"docs/{name}" for name in sorted(names)]
