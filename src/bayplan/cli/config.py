"""`bayplan config`: check a configuration, draw its scores, print its schema."""

import json
import sys

import click
import yaml

from bayplan.answers.formats import OutputFormat
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.graph_drawing import as_dot, as_svg, as_text
from bayplan.cli.lazy_group import CommandEntry, LazyGroup
from bayplan.cli.options import output_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import put, remark
from bayplan.profile.config_schema import json_schema
from bayplan.profile.dry_start import dry_start
from bayplan.profile.effective_config import effective, foreign, remarks
from bayplan.profile.plugin_table import profile_graphs

#: `rbac` is in another file, because it imports the live adapter.
_COMMANDS = {
    "check": CommandEntry(
        "bayplan.cli.config:check_command",
        "Print the configuration with all defaults, or every error with its path.",
    ),
    "graph": CommandEntry(
        "bayplan.cli.config:graph_command",
        "Draw which score plugins read which others, and which ones add to the total.",
    ),
    "rbac": CommandEntry(
        "bayplan.cli.rbac:rbac_command",
        "Print the ClusterRole and Role that a scheduler with this configuration needs.",
    ),
    "schema": CommandEntry(
        "bayplan.cli.config:schema_command",
        "Print a JSON schema of the configuration, for editors.",
    ),
}

_DRAWINGS = {"text": as_text, "dot": as_dot, "svg": as_svg}

#: The configuration is valid, but not for the scheduler named by --for.
EXIT_FOREIGN = 1


@click.group("config", cls=LazyGroup, entries=_COMMANDS)
def config_group() -> None:
    """Check a configuration, draw its score graph, print its roles and its schema."""


@click.command("check")
@click.argument("path", metavar="FILE")
@plugin_option()
@feature_gates_option()
@click.option(
    "--for",
    "reader",
    type=click.Choice(("bayplan", "kube-scheduler")),
    default="bayplan",
    show_default=True,
    help="Scheduler to check for. kube-scheduler: list what it does not understand, exit code 1",
)
def check_command(
    path: str, plugins: tuple[str, ...], *, feature_gates: str, kubernetes: str, reader: str
) -> None:
    """Print the configuration with all defaults, or every error with its path."""
    with refusals():
        registry = read_plugins(plugins)
        config = read_config(path, feature_gates, kubernetes=kubernetes)
        dry_start(config, registry)
        whole = effective(config, registry)
        lines = remarks(config, registry)
    if reader != "bayplan":
        lines = foreign(config)
        put(
            "".join(
                f"{line}\n" for line in lines or ["kube-scheduler understands this configuration"]
            ).encode()
        )
        sys.exit(EXIT_FOREIGN if lines else 0)
    put(yaml.safe_dump(whole, sort_keys=False, width=100, allow_unicode=True).encode())
    for line in lines:
        remark(f"{config.source}: {line}")


@click.command("graph")
@click.argument("path", metavar="FILE")
@plugin_option()
@output_option(*_DRAWINGS)
def graph_command(path: str, plugins: tuple[str, ...], output: OutputFormat) -> None:
    """Draw which score plugins read which others, and which ones add to the total."""
    with refusals():
        registry = read_plugins(plugins)
        graphs = profile_graphs(read_config(path, ""), registry)
    put(_DRAWINGS[output.name](graphs).encode())


@click.command("schema")
@plugin_option()
def schema_command(plugins: tuple[str, ...]) -> None:
    """Print a JSON schema of the configuration, for editors."""
    with refusals():
        schema = json_schema(read_plugins(plugins))
    put(json.dumps(schema, indent=2).encode() + b"\n")
