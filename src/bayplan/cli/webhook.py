"""`bayplan webhook`: warn of pods and workloads that no node can hold, while they are created."""

import ssl
from typing import Any

import click

from bayplan.cli import servers
from bayplan.cli.cluster_source import kubectl_options
from bayplan.cli.epilogs import examples
from bayplan.cli.options import config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import fail
from bayplan.problems import duration_of
from bayplan.serving.certificates import server_context
from bayplan.serving.http_server import is_loopback
from bayplan.serving.log_lines import write_log
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
@servers.address_options(9443, "the endpoint")
@servers.tls_options("Certificate of the endpoint. Default: plain HTTP, on loopback only")
@servers.log_options("Verbosity. 0: changes of state and problems")
def webhook_command(**flags: Any) -> None:
    """Warn whoever creates a pod or a workload that no node can hold, and never refuse one.

    The command serves a validating admission webhook. It follows the cluster with lists and
    watches, writes nothing, and tries each new pod in memory, as its scheduler would try it next.
    The pods of a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob are judged, too.
    kubectl prints the answer as "Warning: no node can hold this pod: …". Every answer allows the
    creation. docs/webhook.md describes the configuration of the API server.
    """
    with refusals():
        options = _options(flags)
    write_log(flags["verbosity"], flags["log_format"])
    servers.run_server(
        serve_webhook(options), f"--bind-address {options.address} --port {options.port}"
    )


def _options(flags: dict[str, Any]) -> WebhookOptions:
    """Raises BadInputError."""
    config, registry = servers.server_settings(flags)
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
    seconds = duration_of("--budget", duration)
    if seconds <= 0:
        fail(f"--budget: found {duration}, wanted more than 0")
    return seconds


def _tls(flags: dict[str, Any]) -> ssl.SSLContext | None:
    """None: plain HTTP. Raises CertificateError."""
    files = servers.tls_files(flags)
    if files.certificate:
        return server_context(*files)
    if not is_loopback(flags["bind_address"]):
        fail(
            f"--bind-address {flags['bind_address']}: an API server calls webhooks with HTTPS; "
            f"wanted --tls-cert-file and --tls-private-key-file"
        )
    return None
