"""`bayplan whatif`: what would happen in a cluster if something changed."""

from collections.abc import Sequence
from typing import Any

import click

from bayplan.answers.document import Answer
from bayplan.cli.cluster_source import label_selector_of, question_refusals
from bayplan.cli.configuration import read_config
from bayplan.cli.console import counting, progress, show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.options import WholeNumber, namespace_option, selector_option, sort_option
from bayplan.cli.questions import OpenModel, namespace_of, open_model, question_options
from bayplan.cli.streams import remark
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import in_namespace
from bayplan.problems import BadInputError, optional_duration
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import WHAT_IF, Part, own_kind, read_sources
from bayplan.sim.input.what_if import (
    NewNodes,
    WhatIf,
    decode_what_if,
    parse_scaling,
)
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from bayplan.whatif.configuration import what_if_configured
from bayplan.whatif.drain_each import Action, DepartureReport, Departures, drain_each, remove_each
from bayplan.whatif.over_time import what_if_over_time


@click.command(
    "whatif",
    epilog=examples(
        "bayplan whatif cluster.yaml --drain n7 --add 3 --like n9",
        "bayplan whatif --scale deploy/web=20 -n shop     # in the cluster of kubectl",
        "bayplan whatif cluster.yaml -f change.yaml -o json",
        "bayplan whatif cluster.yaml --drain-each",
        "bayplan whatif --remove-each --topology-key topology.kubernetes.io/zone",
    ),
)
@click.option("--drain", multiple=True, metavar="NODE", help="Evict its pods, as budgets allow")
@click.option("--remove", multiple=True, metavar="NODE", help="The node is gone, with its pods")
@click.option("--cordon", multiple=True, metavar="NODE", help="No pod is placed there any more")
@click.option("--uncordon", multiple=True, metavar="NODE", help="Pods are placed there again")
@click.option("--add", type=WholeNumber(min=1), metavar="COUNT", help="Add nodes; see --like")
@click.option("--like", "template_node", metavar="NODE", help="With --add: the node to copy")
@click.option("--scale", multiple=True, metavar="KIND/NAME=REPLICAS", help="As deploy/web=20")
@namespace_option("Namespace of --scale, and of objects without one. Default: the context's")
@click.option("--apply", multiple=True, metavar="FILE", help="Objects, as for `kubectl apply`")
@click.option(
    "-f", "--filename", "documents", multiple=True, metavar="FILE", help="WhatIf documents"
)
@click.option("--shapes", multiple=True, metavar="FILE", help="Shapes whose headroom is counted")
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
@selector_option("With --drain-each and --remove-each: only nodes with these labels")
@sort_option("With --drain-each and --remove-each: order of the rows", "can-go", "name", "pods")
@click.option(
    "--until",
    metavar="DURATION",
    help="Simulate the changes up to this time, with controllers and drains that wait for budgets",
)
@click.option("--force", is_flag=True, help="Drain nodes that have pods without a controller, too")
@question_options()
def whatif_command(**options: Any) -> None:
    """Say what would happen in a cluster if something changed.

    CLUSTER is a file or a folder of objects, or the folder of a run: at its end, or at the moment
    of --at. Without it, the live cluster that kubectl would use is read. Nothing in the cluster
    changes.

    The answer has the numbers of the cluster before and after the changes, the pods that move, the
    pods that are left over and why, and the pods that a disruption budget does not let go.

    With --until, the changes are simulated: controllers create pods again, a drain tries again
    what a budget refuses, and the notes say for how long. Of a live cluster, the controllers are
    read, too; files must have them.

    --drain-each and --remove-each print one row per node or domain: whether it can go, which pods
    would be left over and why, and which pods a disruption budget does not let go. A drain looks
    at no local storage.

    The exit code is 0, whatever the answer is; 2 if the input is wrong; 3 if the cluster cannot be
    read.
    """
    files = (*options["apply"], *options["documents"], *options["shapes"])
    with question_refusals():
        applied = _parts(options["apply"])
        change = _change(options, applied)
        if change.is_empty and not (options["each"] or options["config_path"]):
            raise BadInputError("found no change, wanted one such as --drain NODE or --drain-each")
        if options["each"] and not change.is_empty:
            raise BadInputError(f"found --{options['each']}-each and other changes, wanted one")
        if options["selector"] is not None and not options["each"]:
            raise BadInputError("-l: wanted --drain-each or --remove-each with it")
        with open_model(options, *files, is_whole=change.until is not None) as opened:
            answer: Answer
            if options["each"]:
                answer = _departures(opened, options)
            elif change.is_empty:
                answer = _configured(opened, options)
            else:
                places = [part.place for part in applied]
                answer = _compared(opened, change, places, options)
    show_answer(answer, options["output"])


def _change(options: dict[str, Any], applied: Sequence[Part]) -> WhatIf:
    """The changes of the command line and of the documents. ``applied``: of --apply. Raises
    BadInputError."""
    count, template_node = options["add"], options["template_node"]
    if (count is None) != (template_node is None):
        raise BadInputError("--add and --like: wanted both: how many nodes, and the node to copy")
    optional_duration("--until", options["until"])
    namespace = namespace_of(options)
    change = WhatIf(
        until=options["until"],
        add=() if count is None else (NewNodes(template=template_node, count=count),),
        uncordon=options["uncordon"],
        apply=tuple(in_namespace(part.value, namespace) for part in applied),
        scale=tuple(parse_scaling(text, namespace) for text in options["scale"]),
        cordon=options["cordon"],
        remove=options["remove"],
        drain=options["drain"],
    )
    errors = InputErrors()
    for part in _parts(options["documents"]):
        if own_kind(part.value) != WHAT_IF:
            errors.add(part.place, "wanted a WhatIf document")
            continue
        document, problems = decode_what_if(part.value)
        errors.add_all(part.place, problems)
        change = change.joined_with(document)
    errors.raise_if_any()
    return change


def _parts(files: Sequence[str]) -> list[Part]:
    """Raises InputError."""
    errors = InputErrors()
    parts = [part for part in read_sources(files, errors) if isinstance(part, Part)]
    errors.raise_if_any()
    for line in errors.remarks:
        remark(line)
    return parts


def _compared(
    opened: OpenModel, change: WhatIf, places: Sequence[str], options: dict[str, Any]
) -> WhatIfAnswer:
    """Raises BadInputError."""
    shapes = opened.read(options["shapes"], are_shapes=True) if options["shapes"] else None
    if change.until is None:
        with progress("trying", "pods") as on_progress:
            return what_if(
                opened.model,
                change,
                opened.read,
                opened.group_kinds,
                shapes=shapes,
                places=places,
                force=options["force"],
                on_step=counting(on_progress),
            )
    with progress("simulating"):
        return what_if_over_time(
            opened.model,
            change,
            opened.config,
            opened.registry,
            seed=options["seed"],
            shapes=shapes,
            places=places,
            scheduler_name=opened.scheduler_name,
        )


def _configured(opened: OpenModel, options: dict[str, Any]) -> WhatIfAnswer:
    """Raises BadInputError."""
    shapes = opened.read(options["shapes"], are_shapes=True) if options["shapes"] else None
    config = read_config(None, options["feature_gates"], kubernetes=options["kubernetes"])
    seed = options["seed"]
    default = ClusterModel(opened.model.source, config, opened.registry, seed=seed)
    try:
        return what_if_configured(
            default, opened.model, options["config_path"], opened.group_kinds, shapes=shapes
        )
    finally:
        default.close()


def _departures(opened: OpenModel, options: dict[str, Any]) -> DepartureReport:
    which = Departures(
        topology_key=options["topology_key"],
        selector=label_selector_of(options["selector"]),
        sort_by=options["sort_by"],
    )
    noun = "domains" if which.topology_key else "nodes"
    with progress("trying", noun) as on_progress:
        if options["each"] == Action.REMOVE:
            return remove_each(opened.model, which, on_progress=on_progress)
        return drain_each(opened.model, which, force=options["force"], on_progress=on_progress)
