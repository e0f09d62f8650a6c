"""`bayplan upgrade`: what an upgrade of Kubernetes changes about the scheduling of a cluster."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from bayplan.cli.cluster_source import question_refusals
from bayplan.cli.console import show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.pflag import kubernetes_option
from bayplan.cli.problems import read_text
from bayplan.cli.questions import open_model, question_options
from bayplan.cli.streams import EXIT_FAILED
from bayplan.config.kubernetes_versions import requested_version
from bayplan.config.loading import in_version
from bayplan.problems import BadInputError, ConfigError
from bayplan.whatif.upgrade.upgrade import upgrade
from bayplan.yaml_places import place_in


@click.command(
    "upgrade",
    epilog=examples(
        "bayplan upgrade --to 1.37                          # the cluster of kubectl",
        "bayplan upgrade cluster.yaml --from 1.35 --to 1.37 --config scheduler.yaml",
        "bayplan upgrade cluster.yaml --to 1.37 -o markdown # for a review",
    ),
)
@click.option("--to", "target", required=True, metavar="1.37", help="Version after the upgrade")
@question_options(
    kubernetes_option("--from", "Version before the upgrade. Default: that of the cluster")
)
def upgrade_command(target: str, **options: Any) -> None:
    """Say what an upgrade of Kubernetes changes about the scheduling of a cluster.

    First the configuration is read as the new version does: what it refuses has its line, and what
    to write instead. Then each pod of the cluster is decided as kube-scheduler of both versions
    does: pods that wait as they are, and pods that run as if they were created again. The answer
    names the pods that other nodes would get, that would wait, or that would begin to fit, by the
    changes of Kubernetes that are the causes.

    The exit code is 0 if no pod would be placed differently, 1 if some would, or if the new version
    refuses the configuration, 2 if the input is wrong, and 3 if the cluster cannot be read.
    """
    with question_refusals():
        after_version = requested_version(target, "--to")
        if after_version is None:
            raise BadInputError("--to: found nothing, wanted a version such as 1.37")
        with ExitStack() as stack:
            with _refused_before(options["config_path"]):
                opened = stack.enter_context(open_model(options))
            model = opened.model
            before = model.config
            after = in_version(before, after_version)
            if before.gates.version is after_version:
                raise BadInputError(f"--to: found {target}, which is the version before, too")
            answer = upgrade(model.source, before, after, opened.registry, seed=options["seed"])
    show_answer(answer, options["output"])
    if answer.verdict != "same":
        sys.exit(EXIT_FAILED)


@contextmanager
def _refused_before(path: str | None) -> Iterator[None]:
    """Say of a configuration that is refused already before the upgrade where its errors stand."""
    try:
        yield
    except ConfigError as error:
        if path is None or error.source != path:
            raise
        text = read_text(path)
        lines = [f"{_source(path, text, problem.path)}: {problem}" for problem in error.problems]
        wanted = "wanted the configuration that runs today"
        advice = f"{wanted}: the version before the upgrade refuses this one"
        raise BadInputError("\n".join([*lines, f"{path}: {advice}"])) from None


def _source(path: str, text: str, of_problem: str) -> str:
    """The file with line and column, if the text has the problem's path."""
    place = place_in(text, of_problem)
    return path if place is None else f"{path}:{place.line}:{place.column}"
