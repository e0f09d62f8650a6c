"""`bayplan fit`: does a workload fit into a cluster today, and how many more of it?"""

import sys
from typing import Any

import click

from bayplan.cli import questions
from bayplan.cli.cluster_source import question_refusals
from bayplan.cli.console import progress, show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.streams import EXIT_FAILED, EXIT_NOT_JUDGED
from bayplan.whatif.fit import fit_answer


@click.command(
    "fit",
    epilog=examples(
        "bayplan fit -f job.yaml                          # into the cluster of kubectl",
        "bayplan fit --cpu 4 --memory 16Gi --gpu 1 --replicas 10",
        "bayplan fit -f job.yaml cluster.yaml             # into the cluster of a file",
        "bayplan fit -f web.yaml --max --context staging  # how many replicas fit?",
    ),
)
@questions.workload_options(
    "The workload: pods, controllers, pod groups; may be repeated", has_replicas=True
)
@click.option("--max", "counts", is_flag=True, help="Count how many fit, whatever its replicas are")
@questions.limit_option("With --max: count no further")
@questions.ignore_pending_option()
@questions.question_options()
def fit_command(**options: Any) -> None:
    """Place a workload in memory on a cluster as it is now, and say whether it fits.

    The workload is that of -f, or a Deployment of --replicas pods that --cpu, --memory, --gpu and
    --resource describe.

    CLUSTER is a file or a folder of objects, or the folder of a run: at its end, or at the moment
    of --at. Without it, the live cluster that kubectl would use is read. Nothing in the cluster
    changes. The pods that wait in the cluster are placed first, as its scheduler would: by
    priority, then by age.

    The exit code is 0 if all pods fit, 1 if not all fit, 2 if the input is wrong, 3 if the cluster
    cannot be read, and 4 if nothing was judged, or if the workload has an object whose pods are
    unknown.
    """
    opened_model = questions.open_model(options, *options["files"])
    with question_refusals(), opened_model as opened, progress("trying"):
        workload, notes = questions.workload_of(opened, options)
        answer = fit_answer(
            opened.model,
            opened.read,
            workload,
            opened.group_kinds,
            limit=options["limit"] if options["counts"] else None,
            ignores_waiting=options["ignores_waiting"],
            notes=notes,
        )
    show_answer(answer, options["output"])
    if answer.left_over:
        sys.exit(EXIT_FAILED)
    if not answer.is_judged:
        sys.exit(EXIT_NOT_JUDGED)
