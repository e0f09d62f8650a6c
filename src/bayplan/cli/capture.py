"""`bayplan capture`: write a real cluster to a file for `bayplan simulate`."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import click
import yaml

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli.cluster_source import kubectl_options
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import progress
from bayplan.cli.epilogs import examples
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.options import config_option, plugin_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import refusals
from bayplan.cli.streams import EXIT_UNREADABLE, fail, put, remark
from bayplan.model.capture import Capture, capture
from bayplan.model.picture import unreadable_remarks
from bayplan.ports import ApiError
from bayplan.profile.kinds_in_use import kinds_in_use
from bayplan.serving.redaction import PRESERVED, redacted


@click.command(
    "capture",
    epilog=examples(
        "bayplan capture -o cluster.yaml",
        "bayplan capture --redact -o cluster.yaml      # to share the file",
    ),
)
@kubectl_options()
@config_option("Configuration whose plugins name additional kinds to read")
@plugin_option()
@feature_gates_option()
@click.option("-o", "--output", metavar="FILE", help="File to write. Default: standard output")
@click.option(
    "--redact", is_flag=True, help="Replace names, and remove fields that a scheduler does not read"
)
def capture_command(**options: Any) -> None:
    """Write the objects that a scheduler reads to a file for `bayplan simulate`.

    With --redact, names are replaced by numbered names, consistently in all objects, and only the
    fields that a scheduler reads are kept. The command lists what is kept besides.
    """
    with refusals():
        registry = read_plugins(options["plugins"])
        config = read_config(
            options["config_path"], options["feature_gates"], kubernetes=options["kubernetes"]
        )
    kinds = kinds_in_use(config, registry)
    captured = _captured(options["kubeconfig"], options["context_name"], kinds)
    objects = captured.objects
    if options["redact"]:
        hidden = redacted(objects)
        objects = hidden.objects
        for line in PRESERVED:
            remark(f"kept: {line}")
        for kind, count in hidden.left_out.items():
            remark(f"left out: {count} of {kind}: only the plugin knows its fields")
    for line in unreadable_remarks(captured.unreadable):
        remark(line)
    for kind in captured.absent:
        remark(f"the API server does not have {kind}")
    objects = captured.documents(objects)
    _write(options["output"], yaml.dump_all(objects, Dumper=_DUMPER, sort_keys=False).encode())
    remark(", ".join(f"{count} {kind}" for kind, count in _counts(objects)))


def _captured(kubeconfig: str | None, context_name: str, kinds: list[str]) -> Capture:
    """The objects of the cluster that kubectl would use. Ends the process if it cannot be read."""
    # A capture is a few list requests, so it needs no rate limit.
    client_options = ClientOptions(qps=-1, notice_seconds=5.0, context_name=context_name)

    async def work() -> Capture:
        async with open_client(kubeconfig, client_options) as client:
            return await capture(client, kinds)

    try:
        with progress("reading"):
            return run_event_loop(work())
    except CredentialsError as problem:
        fail(str(problem), EXIT_UNREADABLE)
    except ApiError as problem:
        fail(str(problem), EXIT_UNREADABLE)


def _write(path: str | None, content: bytes) -> None:
    """Only the owner may read the file: it may contain the environment of pods."""
    if path is None:
        put(content)
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as problem:
        fail(f"{Path(path)}: cannot be written: {problem.strerror}")


def _counts(objects: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted(Counter(content["kind"] for content in objects).items())


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
