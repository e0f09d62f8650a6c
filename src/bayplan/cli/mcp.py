"""`bayplan mcp`: the questions of the command line as tools for an agent."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from bayplan.cli.agents.commands import Commands
from bayplan.cli.agents.tools import Workplace
from bayplan.cli.cluster_source import kubectl_options, moment_option
from bayplan.cli.epilogs import examples
from bayplan.cli.options import PORT, config_option, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import read_text, refusals
from bayplan.cli.streams import fail, remark
from bayplan.cli.warm_models import WarmModels
from bayplan.clock import RealClock
from bayplan.lazy_loader import load
from bayplan.problems import BadInputError, duration_of

_SERVER = "bayplan.cli.agents.server"


@click.command(
    "mcp",
    epilog=examples(
        "bayplan mcp                                  # the cluster that kubectl would use",
        "bayplan mcp cluster.yaml                     # files, as `bayplan capture` writes them",
        "bayplan mcp cluster.yaml --run runs/a        # and the decisions of a run",
        "bayplan mcp --http 8000 --token-file token   # streamable HTTP on loopback",
    ),
)
@click.argument("cluster", nargs=-1, metavar="[CLUSTER…]")
@moment_option()
@kubectl_options()
@config_option("Configuration of the scheduler in question. Default: one default profile")
@plugin_option()
@feature_gates_option()
@seed_option()
@click.option("--run", "run_path", metavar="DIR", help="Run whose decisions are explained")
@click.option(
    "--max-age",
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="Read a live cluster again after this time",
)
@click.option(
    "--http",
    "port",
    type=PORT,
    metavar="PORT",
    help="Serve streamable HTTP on loopback, not the standard streams. 0: any free port",
)
@click.option(
    "--token-file", metavar="FILE", help="With --http: file with the token that requests must bring"
)
def mcp_command(**options: Any) -> None:
    """Answer the questions of an agent, over the Model Context Protocol.

    The tools are why, why_all_pending, fit, headroom, whatif, drain_each, simulate, compare and,
    with --run, explain_decision. Their answers are the JSON documents of the commands, byte for
    byte; long answers have pages. The tools only read: they get and list objects of the cluster,
    and no tool reads a file that is not named here. CLUSTER is a file or a folder of objects, or
    the folder of a run: at its end, or at the moment of --at. Without it, the live cluster that
    kubectl would use is read.

    The command needs the extra: pip install 'bayplan[mcp]'. docs/agents.md describes the tools.
    """
    with refusals():
        if options["cluster"] and (options["kubeconfig"] or options["context_name"]):
            raise BadInputError("found files and --kubeconfig or --context, wanted one cluster")
        if options["at"] is not None and not options["cluster"]:
            raise BadInputError("--at: wanted the folder of a run as the cluster")
        token = _token(options)
        models = WarmModels(RealClock(), duration_of("--max-age", options["max_age"]))
    try:
        server_type = load(f"{_SERVER}:AgentServer")
    except ImportError as problem:
        fail(f"the package {problem.name} is not installed: pip install 'bayplan[mcp]'")
    with TemporaryDirectory(prefix="bayplan-mcp-") as folder:
        server = server_type(_workplace(options, Path(folder)), Commands(models))
        try:
            asyncio.run(_serve(server, options["port"], token, partial(_end_at_once, folder)))
        except OSError as problem:
            fail(f"--http {options['port']}: {problem.strerror}")
        finally:
            server.close()


async def _serve(server: Any, port: int | None, token: str, end: Callable[[], None]) -> None:
    if port is None:
        loop = asyncio.get_running_loop()
        # A cancellation would wait for the thread that reads standard input, and for a question.
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        await load(f"{_SERVER}:serve_stdio")(server)
    else:
        await load(f"{_SERVER}:serve_http")(server, port, token, lambda url: remark(f"at {url}"))


def _end_at_once(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _token(options: dict[str, Any]) -> str:
    """Raises BadInputError."""
    path = options["token_file"]
    if (options["port"] is None) != (path is None):
        raise BadInputError("--http and --token-file: wanted both or none")
    if path is None:
        return ""
    token = read_text(path).strip()
    if not token:
        raise BadInputError(f"{path}: found no token, wanted one line")
    return token


def _workplace(options: dict[str, Any], folder: Path) -> Workplace:
    cluster = [("--kubeconfig", options["kubeconfig"]), ("--context", options["context_name"])]
    cluster += [("--at", options["at"])]
    policy = [("--config", options["config_path"]), ("--feature-gates", options["feature_gates"])]
    policy += [("--plugin", path) for path in options["plugins"]]
    return Workplace(
        paths=options["cluster"],
        cluster_flags=tuple(f"{name}={value}" for name, value in cluster if value),
        policy_flags=tuple(f"{name}={value}" for name, value in policy if value),
        seed_flags=(f"--seed={options['seed']}",),
        run=options["run_path"] or "",
        folder=folder,
    )
