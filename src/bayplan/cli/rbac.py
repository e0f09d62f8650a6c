"""`bayplan config rbac`: the permissions that a scheduler needs."""

from typing import Any

import click
import yaml

from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.options import plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import put
from bayplan.lazy_loader import load
from bayplan.serving.rbac import Names, following_manifests, manifests, reading_manifests


@click.command("rbac")
@click.argument("path", metavar="FILE")
@plugin_option()
@feature_gates_option()
@click.option("--name", default="bayplan", show_default=True, help="Name of the roles")
@click.option(
    "--namespace", default="bayplan", show_default=True, help="Namespace of the scheduler"
)
@click.option(
    "--service-account",
    default="bayplan",
    show_default=True,
    help="ServiceAccount of the scheduler",
)
@click.option(
    "--read-only",
    is_flag=True,
    help="Only get, list and watch: the ClusterRole of `bayplan shadow`",
)
@click.option("--webhook", is_flag=True, help="Only list and watch: that of `bayplan webhook`")
def rbac_command(path: str, **options: Any) -> None:
    """Print the ClusterRole and Role that a scheduler with this configuration needs.

    The roles permit nothing else: they contain the kinds that the plugins look up, bindings,
    statuses, events, the lease, and reviews of who may read the endpoints.
    """
    names = Names(options["name"], options["namespace"], options["service_account"])
    with refusals():
        registry = read_plugins(options["plugins"])
        config = read_config(path, options["feature_gates"], kubernetes=options["kubernetes"])
        if options["webhook"]:
            further: tuple[str, ...] = load("bayplan.webhook.judgement:FURTHER_KINDS")
            documents = following_manifests(config, registry, names, further)
        else:
            make = reading_manifests if options["read_only"] else manifests
            documents = make(config, registry, names)
    put(yaml.safe_dump_all(documents, sort_keys=False, width=100).encode())
