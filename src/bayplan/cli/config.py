"""`bayplan config`: check a configuration, print its schema."""

import json

import click
import yaml

from bayplan.cli.console import put
from bayplan.cli.lazy_group import LazyGroup
from bayplan.cli.problems import read_config, read_plugins, refusals, remark
from bayplan.engine.config_schema import json_schema
from bayplan.engine.effective import effective, remarks

#: The commands of this file; `rbac` needs to know what a real API server is asked.
_PLACES = {
    "check": ("bayplan.cli.config", "check_command"),
    "rbac": ("bayplan.cli.rbac", "rbac_command"),
    "schema": ("bayplan.cli.config", "schema_command"),
}


@click.group("config", cls=LazyGroup, places=_PLACES)
def config_group() -> None:
    """Check configurations of kubescheduler.config.k8s.io/v1."""


@click.command("check")
@click.argument("path", metavar="FILE")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@click.option("--feature-gates", default="", metavar="A=true,…", help="as kube-scheduler's")
def check_command(path: str, plugins: tuple[str, ...], feature_gates: str) -> None:
    """Print the effective configuration after defaults, or every error with its path."""
    with refusals():
        registry = read_plugins(plugins)
        config = read_config(path, feature_gates)
        whole = effective(config, registry)
        found = remarks(config, registry)
    put(yaml.safe_dump(whole, sort_keys=False, width=100, allow_unicode=True).encode())
    for line in found:
        remark(f"{config.source}: {line}")


@click.command("schema")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
def schema_command(plugins: tuple[str, ...]) -> None:
    """Print a JSON schema of the configuration, for editors."""
    with refusals():
        schema = json_schema(read_plugins(plugins))
    put(json.dumps(schema, indent=2).encode() + b"\n")
