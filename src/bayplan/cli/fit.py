"""`bayplan fit`: does a workload fit into a cluster today, and how many more of it?"""

import sys
from typing import Any

import click
from msgspec.structs import replace

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
from bayplan.cli.remarks import EXIT_FAILED, fail
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.state.pods import DEFAULT_SCHEDULER
from bayplan.whatif.additions import read_additions
from bayplan.whatif.copies import single_unit
from bayplan.whatif.fit import LIMIT, Fit, fit, max_fit


@click.command(
    "fit",
    epilog=examples(
        "bayplan fit -f job.yaml cluster.yaml",
        "bayplan fit -f web.yaml cluster.yaml --max     # how many replicas fit?",
    ),
)
@click.argument("cluster", nargs=-1, required=True, metavar="CLUSTER…")
@click.option(
    "-f",
    "--filename",
    "workload",
    multiple=True,
    required=True,
    metavar="FILE",
    help="The workload: pods, controllers, pod groups; may be repeated",
)
@click.option("--max", "counts", is_flag=True, help="Count how many fit, whatever its replicas are")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="With --max: count no further",
)
@config_option()
@plugin_option()
@feature_gates_option()
@seed_option()
@output_option()
def fit_command(cluster: tuple[str, ...], workload: tuple[str, ...], **options: Any) -> None:
    """Place a workload in memory on a cluster as it is now, and say whether it fits.

    CLUSTER is a file or a folder of objects, or the folder of a run. Nothing in the cluster
    changes. Pods that wait in the cluster already are not tried.

    The exit code is 0 if all pods fit, 1 if not all fit, and 2 if the input is wrong.
    """
    if [*cluster, *workload].count(STANDARD_INPUT) > 1:
        fail("standard input: found - twice, wanted it for the cluster or for the workload")
    with refusals():
        answer = _answer(cluster, workload, options)
    if options["output"] == "text":
        show(answer.parts())
    else:
        put_document(answer, options["output"])
    if not answer.fits:
        sys.exit(EXIT_FAILED)


def _answer(cluster: tuple[str, ...], workload: tuple[str, ...], options: dict[str, Any]) -> Fit:
    """Raises BadInputError."""
    registry = read_plugins(options["plugins"])
    config = read_config(options["config_path"], options["feature_gates"])
    kinds = group_kinds(config.spec.pod_groups.kinds)
    source = ClusterSource(cluster)
    objects = source.read(config, registry)
    additions = read_additions(
        workload,
        objects,
        {*registry.kinds, *kinds},
        DEFAULT_SCHEDULER if options["config_path"] is None else None,
    )
    unit = single_unit(additions, kinds) if options["counts"] else None
    model = ClusterModel(objects, config, registry, seed=options["seed"])
    try:
        with model.trial():
            answer = fit(model, additions)
        if unit is None:
            return answer
        with model.trial():
            count = max_fit(model, unit, options["limit"])
        return replace(answer, max=count)
    finally:
        model.close()
