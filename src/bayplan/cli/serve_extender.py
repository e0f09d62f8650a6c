"""`bayplan serve-extender`: a profile's plugins as an extender of kube-scheduler."""

import ssl
from typing import Any

import click

from bayplan.cli import servers
from bayplan.cli.options import KUBECONFIG_HELP, WholeNumber, config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import fail
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import for_cluster
from bayplan.serving.certificates import server_context
from bayplan.serving.extender_server import ExtenderServerOptions, serve_extender
from bayplan.serving.http_server import is_loopback
from bayplan.serving.log_lines import write_log
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode


@click.command("serve-extender")
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@click.option("--kubeconfig", metavar="FILE", help=KUBECONFIG_HELP)
@config_option()
@plugin_option()
@feature_gates_option()
@click.option(
    "--profile", metavar="NAME", help="schedulerName of the profile; required if there are several"
)
@servers.address_options(8888, "the endpoints")
@servers.tls_options("Certificate of the endpoints. Default: plain HTTP")
@click.option("--insecure", is_flag=True, help="Answer everybody who reaches the port")
@click.option(
    "--score-max",
    type=WholeNumber(1, 1000),
    default=10,
    show_default=True,
    help="Highest possible score; more than 10 gives finer scores",
)
@servers.log_options("Verbosity. 0: changes of state; 2: also requests")
def serve_extender_command(**flags: Any) -> None:
    """Serve a profile's plugins to an unmodified kube-scheduler, as a scheduler extender.

    The extender answers the verbs filter, prioritize and preempt. It watches the cluster and writes
    nothing. With PATH…, the cluster is read from files of Kubernetes objects. docs/extenders.md
    describes the configuration of kube-scheduler.
    """
    with refusals():
        options = _options(flags)
    write_log(flags["verbosity"], flags["log_format"])
    servers.run_server(
        serve_extender(options), f"--bind-address {options.address} --port {options.port}"
    )


def _options(flags: dict[str, Any]) -> ExtenderServerOptions:
    """Raises BadInputError."""
    config, registry = servers.server_settings(flags)
    objects = None
    if flags["paths"]:
        workload = load_inputs(flags["paths"], expansion=ExpansionMode.ONCE)
        config, objects = for_cluster(config, workload.reported)[0], workload.initial
    return ExtenderServerOptions(
        config=config,
        registry=registry,
        profile=_profile(config, flags["profile"]),
        objects=objects,
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
    """None: plain HTTP. Raises BadInputError."""
    files = servers.tls_files(flags)
    if not files.authorities and not is_loopback(flags["bind_address"]) and not flags["insecure"]:
        fail(
            f"--bind-address {flags['bind_address']}: everybody could send requests; wanted "
            f"--tls-cert-file, --tls-private-key-file and --client-ca-file, or --insecure"
        )
    return server_context(*files) if files.certificate else None
