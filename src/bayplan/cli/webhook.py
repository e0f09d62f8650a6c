"""`bayplan webhook`: warn of pods and workloads that no node can hold, while they are created."""

import ssl
import sys
from typing import Any

import click

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.cluster_source import kubectl_options
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.epilogs import examples
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.options import config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_FAILED, EXIT_UNREADABLE, fail, remark
from bayplan.durations import DurationError, parse_duration
from bayplan.ports import ApiError
from bayplan.profile.dry_start import dry_start
from bayplan.serving.certificates import CertificateError, server_context
from bayplan.serving.http_server import is_loopback
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX, write_log
from bayplan.webhook.server import WebhookOptions, serve_webhook


@click.command(
    "webhook",
    epilog=examples(
        "bayplan webhook --tls-cert-file tls.crt --tls-private-key-file tls.key "
        "--bind-address 0.0.0.0",
        "bayplan webhook --kubeconfig admin.conf       # plain HTTP on loopback, to try it",
    ),
)
@kubectl_options()
@config_option("Configuration of the scheduler in question. Default: one default profile")
@plugin_option()
@feature_gates_option()
@click.option(
    "--budget",
    default="50ms",
    show_default=True,
    metavar="DURATION",
    help="Time for an answer; a later one has no warning",
)
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="Address of the endpoint"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9443,
    show_default=True,
    help="Port of the endpoint. 0: any free port",
)
@click.option(
    "--tls-cert-file",
    default="",
    metavar="FILE",
    help="Certificate of the endpoint. Default: plain HTTP, on loopback only",
)
@click.option(
    "--tls-private-key-file", default="", metavar="FILE", help="Private key of the certificate"
)
@click.option(
    "--client-ca-file",
    default="",
    metavar="FILE",
    help="Authorities of clients; other clients are refused",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=click.IntRange(0, VERBOSITY_MAX),
    default=2,
    help="Verbosity. 0: changes of state and problems",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="Format of the log lines on standard error",
)
def webhook_command(**flags: Any) -> None:
    """Warn whoever creates a pod or a workload that no node can hold, and never refuse one.

    The command serves a validating admission webhook. It follows the cluster with lists and
    watches, writes nothing, and tries each new pod in memory, as its scheduler would try it next.
    The pods of a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob are judged, too.
    kubectl prints the answer as "Warning: no node can hold this pod: …". Every answer allows the
    creation. docs/webhook.md describes the configuration of the API server.
    """
    try:
        with refusals():
            options = _options(flags)
    except CertificateError as problem:
        fail(str(problem))
    write_log(flags["verbosity"], flags["log_format"])
    try:
        with refusals():
            run_event_loop(serve_webhook(options))
    except CredentialsError as problem:
        fail(str(problem), EXIT_UNREADABLE)
    except ApiError as problem:
        _end(str(problem))
    except OSError as problem:
        _end(f"--bind-address {options.address} --port {options.port}: {problem.strerror}")


def _options(flags: dict[str, Any]) -> WebhookOptions:
    """Raises BadInputError, CertificateError."""
    registry = read_plugins(flags["plugins"])
    config = read_config(
        flags["config_path"], flags["feature_gates"], kubernetes=flags["kubernetes"]
    )
    dry_start(config, registry)
    return WebhookOptions(
        config=config,
        registry=registry,
        kubeconfig=flags["kubeconfig"],
        context_name=flags["context_name"],
        address=flags["bind_address"],
        port=flags["port"],
        tls=_tls(flags),
        budget_seconds=_budget(flags["budget"]),
    )


def _budget(duration: str) -> float:
    try:
        seconds = parse_duration(duration)
    except DurationError as problem:
        fail(f"--budget: {problem}")
    if seconds <= 0:
        fail(f"--budget: found {duration}, wanted more than 0")
    return seconds


def _tls(flags: dict[str, Any]) -> ssl.SSLContext | None:
    """None: plain HTTP. Raises CertificateError."""
    cert, key, ca = flags["tls_cert_file"], flags["tls_private_key_file"], flags["client_ca_file"]
    if bool(cert) != bool(key):
        fail("--tls-cert-file, --tls-private-key-file: found one of them, wanted both or none")
    if ca and not cert:
        fail("--client-ca-file: wanted --tls-cert-file, too: plain HTTP has no client certificates")
    if cert:
        return server_context(cert, key, ca)
    if not is_loopback(flags["bind_address"]):
        fail(
            f"--bind-address {flags['bind_address']}: an API server calls webhooks with HTTPS; "
            f"wanted --tls-cert-file and --tls-private-key-file"
        )
    return None


def _end(text: str) -> None:
    remark(text)
    sys.exit(EXIT_FAILED)
