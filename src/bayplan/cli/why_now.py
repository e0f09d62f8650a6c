"""`bayplan why` for a cluster as it is now: files, or the cluster that kubectl would use."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rich.text import Text

from bayplan.api.objects import NODE
from bayplan.cli.cluster_source import (
    ClusterSource,
    label_selector_of,
    model_of,
    question_refusals,
)
from bayplan.cli.console import command_text, counting, progress, show, show_answer
from bayplan.cli.options import options_as_words
from bayplan.cli.problems import STANDARD_INPUT
from bayplan.cli.streams import EXIT_FAILED, EXIT_NOT_JUDGED, fail
from bayplan.cli.why_subject import WhySubject, meant_kind
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.explain.workload import NoSuchWorkloadError, explain_workload
from bayplan.lazy_loader import load
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.unknown_names import no_namespace
from bayplan.printable import path_argument
from bayplan.state.pods import PodInfo

_PLACED = ("bound", "fits", "ended")
#: Options that say which cluster is read, and how it schedules.
_OPTIONS_OF_CLUSTER = (
    "at",
    "kubeconfig",
    "context_name",
    "config_path",
    "plugins",
    "feature_gates",
    "kubernetes",
    "seed",
)


def why_now(
    subject: WhySubject, source: ClusterSource, namespace: str, options: dict[str, Any]
) -> None:
    """Print the answer, and end with its exit code. ``namespace``: of names without one."""
    pod = "" if subject.kind else subject.name
    with question_refusals(), model_of(source, options, pod) as (model, _, _), progress("trying"):
        explanation = _explanation(model, subject, namespace, with_fixes=options["fixes"])
    show_answer(explanation, options["output"])
    if explanation.result == "no-pods":
        sys.exit(EXIT_NOT_JUDGED)
    if explanation.result == "missing-node" or not (
        explanation.result in _PLACED or explanation.node
    ):
        sys.exit(EXIT_FAILED)


def why_all_pending(source: ClusterSource, options: dict[str, Any]) -> None:
    """Print why all pods wait, and end with the exit code."""
    opened = model_of(source, options, is_whole=True)
    with question_refusals():
        label_selector_of(options["selector"])  # refuses wrong labels before the cluster is read
        with opened as (model, _, _), progress("trying", "pods") as on_progress:
            answer = load("bayplan.whatif.all_pending:all_pending")(
                model,
                namespace=options["namespace"] or "",
                labels=options["selector"] or "",
                sort_by=options["sort_by"],
                on_step=counting(on_progress),
            )
    show_answer(answer, options["output"])
    if answer.groups:
        if options["output"].is_text:
            show(_next_question(answer.groups[0].examples[0], source))
        sys.exit(EXIT_FAILED)


def _next_question(pod: str, source: ClusterSource) -> list[Text]:
    """The command that has all causes and fixes of a pod, as a shell takes it."""
    if STANDARD_INPUT in source.paths:
        return []
    options = options_as_words(*_OPTIONS_OF_CLUSTER)
    command = command_text("bayplan", "why", pod, *map(path_argument, source.paths), *options)
    return [Text(), Text("all causes and fixes of a pod:"), command]


def _explanation(
    model: ClusterModel, subject: WhySubject, namespace: str, *, with_fixes: bool
) -> Explanation:
    """Ends the process if there is no such pod or workload."""
    if subject.conflict:
        kind, _, own = subject.name.partition("/")
        try:
            return explain_workload(model, kind, f"{namespace}/{own}", with_fixes=with_fixes)
        except NoSuchWorkloadError:
            fail("; ".join(filter(None, (subject.conflict, meant_kind(subject.name)))))
    try:
        if subject.kind:
            return explain_workload(model, subject.kind, subject.name, with_fixes=with_fixes)
        return explain_pod(model, subject.name, with_fixes=with_fixes)
    except NoSuchWorkloadError as problem:
        fail(model.source.why_left_out(subject.kind, subject.name) or str(problem))
    except NoSuchPodError:
        explanation = _of_other_kind(model, subject.name, namespace, with_fixes=with_fixes)
        if explanation is not None:
            return explanation
        refusal = model.source.refusal_of(subject.name)
        if refusal:
            fail(f"{model.source.source}: the API server refuses pod {subject.name}: {refusal}")
        left_out = model.source.why_left_out("Pod", subject.name)
        if left_out:
            fail(left_out)
        names = [f"{each.namespace}/{each.name}" for each in _pods(model)]
        similar_pods = load("bayplan.sim.why:similar_pods")
        hint = similar_pods(subject.name, names) if names else "there are no pods at all"
        name = subject.name
        # A namespace that exists is no misspelt kind.
        kind = meant_kind(name) if no_namespace(model, subject.namespace) else ""
        hint = _other_namespace(model, name) or _of_node(model, name) or kind or hint
        if model.source.moment is not None:
            hint += "; --at names another moment of the run"
        fail(f"{model.source.source}: there is no pod {subject.name}; {hint}")


def _of_other_kind(
    model: ClusterModel, name: str, namespace: str, *, with_fixes: bool
) -> Explanation | None:
    """The answer about a workload whose kind no option names: "lws/vllm", "rollout/web"."""
    first, _, own = name.partition("/")
    for kind, full_name in ((first, f"{namespace}/{own}"), ("", name)):
        with suppress(NoSuchWorkloadError):
            return explain_workload(model, kind, full_name, with_fixes=with_fixes)
    return None


def _other_namespace(model: ClusterModel, name: str) -> str:
    """That "rollout/web" is in another namespace; "": it is in none."""
    kind, _, own = name.partition("/")
    for key in model.source.unknown_workloads:
        if key.name == own and key.kind.rpartition(" ")[2].casefold() == kind.casefold():
            return f"{kind}/{own} is in the namespace {key.namespace}: wanted --namespace"
    return ""


def _of_node(model: ClusterModel, name: str) -> str:
    """Which command answers about "node/NAME"; "": no node has the name."""
    _, _, own = name.partition("/")
    if model.get(NODE, "", own) is None:
        return ""
    return f"{own} is a node: `bayplan whatif --drain NODE` says what happens to its pods"


def _pods(model: ClusterModel) -> Iterable[PodInfo]:
    return (*model.pending(), *model.scheduler.cache.pods())
