"""`bayplan headroom`: how many more pods of some shapes fit into a cluster today?"""

from typing import Any

import click

from bayplan.cli.cluster_source import put_document
from bayplan.cli.console import show
from bayplan.cli.options import examples
from bayplan.cli.problems import refusals
from bayplan.cli.questions import open_model, question_options
from bayplan.whatif.fit import LIMIT
from bayplan.whatif.headroom import headroom


@click.command(
    "headroom",
    epilog=examples(
        "bayplan headroom -f shapes.yaml                  # in the cluster of kubectl",
        "bayplan headroom -f shapes.yaml cluster.yaml -o json",
    ),
)
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
@question_options()
def headroom_command(shapes: tuple[str, ...], **options: Any) -> None:
    """Count how many more pods of each shape fit into a cluster as it is now.

    Each shape is counted alone, until the first pod does not fit. CLUSTER is a file or a folder of
    objects, or the folder of a run; without it, the live cluster that kubectl would use is read.
    Nothing in the cluster changes.

    The exit code is 0, also if nothing fits; 2 if the input is wrong; 3 if the cluster cannot be
    read.
    """
    with refusals(), open_model(options, *shapes) as opened:
        additions = opened.read(shapes)
        answer = headroom(opened.model, additions, opened.group_kinds, options["limit"])
    if options["output"] == "text":
        show(answer.parts())
    else:
        put_document(answer, options["output"])
