"""`bayplan ui`: show a run or a cluster in a browser."""

import asyncio
import os
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from bayplan import rng
from bayplan.answers.amounts import counted
from bayplan.cli.cluster_source import ClusterSource, kubectl_options, question_refusals
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.epilogs import examples
from bayplan.cli.options import PORT, allow_plugins_option, config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import STANDARD_INPUT, read_text
from bayplan.cli.streams import EXIT_FAILED, fail, remark
from bayplan.clock import rfc3339, wall_seconds
from bayplan.config import SchedulerConfig
from bayplan.plugins.registry import Registry
from bayplan.serving.http_server import is_loopback
from bayplan.shadow.folder import is_shadow
from bayplan.sim.output.run_folder import RunFolder, is_run
from bayplan.ui.cluster_objects import objects_of_picture
from bayplan.ui.server import UiOptions, serve_ui
from bayplan.ui.shadow_pages import ShadowSubject
from bayplan.ui.subjects import ClusterSubject, RunSubject, Subject, subject_of_files
from bayplan.ui.work import WorkPage, WorkSubject, work_page

#: What is being loaded or computed has this long to end, after an interrupt.
_END_SECONDS = 1.0
#: Two runs are shown side by side.
_RUNS_MAX = 2


@click.command(
    "ui",
    epilog=examples(
        "bayplan simulate cluster.yaml workload.yaml --out runs/a",
        "bayplan ui runs/a",
        "bayplan ui runs/a runs/b                    # what differs",
        "bayplan ui                                  # the cluster that kubectl would use",
        "bayplan ui --context prod",
        "bayplan ui cluster.yaml --port 8080",
        "bayplan ui DIR                              # of bayplan shadow --out DIR",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@kubectl_options()
@config_option("For a cluster: KubeSchedulerConfiguration. A run has its own")
@plugin_option()
@allow_plugins_option()
@feature_gates_option()
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address of the page")
@click.option(
    "--port",
    type=PORT,
    default=0,
    help="Port of the page. Default: one that is free",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="File with a token that each request must bring. Default: on loopback none, on other "
    "addresses a new one",
)
def ui_command(paths: tuple[str, ...], **flags: Any) -> None:
    """Show a run or a cluster in a browser.

    PATH is a folder that `bayplan simulate --out` wrote, two of them to see what differs, files of
    Kubernetes objects, or what `bayplan shadow --out` wrote. Without PATH, the command reads the
    cluster that kubectl would use, once: the page shows its objects at that moment, and nothing in
    the cluster changes. The command prints the address of the page and serves the page until it is
    interrupted. The exit code is 3 if the cluster cannot be read.

    A run may have plugins, which are code. They are executed only with --allow-plugins, or with
    --plugin FILE.py in place of the copy in the folder; without, what needs them is left out.

    On loopback, everybody on this machine may read the page. On other addresses, the URL that the
    command prints has a token; the page is served as plain HTTP.
    """
    with question_refusals():
        address, token = flags["bind_address"], _token(flags["token_file"])
        if not is_loopback(address) and not token:
            token = rng.unique_token()
        options = UiOptions(address=address, port=flags["port"], token=token)
        subjects = _subjects(paths, flags)
    serve(subjects, options)


@contextmanager
def page_of(name: str, doing: str, unit: str) -> Generator[tuple[WorkPage, WorkSubject]]:
    """The page of a command while it works; see `bayplan.ui.work`."""
    try:
        with work_page(name, doing, unit) as (page, work):
            _on_ready(page.url)
            yield page, work
    except OSError as problem:
        remark(f"the page cannot be served: {problem.strerror}")
        sys.exit(EXIT_FAILED)


def serve(subjects: list[Subject], options: UiOptions) -> None:
    """Serve until an interrupt."""
    try:
        asyncio.run(serve_ui(subjects, options, _on_ready))
    except OSError as problem:
        remark(f"--bind-address {options.address} --port {options.port}: {problem.strerror}")
        sys.exit(EXIT_FAILED)
    _leave_threads()


def _leave_threads() -> None:
    """End the process if a thread does not end by itself: Python would wait for it."""
    deadline = wall_seconds() + _END_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - wall_seconds()))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)


def _on_ready(url: str) -> None:
    remark(f"the page is at {url} (Ctrl+C ends it)")


def _token(path: str | None) -> str:
    """Raises BadInputError."""
    if path is None:
        return ""
    token = read_text(path).strip()
    if not token:
        fail(f"--token-file {path}: found nothing, wanted a token")
    return token


def _run_folder(path: str, flags: dict[str, Any]) -> RunFolder:
    plugins = [Path(plugin) for plugin in flags["plugins"]]
    return RunFolder(Path(path), plugins=plugins, allows_plugins=flags["allow_plugins"])


def _subjects(paths: tuple[str, ...], flags: dict[str, Any]) -> list[Subject]:
    if not paths:
        return [_live_cluster(flags)]
    if flags["kubeconfig"] or flags["context_name"]:
        fail(f"found {paths[0]} and --kubeconfig or --context, wanted one of them")
    runs = [path for path in paths if is_run(Path(path))]
    if runs:
        if len(runs) < len(paths) or len(runs) > _RUNS_MAX:
            others = counted(len(paths) - len(runs), "other path")
            found = f"{counted(len(runs), 'run')} and {others}"
            fail(f"found {found}, wanted one run, two runs, or files of one cluster")
        return [RunSubject(_run_folder(run, flags), remark) for run in runs]
    shadows = [path for path in paths if is_shadow(Path(path))]
    if shadows:
        if len(paths) > 1:
            fail(f"found {len(paths)} paths, wanted one report of a shadow")
        return [ShadowSubject(Path(shadows[0]), remark)]
    missing = next((p for p in paths if p != STANDARD_INPUT and not Path(p).exists()), None)
    if missing is not None:
        fail(f"{missing}: there is no such file or folder; wanted a run, or files of a cluster")
    config, registry = _configured(flags)
    return [subject_of_files(paths, config, registry, remark)]


def _live_cluster(flags: dict[str, Any]) -> ClusterSubject:
    """The objects of a live cluster, as every question about it reads them. Raises
    UnreadableClusterError."""
    config, registry = _configured(flags)
    context_name = flags["context_name"]
    source = ClusterSource((), flags["kubeconfig"], context_name)
    with closing(source.model(config, registry, is_whole=True)) as model:
        picture = model.source
    when = f"the cluster was read at {rfc3339(picture.epoch_seconds)}"
    notes = [f"{when}; start bayplan ui again to see what changed since", *picture.remarks]
    name = f"context {context_name}" if context_name else picture.source
    read = partial(objects_of_picture, picture)
    return ClusterSubject(name, read, config, registry, remark=remark, notes=notes)


def _configured(flags: dict[str, Any]) -> tuple[SchedulerConfig, Registry]:
    """Raises BadInputError, ConfigError."""
    registry = read_plugins(flags["plugins"])
    return read_config(
        flags["config_path"], flags["feature_gates"], kubernetes=flags["kubernetes"]
    ), registry
