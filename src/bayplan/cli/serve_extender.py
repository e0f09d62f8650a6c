"""`bayplan serve-extender`: a profile's plugins as an extender of kube-scheduler."""

import ssl
import sys
from typing import Any

import click

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.options import KUBECONFIG_HELP, config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_UNREADABLE, fail, remark
from bayplan.config import SchedulerConfig
from bayplan.ports import ApiError
from bayplan.profile.resolved_config import resolve
from bayplan.serving.certificates import CertificateError, server_context
from bayplan.serving.extender_server import ExtenderServerOptions, serve_extender
from bayplan.serving.http_server import is_loopback
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX, write_log
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode

#: The exit code of a process that ends without a signal: a supervisor should restart it.
EXIT_FAILED = 1


@click.command("serve-extender")
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@click.option("--kubeconfig", metavar="FILE", help=KUBECONFIG_HELP)
@config_option()
@plugin_option()
@feature_gates_option()
@click.option(
    "--profile", metavar="NAME", help="schedulerName of the profile; required if there are several"
)
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="Address of the endpoints"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8888,
    show_default=True,
    help="Port of the endpoints",
)
@click.option(
    "--tls-cert-file",
    default="",
    metavar="FILE",
    help="Certificate of the endpoints. Default: plain HTTP",
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
@click.option("--insecure", is_flag=True, help="Answer everybody who reaches the port")
@click.option(
    "--score-max",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Highest possible score; more than 10 gives finer scores",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=click.IntRange(0, VERBOSITY_MAX),
    default=2,
    help="Verbosity. 0: changes of state; 2: also requests",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="Format of the log lines on standard error",
)
def serve_extender_command(**flags: Any) -> None:
    """Serve a profile's plugins to an unmodified kube-scheduler, as a scheduler extender.

    The extender answers the verbs filter, prioritize and preempt. It watches the cluster and writes
    nothing. With PATH…, the cluster is read from files of Kubernetes objects. docs/extenders.md
    describes the configuration of kube-scheduler.
    """
    try:
        with refusals():
            options = _options(flags)
    except CertificateError as problem:
        fail(str(problem))
    write_log(flags["verbosity"], flags["log_format"])
    try:
        with refusals():
            run_event_loop(serve_extender(options))
    except CredentialsError as problem:
        fail(str(problem), EXIT_UNREADABLE)
    except ApiError as problem:
        _end(str(problem))
    except OSError as problem:
        _end(f"--bind-address {options.address} --port {options.port}: {problem.strerror}")


def _options(flags: dict[str, Any]) -> ExtenderServerOptions:
    """Raises ConfigError, InputError, CertificateError."""
    registry = read_plugins(flags["plugins"])
    config = read_config(
        flags["config_path"], flags["feature_gates"], kubernetes=flags["kubernetes"]
    )
    resolve(config, registry)
    return ExtenderServerOptions(
        config=config,
        registry=registry,
        profile=_profile(config, flags["profile"]),
        objects=load_inputs(flags["paths"], expansion=ExpansionMode.ONCE).initial
        if flags["paths"]
        else None,
        kubeconfig=flags["kubeconfig"],
        address=flags["bind_address"],
        port=flags["port"],
        tls=_tls(flags),
        score_max=flags["score_max"],
    )


def _profile(config: SchedulerConfig, name: str | None) -> str:
    names = [profile.scheduler_name or "" for profile in config.spec.profiles]
    if name is None and len(names) == 1:
        return names[0]
    if name is None or name not in names:
        fail(f"--profile: found {name or 'nothing'}, wanted one of {', '.join(names)}")
    return name


def _tls(flags: dict[str, Any]) -> ssl.SSLContext | None:
    """None: plain HTTP. Raises CertificateError."""
    cert, key, ca = flags["tls_cert_file"], flags["tls_private_key_file"], flags["client_ca_file"]
    if bool(cert) != bool(key):
        fail("--tls-cert-file, --tls-private-key-file: found one of them, wanted both or none")
    if ca and not cert:
        fail("--client-ca-file: wanted --tls-cert-file, too: plain HTTP has no client certificates")
    if not ca and not is_loopback(flags["bind_address"]) and not flags["insecure"]:
        fail(
            f"--bind-address {flags['bind_address']}: everybody could send requests; wanted "
            f"--tls-cert-file, --tls-private-key-file and --client-ca-file, or --insecure"
        )
    if not cert:
        return None
    return server_context(cert, key, ca)


def _end(text: str) -> None:
    remark(text)
    sys.exit(EXIT_FAILED)
