"""The controllers whose pods the simulation creates, and the validation of controllers."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded import selector_validation as selectors
from bayplan.adapters.embedded.api_validation import of_decoding
from bayplan.adapters.embedded.field_validation import one_of
from bayplan.adapters.embedded.pod_validation import pod_spec
from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    DecodeError,
    LabelSelector,
    ObjectMeta,
    PodSpec,
)
from bayplan.api.selectors import SelectorError, label_selector
from bayplan.lazy_loader import built
from bayplan.objects.keys import kind_of
from bayplan.problems import Problem, wrong
from bayplan.sim.input.workload import Content

CONTROLLERS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB, REPLICATION_CONTROLLER)
#: Kinds with a number of replicas, without their groups.
SCALED_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")

#: A controller with more pods is assumed to be a typing error.
PODS_MAX = 1_000_000


class _ControllerStruct(Struct, kw_only=True, rename="camel"):
    """Camel case on the wire; unknown fields pass."""


class _Template(_ControllerStruct):
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class _Claim(_ControllerStruct):
    metadata: ObjectMeta


class _Ordinals(_ControllerStruct):
    start: int | None = None


class _Spec(_ControllerStruct):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    ordinals: _Ordinals | None = None
    selector: Any = None
    template: _Template | None = None
    volume_claim_templates: list[_Claim] | None = None


class _JobStatus(_ControllerStruct):
    conditions: list[dict[str, Any]] | None = None
    succeeded: int | None = None
    completed_indexes: str | None = None


class _Controller(_ControllerStruct):
    spec: _Spec | None = None
    status: _JobStatus | None = None


def is_controller(content: Content) -> bool:
    return f"{content.get('apiVersion')} {content.get('kind')}" in CONTROLLERS


def controller_problems(content: Content, *, is_new: bool = True) -> list[Problem]:
    """Problems of a controller's own fields and of its pod template.

    ``is_new``: False for a controller that a server has stored before.
    """
    try:
        typed = msgspec.convert(content, built(_Controller))
    except (msgspec.MsgspecError, RecursionError) as failure:
        return [of_decoding(DecodeError(f"{kind_of(content)}: {failure}"), content)]
    if typed.spec is None or typed.spec.template is None or typed.spec.template.spec is None:
        return [wrong("spec.template.spec", None, "the pods that it makes")]
    template = typed.spec.template
    of_template = _template(kind_of(content), typed.spec, template, is_new=is_new)
    return [*_counts(typed.spec), *of_template]


def _counts(spec: _Spec) -> Iterator[Problem]:
    counts = {
        "replicas": spec.replicas,
        "parallelism": spec.parallelism,
        "completions": spec.completions,
        "ordinals.start": spec.ordinals.start if spec.ordinals is not None else None,
    }
    for name, count in counts.items():
        if count is not None and not 0 <= count <= PODS_MAX:
            yield wrong(f"spec.{name}", count, f"a number from 0 to {PODS_MAX}")
    modes = ("NonIndexed", "Indexed")
    if spec.completion_mode is not None and spec.completion_mode not in modes:
        yield wrong("spec.completionMode", spec.completion_mode, one_of(modes), modes)


def _template(kind: str, spec: _Spec, template: _Template, *, is_new: bool) -> Iterator[Problem]:
    labels = (template.metadata.labels if template.metadata is not None else None) or {}
    yield from selectors.labels(labels, "spec.template.metadata.labels")
    assert template.spec is not None
    yield from pod_spec(template.spec, "spec.template.spec", is_new=is_new)
    if kind not in (JOB, REPLICATION_CONTROLLER) and spec.selector is not None:
        yield from _selector(spec.selector, labels)


def _selector(selector: Any, labels: dict[str, str]) -> Iterator[Problem]:
    try:
        typed = msgspec.convert(selector, built(LabelSelector))
        problems = list(selectors.label_selector(typed, "spec.selector"))
        yield from problems
        if not problems and not label_selector(typed).matches(labels):
            expected = "labels that spec.selector selects"
            yield wrong("spec.template.metadata.labels", labels or None, expected)
    except (msgspec.MsgspecError, SelectorError):
        yield wrong("spec.selector", selector, "a label selector")
