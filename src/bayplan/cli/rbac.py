"""`bayplan config rbac`: the permissions that a scheduler needs."""

import click
import yaml

from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.options import plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import put
from bayplan.serving.rbac import Names, manifests, reading_manifests


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
def rbac_command(
    path: str, plugins: tuple[str, ...], feature_gates: str, read_only: bool, **names: str
) -> None:
    """Print the ClusterRole and Role that a scheduler with this configuration needs.

    The roles permit nothing else: they contain the kinds that the plugins look up, bindings,
    statuses, events, the lease, and reviews of who may read the endpoints.
    """
    with refusals():
        registry = read_plugins(plugins)
        make = reading_manifests if read_only else manifests
        documents = make(read_config(path, feature_gates), registry, Names(**names))
    put(yaml.safe_dump_all(documents, sort_keys=False, width=100).encode())
