"""What the commands that serve until a signal share: certificates, log lines, and how they end."""

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import click

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.options import PORT, WholeNumber
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_FAILED, EXIT_UNREADABLE, fail
from bayplan.config import SchedulerConfig
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError
from bayplan.profile.dry_start import dry_start_of_server
from bayplan.serving.log_lines import FORMATS, TEXT, VERBOSITY_MAX

F = TypeVar("F", bound=Callable[..., Any])


def tls_options(certificate_help: str) -> Callable[[F], F]:
    """The files of an endpoint with TLS; `tls_files` reads them."""
    certificate = click.option("--tls-cert-file", default="", metavar="FILE", help=certificate_help)
    key = click.option(
        "--tls-private-key-file", default="", metavar="FILE", help="Private key of the certificate"
    )
    authorities = click.option(
        "--client-ca-file",
        default="",
        metavar="FILE",
        help="Authorities of clients; other clients are refused",
    )
    return lambda command: certificate(key(authorities(command)))


def log_options(verbosity_help: str) -> Callable[[F], F]:
    """What the log lines on standard error are."""
    verbosity = click.option(
        "-v",
        "--v",
        "verbosity",
        type=WholeNumber(0, VERBOSITY_MAX),
        default=2,
        help=verbosity_help,
    )
    log_format = click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        default=TEXT,
        show_default=True,
        help="Format of the log lines on standard error",
    )
    return lambda command: verbosity(log_format(command))


class TlsFiles(NamedTuple):
    """The paths of an endpoint with TLS; "": there is no such file."""

    certificate: str
    private_key: str
    #: Authorities of clients.
    authorities: str


def check_key_pair(flags: dict[str, Any]) -> None:
    """End the command if there is a certificate without its key, or a key without a certificate."""
    if bool(flags["tls_cert_file"]) != bool(flags["tls_private_key_file"]):
        fail("--tls-cert-file, --tls-private-key-file: found one of them, wanted both or none")


def tls_files(flags: dict[str, Any]) -> TlsFiles:
    """The files of `tls_options`. Ends the command if they do not go together."""
    check_key_pair(flags)
    if flags["client_ca_file"] and not flags["tls_cert_file"]:
        fail("--client-ca-file: wanted --tls-cert-file, too: plain HTTP has no client certificates")
    return TlsFiles(flags["tls_cert_file"], flags["tls_private_key_file"], flags["client_ca_file"])


def address_options(port: int, endpoints: str) -> Callable[[F], F]:
    """Where a server listens; by default on loopback. ``endpoints``: the words of the help."""
    address = click.option(
        "--bind-address", default="127.0.0.1", show_default=True, help=f"Address of {endpoints}"
    )
    number = click.option(
        "--port",
        type=PORT,
        default=port,
        show_default=True,
        help=f"Port of {endpoints}. 0: any free port",
    )
    return lambda command: address(number(command))


def server_settings(
    flags: dict[str, Any], overrides: Mapping[str, Any] = MappingProxyType({})
) -> tuple[SchedulerConfig, Registry]:
    """The configuration and the plugins of a server, which were started once: errors are reported
    before the API server answers. ``overrides``: see `read_config`. Raises BadInputError."""
    registry = read_plugins(flags["plugins"])
    config = read_config(
        flags["config_path"], flags["feature_gates"], overrides, kubernetes=flags["kubernetes"]
    )
    return dry_start_of_server(config, registry), registry


def run_server(work: Coroutine[Any, Any, None], endpoint: str) -> None:
    """Run a server until a signal. ``endpoint``: the flags that name its address.

    Ends the process with 2 for an error that the user must correct, 3 if no kubeconfig says how to
    read a cluster, 1 for an error that may pass: a supervisor should restart it.
    """
    try:
        with refusals():
            run_event_loop(work)
    except CredentialsError as problem:
        fail(str(problem), EXIT_UNREADABLE)
    except ApiError as problem:
        fail(str(problem), EXIT_FAILED)
    except OSError as problem:
        fail(f"{endpoint}: {problem.strerror}", EXIT_FAILED)
