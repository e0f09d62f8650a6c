"""`bayplan run`: schedule the pods of a real cluster."""

import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import yaml

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.pflag import GoBool, GoDuration, PflagCommand, feature_gates_option
from bayplan.cli.problems import fail, read_config, read_plugins, refusals, remark
from bayplan.cli.scheduler_flags import (
    endpoint_options,
    field_options,
    flag_remarks,
    idle_options,
    overrides,
    serving_options,
)
from bayplan.durations import duration_seconds
from bayplan.ports import ApiError
from bayplan.profile.dry_start import dry_start
from bayplan.profile.effective_config import effective, remarks
from bayplan.serving.certificates import CertificateError
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX, Log, write_log
from bayplan.serving.replica import LeaseLostError
from bayplan.serving.scheduler_server import ServerOptions, serve

#: The process ends without having been asked to: somebody should start it again.
EXIT_FAILED = 1


class _Verbosity(click.IntRange):
    """-v 4, --v=4 and, as Go programs take it, -v=4."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str):
            value = value.removeprefix("=")
        return int(super().convert(value, param, ctx))


def _print_version(ctx: click.Context, param: click.Parameter, is_asked: bool | None) -> None:
    if is_asked:
        click.echo(f"Bayplan {version('bayplan')}")
        ctx.exit()


@click.command("run", cls=PflagCommand)
@click.option("--kubeconfig", metavar="FILE", help="left out: the pod's own, or the usual places")
@click.option("--master", default="", metavar="URL", help="of the API server, over --kubeconfig's")
@click.option("--config", "config_path", metavar="FILE", help="KubeSchedulerConfiguration v1")
@click.option("--write-config-to", metavar="FILE", help="write the configuration there and exit")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@feature_gates_option()
@click.option("--seed", default=0, show_default=True, help="decides ties between nodes")
@field_options
@endpoint_options
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "unschedulable_max",
    type=GoDuration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="after which a pod is tried again without any event",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=_Verbosity(0, VERBOSITY_MAX),
    default=2,
    show_default=True,
    help="0: changes of state; 2: one line for each outcome; 4: each choice",
)
@click.option(
    *("--logging-format", "--log-format", "log_format"),
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="of the lines on standard error",
)
@click.option(
    "--version",
    type=GoBool(),
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="print the version and exit",
)
@idle_options
def run_command(**given: Any) -> None:
    """Schedule pods whose schedulerName is one of the configuration's profiles.

    Runs until SIGTERM or SIGINT: then bindings under way are ended and the lease is given up. Takes
    kube-scheduler's flags; those that have no effect here are not listed, and accepted with a
    remark. On loopback the endpoints speak plain HTTP to everybody; elsewhere, and with
    --client-ca-file, --authentication-kubeconfig or --authorization-kubeconfig, TLS, and the API
    server is asked who may read them. Send SIGUSR2 to have the caches compared with the API server.
    """
    if bool(given["tls_cert_file"]) != bool(given["tls_private_key_file"]):
        fail("--tls-cert-file and --tls-private-key-file: wanted both or none")
    with refusals():
        options = _options(given)
        found = [*flag_remarks(given), *remarks(options.config, options.registry)]
        whole = effective(options.config, options.registry)
    write_log(given["verbosity"], given["log_format"])
    for line in found:
        Log("config").info("Remark", remark=line)
    if given["write_config_to"]:
        _write_config(given["write_config_to"], whole)
    else:
        _serve(options)


def _options(given: dict[str, Any]) -> ServerOptions:
    """Raises ConfigError."""
    registry = read_plugins(given["plugins"])
    config = read_config(given["config_path"], given["feature_gates"], overrides(given))
    config = replace(config, unschedulable_max_seconds=duration_seconds(given["unschedulable_max"]))
    # What does not start is told now, and not when the API server has answered.
    dry_start(config, registry)
    return ServerOptions(
        config=config,
        registry=registry,
        kubeconfig=given["kubeconfig"],
        master=given["master"],
        seed=given["seed"],
        serving=serving_options(given),
    )


def _write_config(path: str, whole: dict[str, Any]) -> None:
    """As kube-scheduler: the configuration with its defaults, and the end."""
    try:
        Path(path).write_text(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True))
    except OSError as problem:
        fail(f"--write-config-to {path}: {problem.strerror}")
    Log("config").info("Wrote configuration", file=path)


def _serve(options: ServerOptions) -> None:
    """Ends the process with 2 for what must be mended first, 1 for what may pass."""
    try:
        with refusals():
            run_event_loop(serve(options))
    except (CredentialsError, CertificateError) as problem:
        fail(str(problem))
    except ApiError as problem:
        _end(str(problem))
    except LeaseLostError as problem:
        _end(f"lost the lease: {problem}")
    except OSError as problem:
        serving = options.serving
        _end(f"--bind-address {serving.address} --secure-port {serving.port}: {problem.strerror}")


def _end(text: str) -> None:
    remark(text)
    sys.exit(EXIT_FAILED)
