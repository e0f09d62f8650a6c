"""`bayplan headroom`: how many more pods of some shapes fit into a cluster today?"""

import sys
from typing import Any

import click

from bayplan import durations
from bayplan.cli import questions
from bayplan.cli.cluster_source import question_refusals
from bayplan.cli.console import progress, show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.options import sort_option
from bayplan.cli.streams import EXIT_NOT_JUDGED
from bayplan.lazy_loader import load
from bayplan.problems import BadInputError, duration_of, wrong
from bayplan.whatif.headroom import Headroom, headroom


@click.command(
    "headroom",
    epilog=examples(
        "bayplan headroom -f shapes.yaml                  # in the cluster of kubectl",
        "bayplan headroom --cpu 4 --memory 16Gi --gpu 1 cluster.yaml",
        "bayplan headroom -f shapes.yaml cluster.yaml -o json",
        "bayplan headroom deployment/web -n shop          # more pods of a workload that is there",
        "bayplan headroom -f shapes.yaml --serve :9400   # for Prometheus",
    ),
)
@questions.workload_options(
    "The shapes: pods, controllers, pod groups, one shape each; may be repeated", has_replicas=False
)
@questions.limit_option("Count no further")
@click.option(
    "--serve",
    "address",
    metavar="[HOST]:PORT",
    help="Serve the counts as metrics, and count again from time to time",
)
@click.option(
    "--interval",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="With --serve: time between two counts",
)
@questions.ignore_pending_option()
@sort_option("Order of the shapes", "file", "fit", "shape")
@questions.question_options()
def headroom_command(**options: Any) -> None:
    """Count how many more pods of each shape fit into a cluster as it is now.

    Each shape is counted alone, until the first pod does not fit. A name before CLUSTER, such as
    deployment/web, is that of a workload of the cluster: its next pod is a shape. CLUSTER is a file
    or a folder of objects, or the folder of a run: at its end, or at the moment of --at. Without
    it, the live cluster that kubectl would use is read. Nothing in the cluster changes. The pods
    that wait in the cluster are placed first, as its scheduler would: by priority, then by age.

    With --serve, /metrics has bayplan_headroom_pods for each shape. A count that fails leaves the
    metrics as they are; bayplan_headroom_last_success_timestamp_seconds says how old they are.

    The exit code is 0, also if nothing fits; 2 if the input is wrong; 3 if the cluster cannot be
    read; 4 if the shapes have no pod that could be counted.
    """
    with question_refusals():
        address = options["address"]
        listening = None if address is None else _host_and_port(address)
        interval = _seconds(options["interval"])
        answer = _counted(options)
        if listening is not None:
            load("bayplan.cli.headroom_metrics:serve_headroom")(
                answer, lambda: _counted(options), listening, interval
            )
            return
    show_answer(answer, options["output"])
    if not answer.shapes:
        sys.exit(EXIT_NOT_JUDGED)


def _counted(options: dict[str, Any]) -> Headroom:
    """Raises BadInputError, UnreadableClusterError."""
    names, cluster = questions.names_and_cluster(options["cluster"])
    options = {**options, "cluster": cluster}
    opening = questions.open_model(options, *options["files"], is_whole=bool(names))
    with opening as opened, progress("counting"):
        shapes, notes = questions.workload_of(opened, options, names)
        return headroom(
            opened.model,
            opened.read(shapes, are_shapes=True),
            opened.group_kinds,
            options["limit"],
            ignores_waiting=options["ignores_waiting"],
            notes=notes,
            sort_by=options["sort_by"],
        )


def _host_and_port(address: str) -> tuple[str, int]:
    """Without a host: this machine only. Raises BadInputError."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadInputError(str(wrong("--serve", address, "HOST:PORT or :PORT")))
    return host or "127.0.0.1", int(port)


def _seconds(interval: str) -> float:
    """Raises BadInputError."""
    seconds = duration_of("--interval", interval)
    if not seconds:
        raise BadInputError(str(wrong("--interval", interval, durations.DESCRIPTION)))
    return seconds
