"""`bayplan why` for a cluster as it is now: files, or the cluster that kubectl would use."""

import sys
from collections.abc import Iterable
from typing import Any

from bayplan.cli.cluster_source import (
    ClusterSource,
    model_of,
    put_document,
    question_refusals,
)
from bayplan.cli.console import show
from bayplan.cli.streams import EXIT_FAILED, fail
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.explain.fixes.workload_edits import controller_of
from bayplan.explain.text import explained
from bayplan.lazy_loader import load
from bayplan.model.cluster_model import ClusterModel
from bayplan.state.pods import PodInfo

_PLACED = ("bound", "fits", "ended")


def why_now(kind: str, name: str, source: ClusterSource, options: dict[str, Any]) -> None:
    """Print the answer, and end with its exit code.

    ``kind``: "" for a pod, "podgroup", or a workload's kind; ``name``: "namespace/name".
    """
    subject = "" if kind else name
    with question_refusals(), model_of(source, options, subject) as (model, _, _):
        explanation = _explanation(model, kind, name)
    output = options["output"]
    if output in ("json", "yaml"):
        put_document(explanation, output)
    else:
        show(explained(explanation, is_wide=output == "wide"))
    if explanation.result not in _PLACED and not explanation.node:
        sys.exit(EXIT_FAILED)


def _explanation(model: ClusterModel, kind: str, name: str) -> Explanation:
    pod = _first_pod(model, kind, name) if kind else name
    try:
        return explain_pod(model, pod)
    except NoSuchPodError:
        names = [f"{each.namespace}/{each.name}" for each in _pods(model)]
        similar_pods = load("bayplan.sim.why:similar_pods")
        hint = similar_pods(pod, names) if names else "it has no pods"
        fail(f"{model.source.source}: there is no pod {pod}; {hint}")


def _pods(model: ClusterModel) -> Iterable[PodInfo]:
    return (*model.pending(), *model.scheduler.cache.pods())


def _first_pod(model: ClusterModel, kind: str, name: str) -> str:
    """The first pod of a workload or a group that waits; if none waits, the first pod."""
    matching = (pod.key for pod in _pods(model) if _belongs_to(model, pod, kind, name))
    first = next(matching, None)
    if first is None:
        fail(f"{model.source.source}: no pod belongs to {kind} {name}")
    return first


def _belongs_to(model: ClusterModel, pod: PodInfo, kind: str, name: str) -> bool:
    namespace, _, own = name.partition("/")
    if pod.namespace != namespace:
        return False
    if kind == "podgroup":
        return pod.group_key is not None and pod.group_key.name == own
    owners = [each for each in pod.metadata.owner_references or () if each.controller]
    controller = controller_of(model, pod)
    named = [*owners, *([] if controller is None else [controller])]
    return any((each.kind, each.name) == (kind, own) for each in named)
