"""Validation of controllers: their own fields and their pod templates, in kube-apiserver's words.

A field that is missing is accepted if nothing depends on it: inputs of simulations contain only
the fields that matter there. A controller that a server has stored before is not checked again.

Upstream: pkg/apis/apps/validation, pkg/apis/batch/validation, ValidateReplicationControllerSpec in
pkg/apis/core/validation.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded import selector_validation as selectors
from bayplan.adapters.embedded.api_validation import of_decoding
from bayplan.adapters.embedded.field_errors import (
    dns_label,
    dns_subdomain,
    forbidden,
    invalid,
    not_supported,
    qualified_name,
    required,
)
from bayplan.adapters.embedded.int_or_percent import NEGATIVE, IntOrPercent, amount, number, share
from bayplan.adapters.embedded.pod_validation import choice, pod_spec
from bayplan.api import objects
from bayplan.api.selectors import SelectorError, label_selector
from bayplan.lazy_loader import built
from bayplan.objects.keys import Content, kind_of
from bayplan.problems import Problem, wrong
from bayplan.sim.input.controller_kinds import PODS_MAX

#: The pods of a Job have its name as a label.
_LABEL_MAX = 63
_MISMATCH = "`selector` does not match template `labels`"


class _ControllerStruct(Struct, kw_only=True, rename="camel"):
    """Camel case on the wire; unknown fields pass."""


class _Template(_ControllerStruct):
    metadata: objects.ObjectMeta | None = None
    spec: objects.PodSpec | None = None


class _Claim(_ControllerStruct):
    metadata: objects.ObjectMeta


class _Ordinals(_ControllerStruct):
    start: int | None = None


class _RollingUpdate(_ControllerStruct):
    max_surge: IntOrPercent = None
    max_unavailable: IntOrPercent = None
    partition: int | None = None


class _Strategy(_ControllerStruct):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _Spec(_ControllerStruct):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    paused: bool | None = None
    ordinals: _Ordinals | None = None
    selector: Any = None
    manual_selector: bool | None = None
    template: _Template | None = None
    volume_claim_templates: list[_Claim] | None = None
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    pod_management_policy: str | None = None
    min_ready_seconds: int | None = None
    progress_deadline_seconds: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    ttl_seconds_after_finished: int | None = None
    pod_replacement_policy: str | None = None
    pod_failure_policy: dict[str, Any] | None = None
    success_policy: dict[str, Any] | None = None


class _JobStatus(_ControllerStruct):
    conditions: list[dict[str, Any]] | None = None
    succeeded: int | None = None
    completed_indexes: str | None = None


class _Controller(_ControllerStruct):
    metadata: objects.ObjectMeta
    spec: _Spec | None = None
    status: _JobStatus | None = None


def controller_problems(content: Content, *, is_new: bool = True) -> list[Problem]:
    """Problems of a controller's own fields and of its pod template.

    ``is_new``: False for a controller that a server has stored before.
    """
    typed, problems = _read(content)
    spec = None if typed is None else typed.spec
    if typed is None or spec is None or spec.template is None or spec.template.spec is None:
        return problems
    kind = kind_of(content)
    problems += [*_counts(spec), *_template(kind, spec, spec.template, is_new=is_new)]
    if is_new:
        problems += [*_template_rules(kind, spec.template.spec), *_limits(kind, spec)]
        problems += [*_OWN_RULES[kind](spec), *_name(kind, typed.metadata)]
    return problems


def unreadable_controller(content: Content) -> list[Problem]:
    """Why the pods of a controller cannot be told, whether a server has stored it or not."""
    typed, problems = _read(content)
    if typed is not None and typed.spec is not None:
        problems += [each for each in _counts(typed.spec) if each.actual.startswith("found ")]
    return problems


def _read(content: Content) -> tuple[_Controller | None, list[Problem]]:
    """The fields, and why they cannot be read or have no template."""
    try:
        typed = msgspec.convert(content, built(_Controller))
    except (msgspec.MsgspecError, RecursionError) as failure:
        return None, [of_decoding(objects.DecodeError(f"{kind_of(content)}: {failure}"), content)]
    spec = typed.spec
    if spec is None or spec.template is None or spec.template.spec is None:
        return typed, [wrong("spec.template.spec", None, "the pods that it makes")]
    return typed, []


def needed_fields(content: Content) -> Iterator[Problem]:
    """Fields that a controller lacks and an API server needs. ``content``: without problems."""
    kind, spec = kind_of(content), content["spec"]
    if kind == objects.JOB:
        if not spec["template"]["spec"].get("restartPolicy"):
            yield required("spec.template.spec.restartPolicy", _POLICIES_OF_JOBS)
    elif kind in _EMPTY and spec.get("selector") is None:
        yield required("spec.selector")


# ---- fields of several kinds ----------------------------------------------------------------


def _counts(spec: _Spec) -> Iterator[Problem]:
    counts = {
        "replicas": spec.replicas,
        "parallelism": spec.parallelism,
        "completions": spec.completions,
        "ordinals.start": spec.ordinals.start if spec.ordinals is not None else None,
    }
    for name, count in counts.items():
        if count is not None and count < 0:
            yield invalid(f"spec.{name}", count, NEGATIVE)
        elif count is not None and count > PODS_MAX:
            yield wrong(f"spec.{name}", count, f"a number from 0 to {PODS_MAX}")


def _limits(kind: str, spec: _Spec) -> Iterator[Problem]:
    limits = {
        "minReadySeconds": spec.min_ready_seconds,
        "progressDeadlineSeconds": spec.progress_deadline_seconds,
    }
    if kind == objects.JOB:
        limits = {
            "activeDeadlineSeconds": spec.active_deadline_seconds,
            "backoffLimit": spec.backoff_limit,
            "ttlSecondsAfterFinished": spec.ttl_seconds_after_finished,
            "backoffLimitPerIndex": spec.backoff_limit_per_index,
            "maxFailedIndexes": spec.max_failed_indexes,
        }
    for name, limit in limits.items():
        if limit is not None and limit < 0:
            yield invalid(f"spec.{name}", limit, NEGATIVE)


def _name(kind: str, meta: objects.ObjectMeta) -> Iterator[Problem]:
    """A name that its pods could not have."""
    if kind == objects.STATEFUL_SET and meta.name:
        yield from dns_label(meta.name, "metadata.name")
    elif meta.name:
        yield from dns_subdomain(meta.name, "metadata.name")
    if kind == objects.JOB and len(meta.name) > _LABEL_MAX:
        yield invalid("metadata.labels", meta.name, f"must be no more than {_LABEL_MAX} bytes")


# ---- templates ------------------------------------------------------------------------------


def _template(kind: str, spec: _Spec, template: _Template, *, is_new: bool) -> Iterator[Problem]:
    labels = (template.metadata.labels if template.metadata is not None else None) or {}
    if kind != objects.JOB and spec.selector is not None:
        yield from _selector(kind, spec.selector, labels, is_new=is_new)
    yield from selectors.labels(labels, "spec.template.metadata.labels")
    annotations = (template.metadata.annotations if template.metadata is not None else None) or {}
    for key in annotations:
        yield from qualified_name(key.lower(), "spec.template.metadata.annotations")
    assert template.spec is not None
    yield from pod_spec(template.spec, "spec.template.spec", is_new=is_new)


def _selector(
    kind: str, selector: Any, labels: dict[str, str], *, is_new: bool
) -> Iterator[Problem]:
    if kind == objects.REPLICATION_CONTROLLER:
        selector = {"matchLabels": selector}
    try:
        typed = msgspec.convert(selector, built(objects.LabelSelector))
        problems = list(selectors.label_selector(typed, "spec.selector"))
        yield from problems
        if is_new and kind in _EMPTY and not typed.match_labels and not typed.match_expressions:
            detail = f"empty selector is invalid for {_EMPTY[kind]}"
            yield invalid("spec.selector", selector, detail)
        elif not problems and not label_selector(typed).matches(labels):
            yield invalid("spec.template.metadata.labels", labels or None, _MISMATCH)
    except (msgspec.MsgspecError, SelectorError):
        yield wrong("spec.selector", selector, "a label selector")


#: What upstream calls a kind that needs a selector.
_EMPTY = {
    objects.DEPLOYMENT: "deployment",
    objects.REPLICA_SET: "deployment",
    objects.STATEFUL_SET: "statefulset",
    objects.DAEMON_SET: "daemonset",
}


def _template_rules(kind: str, spec: objects.PodSpec) -> Iterator[Problem]:
    path, policy = "spec.template.spec", spec.restart_policy
    if kind == objects.JOB:
        if policy == _ALWAYS:
            yield required(f"{path}.restartPolicy", _POLICIES_OF_JOBS)
        return
    if policy in _OF_JOBS:
        yield not_supported(f"{path}.restartPolicy", policy, (_ALWAYS,))
    if spec.active_deadline_seconds is not None:
        name = _short(objects.REPLICA_SET if kind == objects.DEPLOYMENT else kind)
        detail = f"activeDeadlineSeconds in {name} is not Supported"
        yield forbidden(f"{path}.activeDeadlineSeconds", detail)


_ALWAYS = "Always"
_OF_JOBS = ("OnFailure", "Never")
_POLICIES_OF_JOBS = 'valid values: "OnFailure", "Never"'


def _short(kind: str) -> str:
    return kind.rpartition(" ")[2]


# ---- kinds ----------------------------------------------------------------------------------


def _no_rules(_: _Spec) -> Iterator[Problem]:
    return iter(())


def _deployment(spec: _Spec) -> Iterator[Problem]:
    strategy = spec.strategy or _Strategy()
    rolling, path = strategy.rolling_update, "spec.strategy.rollingUpdate"
    if strategy.type == "Recreate":
        if rolling is not None:
            yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif strategy.type in (None, "", "RollingUpdate"):
        if rolling is not None:
            yield from _rolling_deployment(rolling, path)
    else:
        yield not_supported("spec.strategy", strategy.type, ("Recreate", "RollingUpdate"))
    deadline, ready = spec.progress_deadline_seconds, spec.min_ready_seconds or 0
    if deadline is not None and deadline <= ready:
        detail = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", deadline, detail)


def _rolling_deployment(rolling: _RollingUpdate, path: str) -> Iterator[Problem]:
    quarter = "25%"
    surge = quarter if rolling.max_surge is None else rolling.max_surge
    unavailable = quarter if rolling.max_unavailable is None else rolling.max_unavailable
    yield from amount(unavailable, f"{path}.maxUnavailable")
    yield from amount(surge, f"{path}.maxSurge")
    if not number(unavailable) and not number(surge):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from share(unavailable, f"{path}.maxUnavailable")


def _stateful_set(spec: _Spec) -> Iterator[Problem]:
    policy = spec.pod_management_policy
    if policy and policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.update_strategy or _Strategy()
    rolling, path = strategy.rolling_update, "spec.updateStrategy.rollingUpdate"
    if strategy.type not in (None, "", "OnDelete", "RollingUpdate"):
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid("spec.updateStrategy", strategy.type, detail)
    elif strategy.type == "OnDelete" and rolling is not None:
        value = {"Partition": rolling.partition, "MaxUnavailable": rolling.max_unavailable}
        yield invalid(path, value, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None:
        if rolling.partition is not None and rolling.partition < 0:
            yield invalid(f"{path}.partition", rolling.partition, NEGATIVE)
        yield from amount(rolling.max_unavailable, f"{path}.maxUnavailable")
        if rolling.max_unavailable is not None and not number(rolling.max_unavailable):
            yield invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "cannot be 0")
        yield from share(rolling.max_unavailable, f"{path}.maxUnavailable")


def _daemon_set(spec: _Spec) -> Iterator[Problem]:
    strategy = spec.update_strategy or _Strategy()
    types = ("RollingUpdate", "OnDelete")
    yield from choice(strategy.type, "spec.updateStrategy", types)
    rolling, path = strategy.rolling_update, "spec.updateStrategy.rollingUpdate"
    if rolling is None or strategy.type not in (None, "", "RollingUpdate"):
        return
    unavailable = 1 if rolling.max_unavailable is None else rolling.max_unavailable
    surge = rolling.max_surge
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        yield from amount(value, f"{path}.{name}")
        yield from share(value, f"{path}.{name}")
    if number(unavailable) and number(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not number(unavailable) and not number(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _job(spec: _Spec) -> Iterator[Problem]:
    modes = ("NonIndexed", "Indexed")
    yield from choice(spec.completion_mode, "spec.completionMode", modes)
    # A server makes it of the uid, which no manifest knows.
    has_selector = isinstance(spec.selector, dict) and any(spec.selector.values())
    if has_selector and not spec.manual_selector:
        yield invalid("spec.selector", spec.selector, "`selector` not auto-generated")
    if spec.completion_mode == "Indexed":
        if spec.completions is None and spec.parallelism is not None:
            yield required("spec.completions", "when completion mode is Indexed")
        elif (spec.max_failed_indexes or 0) > (spec.completions or 1):
            detail = "must be less than or equal to completions"
            yield invalid("spec.maxFailedIndexes", spec.max_failed_indexes, detail)
    else:
        detail = "requires indexed completion mode"
        for name, limit in (
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ):
            if limit is not None:
                yield invalid(f"spec.{name}", limit, detail)
        if spec.success_policy is not None:
            yield invalid("spec.successPolicy", spec.success_policy, detail)
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    replacing, failing = spec.pod_replacement_policy, spec.pod_failure_policy
    policies = ("Failed", "TerminatingOrFailed") if failing is None else ("Failed",)
    yield from choice(replacing, "spec.podReplacementPolicy", policies)
    template = spec.template.spec if spec.template is not None else None
    policy = template.restart_policy if template is not None else None
    if failing is not None and policy == "OnFailure":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid("spec.template.spec.restartPolicy", policy, detail)


_OWN_RULES: Mapping[str, Callable[[_Spec], Iterator[Problem]]] = {
    objects.DEPLOYMENT: _deployment,
    objects.REPLICA_SET: _no_rules,
    objects.REPLICATION_CONTROLLER: _no_rules,
    objects.STATEFUL_SET: _stateful_set,
    objects.DAEMON_SET: _daemon_set,
    objects.JOB: _job,
}
