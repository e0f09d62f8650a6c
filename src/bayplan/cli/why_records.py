"""`bayplan why` from records: those of a run folder, or those of a running scheduler.

One attempt at one node is repeated from the state before it; for a running scheduler the state
comes over HTTP, and the attempt is repeated in this process.
"""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayplan.answers.names import in_natural_order
from bayplan.cli.configuration import read_plugins
from bayplan.cli.console import progress, show_answer
from bayplan.cli.problems import read_text, refusals
from bayplan.cli.streams import EXIT_FAILED, fail
from bayplan.cli.why_subject import WhySubject, subject_of_words
from bayplan.journal import (
    AttemptRecord,
    Record,
    group_subject,
    is_group,
    subject_of,
)
from bayplan.lazy_loader import load
from bayplan.serving.decision_history import DecisionHistory
from bayplan.sim.decisions import Decisions, gives_node, is_placed
from bayplan.sim.output.pod_counts import counts_of, pod_state
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.output.run_folder import RunFolder, RunFolderError
from bayplan.sim.why import (
    end_line,
    similar_pods,
    without_record,
)

if TYPE_CHECKING:
    from bayplan.cli.remote_history import Address

_WORKLOADS_MAX = 5
_NOT_EXACT = (
    "the repeated attempt differs from the record, so a plugin or an extender used what the "
    "scheduler does not log; the answer for the node may differ, too"
)
_NO_PREEMPTION = "a dry run looks for no victims; cached results: {} nodes, evaluated: {} nodes"


def answer_from_records(words: tuple[str, ...], options: dict[str, Any]) -> None:
    """The answer from a run, or from the memory of a running scheduler."""
    subject = subject_of_words(words, options["namespace"])
    if subject.conflict:
        fail(subject.conflict)
    name = group_subject(subject.name) if subject.kind == "podgroup" else subject.name
    if subject.kind and (options["node"] is not None or options["attempt"] is not None):
        fail("--node, --attempt: these options explain an attempt of one pod")
    run_path, address, node = options["run_path"], options["address"], options["node"]
    if (run_path is None) == (address is None):
        fail("wanted either --run DIR or --address HOST:PORT")
    if address is not None and subject.is_workload:
        fail(f"{subject.controller}: wanted --run; with --address, name one of its pods")
    if options["dry_run"] and (subject.kind or node is not None or options["attempt"] is not None):
        fail("--dry-run: wanted one pod, without --node and --attempt")
    if address is not None and options["allow_plugins"]:
        fail("--allow-plugins: wanted --run DIR with it")
    with refusals():
        if address is not None:
            answer = _remote_answer(name, options)
        elif subject.is_workload:
            answer = _workload_answer(_run_folder(options), subject)
        else:
            answer = _answer(_run_folder(options), name, node, options["attempt"])
    show_answer(answer, options["output"])
    if options["exit_code"] and not answer.has_node:
        sys.exit(EXIT_FAILED)


def _run_folder(options: dict[str, Any]) -> RunFolder:
    plugins = [Path(plugin) for plugin in options["plugins"]]
    path, allows_plugins = Path(options["run_path"]), options["allow_plugins"]
    return RunFolder(path, plugins=plugins, allows_plugins=allows_plugins)


# ---- a running scheduler --------------------------------------------------------------------


def _remote_answer(pod: str, options: dict[str, Any]) -> Decisions:
    """What a running scheduler says. Raises RunFolderError for an attempt that is not there."""
    token = read_text(options["token_file"]).strip() if options["token_file"] else ""
    address_of = load("bayplan.cli.remote_history:address_of")
    address: Address = address_of(options["address"], token, options["ca_file"] or "")
    if options["dry_run"]:
        return _dry_run(pod, address)
    if options["node"] is not None:
        return _remote_node(pod, address, options)
    history: DecisionHistory = load("bayplan.cli.remote_history:remote_history")(pod, address)
    if not history.records:
        remembered = f"among {history.record_count} records (at most {history.record_count_max})"
        hint = similar_pods(pod, history.subjects)
        fail(f"{address.url}: no record of {pod} {remembered}; {hint}")
    number, records = options["attempt"], history.records
    if number is not None:
        attempts = [r for r in records if isinstance(r, AttemptRecord) and r.attempt == number]
        if not attempts:
            fail(f"{address.url}: no record of attempt {number} at {pod}")
        records = tuple(attempts[-1:])
    return Decisions(
        source=address.url,
        subject=pod,
        has_node=gives_node(records),
        records=records,
        started=history.started,
    )


def _dry_run(pod: str, address: "Address") -> Decisions:
    """The next attempt at a pod, made by the running scheduler with its cached results."""
    result = load("bayplan.cli.remote_history:remote_dry_run")(pod, address)
    if result.record is None:
        fail(f"{address.url}: {result.reason}")
    return Decisions(
        source=address.url,
        subject=pod,
        has_node=gives_node([result.record]),
        records=(result.record,),
        evaluated_count=result.evaluated_count,
        cached_count=result.cached_count,
        remarks=(_NO_PREEMPTION.format(f"{result.cached_count:,}", f"{result.evaluated_count:,}"),),
    )


def _remote_node(pod: str, address: "Address", options: dict[str, Any]) -> Decisions:
    """One node in one attempt, which is repeated here from the state before it."""
    remote_attempt = load("bayplan.cli.remote_history:remote_attempt")
    registry = read_plugins(options["plugins"])
    with progress("repeating the attempt"):
        head, state, begun = remote_attempt(pod, options["attempt"], address)
        config = load("bayplan.config:load_config")(
            load("msgspec.json:encode")(head.config), address.url
        )
        repeated = load("bayplan.model.past:repeat")(
            state,
            begun,
            head.record,
            options["node"],
            config=config,
            registry=registry,
            seed=head.seed,
            absent=frozenset(head.absent),
        )
    if repeated.verdict is None:
        fail(f"{address.url}: {pod} does not wait in the state before that attempt")
    return Decisions(
        source=address.url,
        subject=pod,
        has_node=gives_node([head.record]),
        records=(head.record,),
        node=repeated.verdict,
        remarks=() if repeated.is_exact else (_NOT_EXACT,),
    )


# ---- a run ----------------------------------------------------------------------------------


def _answer(folder: RunFolder, pod: str, node: str | None, attempt: int | None) -> Decisions:
    records: list[Record] = []
    other_subjects: set[str] = set()
    for record in folder.journal():
        subject = subject_of(record)
        if subject == pod:
            records.append(record)
        elif is_group(subject) is is_group(pod):
            other_subjects.add(subject)
    source, result = str(folder.path), folder.result()
    if not records:
        text = _without_record(folder, pod, other_subjects)
        has_node = is_placed(pod, result, records)
        return Decisions(source=source, subject=pod, message=text, has_node=has_node)
    has_node = is_placed(pod, result, records)
    if attempt is not None or node is not None:
        chosen = _attempt(folder, pod, records, attempt)
        if node is not None:
            return _node_answer(folder, chosen, node, has_node=has_node)
        records = [chosen]
    return Decisions(
        source=source,
        subject=pod,
        message=end_line(pod, result),
        has_node=has_node,
        records=tuple(records),
    )


def _node_answer(
    folder: RunFolder, record: AttemptRecord, node: str, *, has_node: bool
) -> Decisions:
    with progress("repeating the attempt"):
        repeated = load("bayplan.model.past:attempt_of_run")(folder, record, node)
    if repeated.verdict is None:
        fail(f"{folder.path}: {record.pod} does not wait in the state before that attempt")
    return Decisions(
        source=str(folder.path),
        subject=record.pod,
        has_node=has_node,
        records=(record,),
        node=repeated.verdict,
        remarks=() if repeated.is_exact else (_NOT_EXACT,),
    )


def _workload_answer(folder: RunFolder, subject: WhySubject) -> Decisions:
    """The pods of a workload. Raises RunFolderError for one that has none."""
    result = folder.result()
    if result is None:
        text = f"{folder.path}: the run did not end, so the workloads of its pods are unknown"
        raise RunFolderError(f"{text}; wanted a pod's NAMESPACE/NAME")
    inside = f"{subject.namespace}/"
    pods = [
        (name, pod)
        for name, pod in result.all_pods()
        if pod.controller == subject.controller and name.startswith(inside)
    ]
    if not pods:
        raise RunFolderError(f"{folder.path}: {_no_such_workload(subject, result)}")
    names = {name for name, _ in pods}
    attempts = {
        record.pod: record
        for record in folder.journal()
        if isinstance(record, AttemptRecord) and record.pod in names
    }
    name = f"{subject.controller} in {subject.namespace}"
    counts = counts_of(pod for _, pod in pods)
    return Decisions(
        source=str(folder.path),
        subject=name,
        has_node=counts.placed == counts.present,
        records=tuple(attempts.values()),
        pods=tuple(pod_state(pod, result) for pod, result in pods),
        counts=counts,
    )


def _no_such_workload(subject: WhySubject, result: SimulationResult) -> str:
    controllers = {
        f"{pod.controller} in {name.partition('/')[0]}"
        for name, pod in result.pods.items()
        if pod.controller is not None
    }
    expected = f"{subject.controller} in {subject.namespace}"
    near = difflib.get_close_matches(expected, sorted(controllers), _WORKLOADS_MAX)
    listed = ", ".join(near or in_natural_order(controllers)[:_WORKLOADS_MAX])
    workloads = f"known workloads include: {listed}" if controllers else "no pod has a controller"
    return f"no pod belongs to {expected}; {workloads}"


def _without_record(folder: RunFolder, pod: str, other_subjects: set[str]) -> str:
    """Why there are no records of a pod. Raises RunFolderError for a pod that the run does not
    have."""
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
