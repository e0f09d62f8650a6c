"""`bayplan config`: check a configuration, print its schema."""

import json

import click
import yaml

from bayplan.cli.problems import read_config, refusals
from bayplan.engine.config_schema import json_schema
from bayplan.engine.effective import effective, remarks
from bayplan.plugins.registry import default_registry


@click.group("config")
def config_group() -> None:
    """Check configurations of kubescheduler.config.k8s.io/v1."""


@config_group.command("check")
@click.argument("path", metavar="FILE")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@click.option("--feature-gates", default="", metavar="A=true,…", help="as kube-scheduler's")
def check_command(path: str, plugins: tuple[str, ...], feature_gates: str) -> None:
    """Print the effective configuration after defaults, or every error with its path."""
    with refusals():
        registry = default_registry(plugins)
        config = read_config(path, feature_gates)
        whole = effective(config, registry)
        click.echo(yaml.safe_dump(whole, sort_keys=False, width=100), nl=False)
        for remark in remarks(config, registry):
            click.echo(f"bayplan: {remark}", err=True)


@config_group.command("schema")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
def schema_command(plugins: tuple[str, ...]) -> None:
    """Print a JSON schema of the configuration, for editors."""
    with refusals():
        click.echo(json.dumps(json_schema(default_registry(plugins)), indent=2))
