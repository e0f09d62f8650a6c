"""`bayplan headroom`: how many more pods of some shapes fit into a cluster today?"""

from typing import Any

import click

from bayplan.cli.cluster_source import (
    ClusterSource,
    output_option,
    put_document,
)
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import show
from bayplan.cli.options import config_option, examples, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import STANDARD_INPUT, refusals
from bayplan.cli.remarks import fail
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.state.pods import DEFAULT_SCHEDULER
from bayplan.whatif.additions import read_additions
from bayplan.whatif.fit import LIMIT
from bayplan.whatif.headroom import Headroom, headroom


@click.command(
    "headroom",
    epilog=examples(
        "bayplan headroom -f shapes.yaml cluster.yaml",
        "bayplan headroom -f shapes.yaml cluster.yaml -o json",
    ),
)
@click.argument("cluster", nargs=-1, required=True, metavar="CLUSTER…")
@click.option(
    "-f",
    "--filename",
    "shapes",
    multiple=True,
    required=True,
    metavar="FILE",
    help="The shapes: pods, controllers, pod groups, one shape each; may be repeated",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="Count no further",
)
@config_option()
@plugin_option()
@feature_gates_option()
@seed_option()
@output_option()
def headroom_command(cluster: tuple[str, ...], shapes: tuple[str, ...], **options: Any) -> None:
    """Count how many more pods of each shape fit into a cluster as it is now.

    Each shape is counted alone, until the first pod does not fit. CLUSTER is a file or a folder of
    objects, or the folder of a run. Nothing in the cluster changes.

    The exit code is 0, also if nothing fits; 2 if the input is wrong.
    """
    if [*cluster, *shapes].count(STANDARD_INPUT) > 1:
        fail("standard input: found - twice, wanted it for the cluster or for the shapes")
    with refusals():
        source = ClusterSource(cluster)
        answer = _answer(source, shapes, options)
    if options["output"] == "text":
        show(answer.parts())
    else:
        put_document(answer, options["output"])


def _answer(source: ClusterSource, shapes: tuple[str, ...], options: dict[str, Any]) -> Headroom:
    """Raises BadInputError."""
    registry = read_plugins(options["plugins"])
    config = read_config(options["config_path"], options["feature_gates"])
    kinds = group_kinds(config.spec.pod_groups.kinds)
    objects = source.read(config, registry)
    scheduler_name = DEFAULT_SCHEDULER if options["config_path"] is None else None
    additions = read_additions(shapes, objects, {*registry.kinds, *kinds}, scheduler_name)
    model = ClusterModel(objects, config, registry, seed=options["seed"])
    try:
        return headroom(model, additions, kinds, options["limit"])
    finally:
        model.close()
