"""`bayplan run`: schedule the pods of a real cluster."""

import sys
from dataclasses import replace
from typing import Any

import click
from msgspec import structs

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.pflag import GoBool, PflagCommand, feature_gates_option
from bayplan.cli.problems import fail, read_config, read_plugins, refusals, remark
from bayplan.config import SchedulerConfig
from bayplan.engine.dry_start import dry_start
from bayplan.engine.effective import remarks
from bayplan.ports import ApiError
from bayplan.serving.certificates import CertificateError
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX, Log, write_log
from bayplan.serving.replica import LeaseLostError
from bayplan.serving.scheduler_server import ServerOptions, ServingOptions, serve

#: The process ends without having been asked to: somebody should start it again.
EXIT_FAILED = 1


class _Verbosity(click.IntRange):
    """-v 4, --v=4 and, as Go programs take it, -v=4."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str):
            value = value.removeprefix("=")
        return int(super().convert(value, param, ctx))


@click.command("run", cls=PflagCommand)
@click.option("--kubeconfig", metavar="FILE", help="left out: the pod's own, or the usual places")
@click.option("--config", "config_path", metavar="FILE", help="KubeSchedulerConfiguration v1")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help="further plugins")
@feature_gates_option()
@click.option("--seed", default=0, show_default=True, help="decides ties between nodes")
@click.option(
    "--leader-elect", type=GoBool(), metavar="BOOL", help="overrides leaderElection.leaderElect"
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="of the endpoints")
@click.option(
    "--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="0: none"
)
@click.option("--tls-cert-file", default="", metavar="FILE", help="with --tls-private-key-file")
@click.option("--tls-private-key-file", default="", metavar="FILE")
@click.option(
    "--client-ca-file", default="", metavar="FILE", help="whose client certificates say who asks"
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
@click.option("--log-format", type=click.Choice(FORMATS), default=TEXT, show_default=True)
def run_command(**given: Any) -> None:
    """Schedule pods whose schedulerName is one of the configuration's profiles.

    Runs until SIGTERM or SIGINT: then bindings under way are ended and the lease is given up. On
    loopback the endpoints speak plain HTTP to everybody; elsewhere, and with --client-ca-file, TLS,
    and the API server is asked who may read them. Send SIGUSR2 to have the caches compared with the
    API server.
    """
    if bool(given["tls_cert_file"]) != bool(given["tls_private_key_file"]):
        fail("--tls-cert-file and --tls-private-key-file: wanted both or none")
    with refusals():
        options = _options(given)
        found = remarks(options.config, options.registry)
    write_log(given["verbosity"], given["log_format"])
    for line in found:
        Log("config").info("Remark", remark=line)
    _serve(options)


def _options(given: dict[str, Any]) -> ServerOptions:
    """Raises ConfigError."""
    registry = read_plugins(given["plugins"])
    config = read_config(given["config_path"], given["feature_gates"])
    config = _with_election(config, given["leader_elect"])
    # What does not start is told now, and not when the API server has answered.
    dry_start(config, registry)
    return ServerOptions(
        config=config,
        registry=registry,
        kubeconfig=given["kubeconfig"],
        seed=given["seed"],
        serving=ServingOptions(
            address=given["bind_address"],
            port=given["secure_port"],
            cert_file=given["tls_cert_file"],
            key_file=given["tls_private_key_file"],
            client_ca_file=given["client_ca_file"],
        ),
    )


def _with_election(config: SchedulerConfig, is_wanted: bool | None) -> SchedulerConfig:
    if is_wanted is None:
        return config
    election = structs.replace(config.spec.leader_election, leader_elect=is_wanted)
    spec = structs.replace(config.spec, leader_election=election)
    return replace(config, spec=spec)


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
