"""`bayplan run`: schedule the pods of a real cluster."""

from pathlib import Path
from typing import Any

import click
import yaml
from msgspec import structs

from bayplan import __version__
from bayplan.cli import scheduler_flags
from bayplan.cli.options import KUBECONFIG_HELP, config_option, plugin_option, seed_option
from bayplan.cli.pflag import GoBool, GoDuration, PflagCommand, feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.servers import check_key_pair, run_server, server_settings
from bayplan.cli.streams import EXIT_FAILED, fail
from bayplan.durations import duration_seconds
from bayplan.lazy_loader import load
from bayplan.profile.effective_config import effective, remarks
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX, Log, write_log
from bayplan.serving.replica import LeaseLostError
from bayplan.serving.scheduler_server import ServerOptions, serve


class _Verbosity(click.IntRange):
    """Accepts -v 4, --v=4 and, as Go programs do, -v=4."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str):
            value = value.removeprefix("=")
        return int(super().convert(value, param, ctx))


def _print_version(ctx: click.Context, param: click.Parameter, is_set: bool | None) -> None:
    if is_set:
        click.echo(f"Bayplan {__version__}")
        ctx.exit()


@click.command("run", cls=PflagCommand, removed=scheduler_flags.REMOVED_FLAGS)
@click.option("--kubeconfig", metavar="FILE", help=KUBECONFIG_HELP)
@click.option(
    "--master", default="", metavar="URL", help="URL of the API server; overrides the kubeconfig's"
)
@config_option()
@click.option(
    "--write-config-to", metavar="FILE", help="Write the effective configuration and exit"
)
@plugin_option()
@feature_gates_option()
@seed_option("Number that breaks ties between equal nodes")
@scheduler_flags.field_options
@scheduler_flags.endpoint_options
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "unschedulable_max",
    type=GoDuration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="Time after which an unschedulable pod is tried again without an event",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=_Verbosity(0, VERBOSITY_MAX),
    default=2,
    show_default=True,
    help="Verbosity. 0: changes of state; 2: one line for each outcome; 4: each choice of a node",
)
@click.option(
    *("--logging-format", "--log-format", "log_format"),
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="Format of the log lines on standard error",
)
@click.option(
    "--version",
    type=GoBool(),
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit",
)
@click.option("--ui", "has_page", is_flag=True, help="Serve a page at /ui/ of the endpoints")
@scheduler_flags.idle_options
def run_command(**flags: Any) -> None:
    """Schedule the pods of a real cluster.

    A pod is scheduled if its schedulerName is the name of a profile in the configuration. The
    command runs until SIGTERM or SIGINT. Then it finishes bindings in progress and releases the
    lease.

    The command accepts all flags of kube-scheduler. Flags without effect are not listed here; the
    log names those that are set.

    On loopback, the endpoints use plain HTTP and everybody may read them. On other addresses, and
    with --client-ca-file, --authentication-kubeconfig or --authorization-kubeconfig, they use TLS,
    and the API server decides who may read them.

    On SIGUSR2, the command compares its caches with the API server.
    """
    check_key_pair(flags)
    with refusals():
        options = _options(flags)
        lines = [*scheduler_flags.flag_remarks(flags), *remarks(options.config, options.registry)]
        whole = effective(options.config, options.registry)
    write_log(flags["verbosity"], flags["log_format"])
    for line in lines:
        Log("config").info("Remark", remark=line)
    if flags["write_config_to"]:
        _write_config(flags["write_config_to"], whole)
    else:
        _serve(options)


def _options(flags: dict[str, Any]) -> ServerOptions:
    """Raises ConfigError."""
    config, registry = server_settings(flags, scheduler_flags.overrides(flags))
    config = structs.replace(
        config, unschedulable_max_seconds=duration_seconds(flags["unschedulable_max"])
    )
    return ServerOptions(
        config=config,
        registry=registry,
        kubeconfig=flags["kubeconfig"],
        master=flags["master"],
        seed=flags["seed"],
        serving=scheduler_flags.serving_options(flags),
        make_page=load("bayplan.ui.live_page:LivePage") if flags["has_page"] else None,
    )


def _write_config(path: str, whole: dict[str, Any]) -> None:
    """Write the configuration with its defaults, as kube-scheduler does."""
    try:
        Path(path).write_text(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True))
    except OSError as problem:
        fail(f"--write-config-to {path}: {problem.strerror}")
    Log("config").info("Wrote configuration", file=path)


def _serve(options: ServerOptions) -> None:
    """Ends the process as `run_server` does, and with 1 if the lease is lost."""
    serving = options.serving
    endpoint = f"--bind-address {serving.address} --secure-port {serving.port}"
    try:
        run_server(serve(options), endpoint)
    except LeaseLostError as problem:
        fail(f"lost the lease: {problem}", EXIT_FAILED)
