"""`bayplan shadow`: compare the decisions of a cluster's scheduler with Bayplan's."""

import sys
from pathlib import Path
from typing import Any

import click

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.cluster_source import kubectl_options
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.options import (
    PORT,
    config_option,
    output_option,
    plugin_option,
    seed_option,
)
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_UNREADABLE, fail, remark
from bayplan.config import SchedulerConfig
from bayplan.ports import ApiError
from bayplan.problems import optional_duration
from bayplan.profile.dry_start import dry_start_of_server
from bayplan.shadow.following import FollowOptions, follow
from bayplan.shadow.recording import FOLDER


@click.command(
    "shadow",
    epilog=examples(
        "bayplan shadow --for 10m                          # beside the scheduler of the cluster",
        "bayplan shadow --for 1h --out DIR -o json         # with a recording for simulate",
        "bayplan shadow --for 1h --policy packing.yaml     # what would this policy have chosen?",
    ),
)
@kubectl_options()
@config_option("Configuration of the scheduler that is followed. Default: one default profile")
@click.option("--policy", "policy_path", metavar="FILE", help="Another configuration to compare")
@plugin_option()
@feature_gates_option()
@seed_option()
@click.option("--for", "duration", metavar="DURATION", help="End after, as 10m. Default: Ctrl-C")
@click.option(
    "--out", "folder", metavar="DIR", help=f"Record to DIR/{FOLDER}, for `bayplan ui`, too"
)
@click.option("--port", type=PORT, help="Serve /metrics on loopback. 0: any free port")
@output_option()
def shadow_command(**options: Any) -> None:
    """Compare each decision of a cluster's scheduler with Bayplan's, and write nothing.

    The command follows the cluster with gets, lists and watches only. When the binding of a pod
    arrives, Bayplan tries the pod on the state before it: is the pod's node one of the best nodes,
    a node with a lower score, or one that a plugin rejects? At the end, the report gives the counts
    and each disagreement.

    With --out, the command records the objects at the start, all changes and all decisions.
    `bayplan simulate DIR/recording` replays the changes, and `bayplan ui DIR` shows the decisions.

    The exit code is 0, also with disagreements; 2 if the input is wrong, and 3 if the cluster
    cannot be read.
    """
    with refusals():
        following = _options(options)
        try:
            report = run_event_loop(follow(following, remark))
        except (CredentialsError, ApiError) as problem:
            remark(str(problem))
            sys.exit(EXIT_UNREADABLE)
        except OSError as problem:
            # A write to an open file does not name the file.
            place = problem.filename or f"--out {options['folder']}"
            fail(f"{place}: {problem.strerror}")
    show_answer(report, options["output"])


def _options(options: dict[str, Any]) -> FollowOptions:
    """Raises BadInputError."""
    registry = read_plugins(options["plugins"])
    config = read_config(
        options["config_path"], options["feature_gates"], kubernetes=options["kubernetes"]
    )
    config = dry_start_of_server(config, registry)
    policy = None
    if options["policy_path"] is not None:
        policy = read_config(
            options["policy_path"], options["feature_gates"], kubernetes=options["kubernetes"]
        )
        policy = dry_start_of_server(policy, registry)
        _check_names(options["policy_path"], _names(config), _names(policy))
    return FollowOptions(
        config=config,
        registry=registry,
        kubeconfig=options["kubeconfig"],
        context_name=options["context_name"],
        policy=policy,
        policy_source=options["policy_path"] or "",
        seconds=optional_duration("--for", options["duration"]),
        folder=None if options["folder"] is None else Path(options["folder"]),
        seed=options["seed"],
        port=options["port"],
    )


def _names(config: SchedulerConfig) -> list[str]:
    return [profile.scheduler_name or "" for profile in config.spec.profiles]


def _check_names(path: str, followed: list[str], names: list[str]) -> None:
    """A policy decides about the pods of the scheduler that is followed."""
    missing = [name for name in followed if name not in names]
    if missing:
        fail(
            f"{path}: found profiles {', '.join(names)}, wanted one named "
            f"{missing[0]}: its pods are compared"
        )
