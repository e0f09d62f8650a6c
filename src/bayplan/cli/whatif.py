"""`bayplan whatif`: what would happen in a cluster if something changed."""

from typing import Any

import click

from bayplan.cli.cluster_source import ClusterSource, output_option, put_document
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import show, sign_of_life
from bayplan.cli.options import config_option, examples, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.remarks import fail
from bayplan.model.cluster_model import ClusterModel
from bayplan.whatif.drain_each import Action, DepartureReport, drain_each, remove_each


@click.command(
    "whatif",
    epilog=examples(
        "bayplan whatif cluster.yaml --drain-each",
        "bayplan whatif cluster.yaml --remove-each --topology-key topology.kubernetes.io/zone",
    ),
)
@click.argument("cluster", nargs=-1, required=True, metavar="CLUSTER…")
@click.option(
    "--drain-each", "each", flag_value="drain", help="For each node: can it be drained, as it is?"
)
@click.option(
    "--remove-each", "each", flag_value="remove", help="For each node: what if it were gone?"
)
@click.option(
    "--topology-key",
    default="",
    metavar="KEY",
    help="With --drain-each and --remove-each: domains of this label of nodes, not single nodes",
)
@click.option("--force", is_flag=True, help="Drain nodes that have pods without a controller, too")
@config_option()
@plugin_option()
@feature_gates_option()
@seed_option()
@output_option()
def whatif_command(cluster: tuple[str, ...], **options: Any) -> None:
    """Say what would happen in a cluster if something changed.

    CLUSTER is a file or a folder of objects, or the folder of a run. Nothing in the cluster
    changes.

    --drain-each and --remove-each print one row per node or domain: whether it can go, which pods
    would be left over and why, and which pods a disruption budget does not let go. A drain looks
    at no local storage.

    The exit code is 0, whatever the answer is, and 2 if the input is wrong.
    """
    if not options["each"]:
        fail("found no change, wanted --drain-each or --remove-each")
    with refusals():
        report = _departures(ClusterSource(cluster), options)
    if options["output"] == "text":
        show(report.parts())
    else:
        put_document(report, options["output"])


def _departures(source: ClusterSource, options: dict[str, Any]) -> DepartureReport:
    """Raises BadInputError."""
    registry = read_plugins(options["plugins"])
    config = read_config(options["config_path"], options["feature_gates"])
    model = ClusterModel(source.read(config, registry), config, registry, seed=options["seed"])
    try:
        with sign_of_life("trying"):
            if options["each"] == Action.REMOVE:
                return remove_each(model, options["topology_key"])
            return drain_each(model, options["topology_key"], force=options["force"])
    finally:
        model.close()
