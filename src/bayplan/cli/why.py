"""`bayplan why`: explain the result for a pod, a workload or a pod group.

The answer comes from a cluster as it is now (`why_now`), from the folder of a run, or from the
endpoints of a running scheduler.
"""

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import click
from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.cluster_source import ClusterSource, kubectl_options, output_option
from bayplan.cli.console import show, sign_of_life
from bayplan.cli.options import config_option, examples, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import read_text, refusals
from bayplan.cli.remarks import EXIT_FAILED, fail
from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GroupRecord,
    Record,
    group_subject,
    is_group,
    subject_of,
)
from bayplan.lazy_loader import load
from bayplan.problems import suggestion
from bayplan.serving.decision_history import DecisionHistory
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.output.run_folder import RunFolder, RunFolderError
from bayplan.sim.why import (
    explain_node,
    explain_records,
    explain_workload,
    nearest_nodes,
    similar_pods,
    without_record,
)
from bayplan.state.pods import DEFAULT_NAMESPACE

# ---- why ------------------------------------------------------------------------------------


_RC = "ReplicationController"
_WORKLOADS_MAX = 5
#: Spelling on the command line → kind of a workload, as owner references have it.
_WORKLOADS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), _RC),
}
_PODS = ("pod", "pods", "po")
_GROUPS = ("podgroup", "podgroups", "pg")
_EXPECTED = (
    "wanted NAMESPACE/NAME of a pod, podgroup NAMESPACE/NAME, or a workload, as deployment/NAME "
    "with --namespace"
)


@final
@dataclass(frozen=True, slots=True)
class _Subject:
    """What the question is about. ``kind``: "" for a pod, "podgroup", or a workload's kind."""

    kind: str
    #: "namespace/name"
    name: str

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]

    @property
    def controller(self) -> str:
        """As `PodResult.controller` has it."""
        return f"{self.kind}/{self.name.partition('/')[2]}"


@click.command(
    "why",
    epilog=examples(
        "bayplan why default/web-0                      # the cluster that kubectl would use",
        "bayplan why default/web-0 cluster.yaml         # files, as simulate reads them",
        "bayplan why default/web-0 --run runs/a",
        "bayplan why deployment/web --namespace shop --run runs/a",
        "bayplan why default/web-0 --run runs/a --node n7",
        "bayplan why podgroup default/training --run runs/a",
        "bayplan why default/web-0 --address 127.0.0.1:10259",
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="[KIND] [NAMESPACE/]NAME [FILE…]")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace. Default: the context's")
@kubectl_options()
@config_option("Configuration of the scheduler in question. Default: one default profile")
@plugin_option()
@feature_gates_option()
@seed_option()
@output_option("text", "wide", "json", "yaml")
@click.option("--run", "run_path", metavar="DIR", help="Run written by `simulate --out`")
@click.option("--address", metavar="HOST:PORT", help="Endpoints of a running scheduler")
@click.option("--token-file", metavar="FILE", help="With --address: file with a bearer token")
@click.option("--ca-file", metavar="FILE", help="With --address https://…: certificate authority")
@click.option("--node", metavar="NAME", help="With --run: explain one node, by a replay")
@click.option("--attempt", type=int, help="Explain this attempt. Default with --node: the last")
@click.option("--exit-code", is_flag=True, help="With --run, --address: 1 if it has no node")
def why_command(words: tuple[str, ...], **options: Any) -> None:
    """Explain why a pod has a node or none, and what would make it fit.

    Without --run and --address, the pod is tried once in memory, on the cluster that kubectl would
    use or on the objects of FILE…. The answer starts with the sentence of kube-scheduler; then come
    the causes, and changes with which the pod fits. Nothing in the cluster changes: the command
    only gets and lists objects. For a pod that has a node, the answer compares its node with the
    others. The exit code is 0 if the pod has a node or fits, 1 if it does not, 2 if the input is
    wrong, and 3 if the cluster cannot be read.

    With --run or --address, the answer is the record of past decisions: each attempt, the plugins
    that rejected nodes and their reasons, the scores of the best nodes, and what broke a tie; for a
    workload such as deployment/web: its pods, grouped by outcome.
    """
    run_path, address = options["run_path"], options["address"]
    if run_path is None and address is None:
        _answer_now(words, options)
    else:
        _answer_from_records(words, options)


def _answer_now(words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The answer about a cluster as it is now."""
    for option in ("node", "attempt", "token_file", "ca_file"):
        if options[option] is not None:
            fail(f"--{option.replace('_', '-')}: wanted --run DIR or --address HOST:PORT with it")
    has_kind = words[0].lower() in (*_WORKLOADS, *_PODS, *_GROUPS)
    count = 2 if has_kind and len(words) > 1 else 1
    files = words[count:]
    if files and (options["kubeconfig"] or options["context_name"]):
        fail(f"found {files[0]} and --kubeconfig or --context, wanted one cluster")
    source = ClusterSource(files, options["kubeconfig"], options["context_name"])
    namespace = options["namespace"] or source.default_namespace()
    word = words[count - 1]
    has_namespace = "/" in word and not _is_kind(word)
    subject = _subject(words[:count], options["namespace"] if has_namespace else namespace)
    load("bayplan.cli.why_now:why_now")(subject.kind, subject.name, source, options)


def _is_kind(word: str) -> bool:
    """Whether a word is a kind and a name, as deployment/web."""
    kind, slash, _ = word.partition("/")
    return bool(slash) and kind.lower() in (*_WORKLOADS, *_PODS, *_GROUPS)


def _answer_from_records(words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The answer from a run, or from the memory of a running scheduler."""
    subject = _subject(words, options["namespace"])
    name = group_subject(subject.name) if subject.kind == "podgroup" else subject.name
    if subject.kind and (options["node"] is not None or options["attempt"] is not None):
        fail("--node, --attempt: these options explain an attempt of one pod")
    run_path, address, node = options["run_path"], options["address"], options["node"]
    if (run_path is None) == (address is None):
        fail("wanted either --run DIR or --address HOST:PORT")
    if address is not None and node is not None:
        fail("--node: wanted --run: only a replay of a run can explain one node")
    if options["output"] not in ("text", "wide"):
        fail(f"-o {options['output']}: wanted text with --run and --address")
    is_workload = subject.kind in _WORKLOADS.values()
    if address is not None and is_workload:
        fail(f"{subject.controller}: wanted --run; with --address, name one of its pods")
    with refusals():
        if address is not None:
            parts, is_placed = _remote_answer(name, options)
        elif is_workload:
            parts, is_placed = _workload_answer(RunFolder(Path(run_path)), subject)
        else:
            parts, is_placed = _answer(RunFolder(Path(run_path)), name, node, options["attempt"])
    show(parts)
    if options["exit_code"] and not is_placed:
        sys.exit(EXIT_FAILED)


def _is_placed(records: Sequence[Record]) -> bool:
    """Whether the last thing that happened gave the pod, or the group, a node."""
    results = [
        record.result
        for record in records
        if isinstance(record, AttemptRecord | BindingRecord | GroupRecord)
    ]
    return bool(results) and results[-1] in ("scheduled", "bound", "placed")


def _subject(words: tuple[str, ...], namespace: str | None) -> _Subject:
    """What the words name: "web-0", "shop/web-0", "pod web-0", "deployment/web", "job shop/x"."""
    *kinds, name = words
    if not kinds and name.partition("/")[0].lower() in (*_WORKLOADS, *_PODS, *_GROUPS):
        kind, slash, own_name = name.partition("/")
        if slash:
            kinds, name = [kind], own_name
    if len(kinds) > 1 or name.count("/") > 1 or name.startswith("/") or name.endswith("/"):
        fail(f"found {' '.join(words)}, {_EXPECTED}")
    if "/" in name and namespace is not None and not name.startswith(f"{namespace}/"):
        fail(f"found {name} and --namespace {namespace}, wanted one namespace")
    full_name = name if "/" in name else f"{namespace or DEFAULT_NAMESPACE}/{name}"
    if not kinds or kinds[0].lower() in _PODS:
        return _Subject("", full_name)
    if kinds[0].lower() in _GROUPS:
        return _Subject("podgroup", full_name)
    kind = _WORKLOADS.get(kinds[0].lower())
    if kind is None:
        hint = suggestion(kinds[0], [*_WORKLOADS, *_PODS, *_GROUPS])
        fail(f"found {' '.join(words)}, {_EXPECTED}" + (f"; {hint}" if hint else ""))
    return _Subject(kind, full_name)


def _remote_answer(pod: str, options: dict[str, Any]) -> tuple[list[RenderableType], bool]:
    """What a running scheduler says. Raises RunFolderError for an attempt that is not there."""
    token = read_text(options["token_file"]).strip() if options["token_file"] else ""
    ask = load("bayplan.cli.remote_history:remote_history")
    url, answer = ask(pod, options["address"], token, options["ca_file"] or "")
    if not answer.records:
        remembered = f"among {answer.record_count} records (at most {answer.record_count_max})"
        fail(f"{url}: no record of {pod} {remembered}; {_hint(pod, answer)}")
    head = Text(f"times are seconds since the scheduler's start, {answer.started}")
    number = options["attempt"]
    if number is None:
        return [head, *explain_records(answer.records)], _is_placed(answer.records)
    attempts = [r for r in answer.records if isinstance(r, AttemptRecord) and r.attempt == number]
    if not attempts:
        fail(f"{url}: no record of attempt {number} at {pod}")
    return [head, *explain_records(attempts[-1:])], _is_placed(attempts[-1:])


def _hint(pod: str, answer: DecisionHistory) -> str:
    return similar_pods(pod, answer.subjects)


def _answer(
    folder: RunFolder, pod: str, node: str | None, attempt: int | None
) -> tuple[list[RenderableType], bool]:
    records: list[Record] = []
    other_subjects: set[str] = set()
    for record in folder.journal():
        subject = subject_of(record)
        if subject == pod:
            records.append(record)
        elif is_group(subject) is is_group(pod):
            other_subjects.add(subject)
    if not records:
        result = folder.result()
        placed = result is not None and pod in result.pods and result.pods[pod].node is not None
        return [Text(_without_record(folder, pod, other_subjects))], placed
    is_placed = _is_placed(records)
    if node is None and attempt is None:
        return explain_records(records), is_placed
    chosen = _attempt(folder, pod, records, attempt)
    if node is None:
        return explain_records([chosen]), _is_placed([chosen])
    _check_node(folder, node)
    with sign_of_life("replaying the run"):
        verdict = load("bayplan.sim.replay:node_verdict")(folder, chosen, node)
        return explain_node(verdict), is_placed


def _check_node(folder: RunFolder, node: str) -> None:
    """Raises RunFolderError for a node that the run never had."""
    created = folder.inputs().workload.created()
    names = {one["metadata"]["name"] for one in created if one.get("kind") == "Node"}
    if node not in names:
        text = f"{folder.path}: no node {node} in this run; {nearest_nodes(node, names)}"
        raise RunFolderError(text)


def _workload_answer(folder: RunFolder, subject: _Subject) -> tuple[list[RenderableType], bool]:
    """The pods of a workload. Raises RunFolderError for one that has none."""
    result = folder.result()
    if result is None:
        text = f"{folder.path}: the run did not end, so the workloads of its pods are unknown"
        raise RunFolderError(f"{text}; wanted a pod's NAMESPACE/NAME")
    inside = f"{subject.namespace}/"
    pods = {
        name: pod
        for name, pod in result.pods.items()
        if pod.controller == subject.controller and name.startswith(inside)
    }
    if not pods:
        raise RunFolderError(f"{folder.path}: {_no_such_workload(subject, result)}")
    attempts = {
        record.pod: record
        for record in folder.journal()
        if isinstance(record, AttemptRecord) and record.pod in pods
    }
    parts = explain_workload(f"{subject.controller} in {subject.namespace}", pods, attempts)
    return parts, all(pod.node is not None for pod in pods.values())


def _no_such_workload(subject: _Subject, result: SimulationResult) -> str:
    controllers = {
        f"{pod.controller} in {name.partition('/')[0]}"
        for name, pod in result.pods.items()
        if pod.controller is not None
    }
    expected = f"{subject.controller} in {subject.namespace}"
    near = difflib.get_close_matches(expected, sorted(controllers), _WORKLOADS_MAX)
    listed = ", ".join(near or sorted(controllers)[:_WORKLOADS_MAX])
    workloads = f"known workloads include: {listed}" if controllers else "no pod has a controller"
    return f"no pod belongs to {expected}; {workloads}"


def _without_record(folder: RunFolder, pod: str, other_subjects: set[str]) -> str:
    """Why there is no story. Raises RunFolderError for a pod that was not there."""
    reason = without_record(pod, folder.result())
    if reason is None:
        text = (
            f"{folder.path}: there is no decision about {pod}; {similar_pods(pod, other_subjects)}"
        )
        raise RunFolderError(text)
    return reason


def _attempt(
    folder: RunFolder, pod: str, records: Sequence[Record], number: int | None
) -> AttemptRecord:
    """The last attempt of that number, or of all: a name may have had several pods."""
    attempts = [record for record in records if isinstance(record, AttemptRecord)]
    matching = [record for record in attempts if number in (None, record.attempt)]
    if not matching:
        numbers = ", ".join(str(record.attempt) for record in attempts[-20:]) or "none"
        missing = f"no attempt {number}" if number is not None else "no attempt"
        raise RunFolderError(f"{folder.path}: {missing} at {pod}; known attempts: {numbers}")
    return matching[-1]
