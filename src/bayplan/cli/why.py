"""`bayplan why`: explain the result for a pod, a workload or a pod group.

The answer comes from a cluster as it is now (`why_now`), or from the folder of a run or the
endpoints of a running scheduler (`why_records`).
"""

import sys
from pathlib import Path
from typing import Any

import click

from bayplan.cli.cluster_source import (
    ClusterSource,
    kubectl_options,
    moment_option,
)
from bayplan.cli.epilogs import examples
from bayplan.cli.options import (
    WholeNumber,
    all_namespaces_option,
    allow_plugins_option,
    config_option,
    namespace_option,
    output_option,
    plugin_option,
    seed_option,
    selector_option,
    sort_option,
)
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.streams import EXIT_BAD_INPUT, fail
from bayplan.cli.why_subject import is_kind, is_kind_and_name, subject_of_words
from bayplan.lazy_loader import load


@click.command(
    "why",
    epilog=examples(
        "bayplan why default/web-0                      # the cluster that kubectl would use",
        "bayplan why default/web-0 cluster.yaml         # files, as simulate reads them",
        "bayplan why default/web-0 runs/a --at 10m      # a moment of a run",
        "bayplan why default/web-0 --run runs/a",
        "bayplan why deployment/web --namespace shop --run runs/a",
        "bayplan why default/web-0 --run runs/a --node n7",
        "bayplan why --all-pending -n shop                # every pod that waits, by cause",
        "bayplan why podgroup default/training --run runs/a",
        "bayplan why default/web-0 --address 127.0.0.1:10259",
        "bayplan why default/web-0 --address 127.0.0.1:10259 --dry-run",
    ),
)
@click.argument("words", nargs=-1, metavar="[KIND] [NAMESPACE/]NAME [FILE…]")
@click.option(
    "--all-pending", is_flag=True, help="All pods that wait, by workload and decisive cause"
)
@all_namespaces_option("With --all-pending: the default")
@selector_option("With --all-pending: of the pods, as app=web,tier!=db")
@sort_option("With --all-pending: order of the groups", "pods", "workload", "cause")
@namespace_option()
@moment_option()
@kubectl_options()
@config_option("Configuration of the scheduler in question. Default: one default profile")
@plugin_option()
@allow_plugins_option()
@feature_gates_option()
@seed_option()
@output_option()
@click.option(
    "--fixes/--no-fixes", default=True, help="Try changes with which the pod fits. Default: yes"
)
@click.option("--run", "run_path", metavar="DIR", help="Run written by `simulate --out`")
@click.option("--address", metavar="HOST:PORT", help="Endpoints of a running scheduler")
@click.option("--token-file", metavar="FILE", help="With --address: file with a bearer token")
@click.option("--ca-file", metavar="FILE", help="With --address https://…: certificate authority")
@click.option("--node", metavar="NAME", help="With --run, --address: explain one node")
@click.option(
    "--attempt", type=WholeNumber(), help="Explain this attempt. Default with --node: the last"
)
@click.option("--dry-run", is_flag=True, help="With --address: the next attempt, not a past one")
@click.option("--exit-code", is_flag=True, help="With --run, --address: 1 if it has no node")
def why_command(words: tuple[str, ...], **options: Any) -> None:
    """Explain why a pod has a node or none, and what would make it fit.

    Without --run and --address, the pod is tried once in memory, on the cluster that kubectl would
    use or on the objects of FILE…. For the folder of a run, these are the objects at its end, or at
    the moment of --at. The answer starts with the sentence of kube-scheduler; then come
    the causes, and changes with which the pod fits. Nothing in the cluster changes: the command
    only gets and lists objects. For a pod that has a node, the answer compares its node with the
    others. The exit code is 0 if the pod has a node or fits, 1 if it does not, 2 if the input is
    wrong, and 3 if the cluster cannot be read.

    With --all-pending, the answer has all pods that wait, by workload and by the decisive cause,
    the largest group first, each with its mildest fix. The exit code is 1 if a pod waits.

    With --run or --address, the answer is the record of past decisions: each attempt, the plugins
    that rejected nodes and their reasons, the scores of the best nodes, and what broke a tie; for a
    workload such as deployment/web: its pods, grouped by outcome. With --node, the attempt is made
    again in memory, from the state before it; the plugins of a run are executed with
    --allow-plugins only, or with --plugin FILE.py. With --address and --dry-run, the running
    scheduler makes the next attempt at the pod, with its cached results; nothing is decided or
    written.
    """
    if options["all_pending"]:
        _answer_about_all(words, options)
        return
    if not words:
        click.echo(_QUESTIONS, err=True)
        sys.exit(EXIT_BAD_INPUT)
    if len(words) == 1 and Path(words[0]).exists():
        fail(f"{words[0]} is a file: wanted the name of a pod before it, or --all-pending")
    for option in ("selector", "all_namespaces"):
        if options[option]:
            fail(f"--{option.replace('_', '-')}: wanted --all-pending with it")
    run_path, address = options["run_path"], options["address"]
    if options["dry_run"] and address is None:
        fail("--dry-run: wanted --address HOST:PORT with it; without --run, why is a dry run")
    if options["at"] is not None and (run_path is not None or address is not None):
        fail("--at: wanted the folder of a run as FILE; --run and --address have past decisions")
    if run_path is None and address is None:
        _answer_now(words, options)
    else:
        load("bayplan.cli.why_records:answer_from_records")(words, options)


_QUESTIONS = """bayplan why: wanted a name or --all-pending, for one of these questions
  bayplan why --all-pending              every pod that waits, by cause
  bayplan why shop/web-0                 a pod: why it waits, or why it is on its node
  bayplan why deployment/web -n shop     the pods of a workload or a Job
  bayplan why podgroup shop/training     a group of pods that are placed together
  bayplan why shop/web-0 cluster.yaml    a pod in files, not in the cluster of kubectl
  bayplan why shop/web-0 --run runs/a    what a simulation decided about a pod
All options: bayplan why --help"""


def _answer_about_all(files: tuple[str, ...], options: dict[str, Any]) -> None:
    """The answer about all pods that wait."""
    for option in ("run_path", "address", "node", "attempt", "token_file", "ca_file"):
        if options[option] is not None:
            name = "run" if option == "run_path" else option.replace("_", "-")
            fail(f"--{name}: found --all-pending, which is about a cluster; wanted one of them")
    if options["all_namespaces"] and options["namespace"]:
        fail("found -A and -n, wanted one of them")
    load("bayplan.cli.why_now:why_all_pending")(_source(files, options), options)


def _answer_now(words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The answer about a cluster as it is now."""
    for option in ("node", "attempt", "token_file", "ca_file"):
        if options[option] is not None:
            fail(f"--{option.replace('_', '-')}: wanted --run DIR or --address HOST:PORT with it")
    if options["allow_plugins"]:
        fail("--allow-plugins: wanted --run DIR with it")
    count = 2 if is_kind(words[0]) and len(words) > 1 else 1
    files = words[count:]
    source = _source(files, options)
    namespace = options["namespace"] or source.default_namespace()
    word = words[count - 1]
    has_namespace = "/" in word and not is_kind_and_name(word)
    subject = subject_of_words(words[:count], options["namespace"] if has_namespace else namespace)
    load("bayplan.cli.why_now:why_now")(subject, source, namespace, options)


def _source(files: tuple[str, ...], options: dict[str, Any]) -> ClusterSource:
    """The cluster that the options name."""
    if files and (options["kubeconfig"] or options["context_name"]):
        fail(f"found {files[0]} and --kubeconfig or --context, wanted one cluster")
    return ClusterSource(
        files,
        options["kubeconfig"],
        options["context_name"],
        at=options["at"],
    )
