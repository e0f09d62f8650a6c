"""`bayplan fit`: does a workload fit into a cluster today, and how many more of it?"""

import sys
from typing import Any

import click
from msgspec.structs import replace

from bayplan.cli.cluster_source import put_document, question_refusals
from bayplan.cli.console import show
from bayplan.cli.options import examples
from bayplan.cli.questions import (
    OpenModel,
    limit_option,
    objects_option,
    open_model,
    question_options,
)
from bayplan.cli.streams import EXIT_FAILED
from bayplan.whatif.copies import single_unit
from bayplan.whatif.fit import Fit, fit, max_fit


@click.command(
    "fit",
    epilog=examples(
        "bayplan fit -f job.yaml                          # into the cluster of kubectl",
        "bayplan fit -f job.yaml cluster.yaml             # into the cluster of a file",
        "bayplan fit -f web.yaml --max --context staging  # how many replicas fit?",
    ),
)
@objects_option("workload", "The workload: pods, controllers, pod groups; may be repeated")
@click.option("--max", "counts", is_flag=True, help="Count how many fit, whatever its replicas are")
@limit_option("With --max: count no further")
@question_options("text", "wide", "json", "yaml")
def fit_command(workload: tuple[str, ...], **options: Any) -> None:
    """Place a workload in memory on a cluster as it is now, and say whether it fits.

    CLUSTER is a file or a folder of objects, or the folder of a run; without it, the live cluster
    that kubectl would use is read. Nothing in the cluster changes. Pods that wait in the cluster
    already are not tried.

    The exit code is 0 if all pods fit, 1 if not all fit, 2 if the input is wrong, and 3 if the
    cluster cannot be read.
    """
    with question_refusals(), open_model(options, *workload) as opened:
        answer = _answer(opened, workload, options)
    if options["output"] in ("text", "wide"):
        show(answer.parts(is_wide=options["output"] == "wide"))
    else:
        put_document(answer, options["output"])
    if not answer.fits:
        sys.exit(EXIT_FAILED)


def _answer(opened: OpenModel, workload: tuple[str, ...], options: dict[str, Any]) -> Fit:
    """Raises BadInputError."""
    model, additions = opened.model, opened.read(workload)
    unit = single_unit(additions, opened.group_kinds) if options["counts"] else None
    with model.trial():
        answer = fit(model, additions)
    if unit is None:
        return answer
    with model.trial():
        return replace(answer, max=max_fit(model, unit, options["limit"]))
