"""Validation of what decides about other objects: LimitRanges, quotas, RuntimeClasses, budgets.

The words are those of kube-apiserver. A LimitRange is checked with its defaults. Upstream:
ValidateLimitRange and ValidateResourceQuotaSpec in pkg/apis/core/validation, pkg/apis/node and
pkg/apis/policy.
"""

from collections.abc import Iterator, Mapping

from bayplan.adapters.embedded.field_errors import (
    duplicate,
    forbidden,
    invalid,
    key_path,
    qualified_name,
    required,
)
from bayplan.adapters.embedded.int_or_percent import amount, share
from bayplan.adapters.embedded.pod_validation import choice, toleration
from bayplan.adapters.embedded.resource_validation import (
    HUGEPAGES_PREFIXES,
    STANDARD_RESOURCES,
    container_resource,
    overcommits,
    overhead,
    quantities,
    resource_name,
    unreadable,
)
from bayplan.adapters.embedded.selector_validation import label_selector, labels
from bayplan.api import admission_objects
from bayplan.api.amounts import Amount, amounts_of
from bayplan.api.disruption_objects import PodDisruptionBudget
from bayplan.api.quantity import NANOS
from bayplan.api.storage_objects import STORAGE
from bayplan.problems import Problem

# ---- LimitRange -----------------------------------------------------------------------------


CONTAINER, POD_TYPE, CLAIM = "Container", "Pod", "PersistentVolumeClaim"


def limit_range(limit_range: admission_objects.LimitRange) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, item in enumerate(limit_range.spec.limits or ()):
        path = f"spec.limits[{index}]"
        bad = list(_unreadable(item, path))
        yield from bad
        if bad:
            continue
        yield from qualified_name(item.type, f"{path}.type")
        if "/" not in item.type and item.type not in (CONTAINER, POD_TYPE, CLAIM):
            detail = "must be a standard limit type or fully qualified"
            yield invalid(f"{path}.type", item.type, detail, (CONTAINER, POD_TYPE, CLAIM))
        if item.type in seen:
            yield duplicate(f"{path}.type", item.type)
        seen.add(item.type)
        yield from _limit_range_item(item, path)


def unreadable_limits(limit_range: admission_objects.LimitRange) -> Iterator[Problem]:
    """Quantities of a LimitRange that are none."""
    for index, item in enumerate(limit_range.spec.limits or ()):
        yield from _unreadable(item, f"spec.limits[{index}]")


def _unreadable(item: admission_objects.LimitRangeItem, path: str) -> Iterator[Problem]:
    yield from unreadable(item.max, f"{path}.max")
    yield from unreadable(item.min, f"{path}.min")
    yield from unreadable(item.default, f"{path}.default")
    yield from unreadable(item.default_request, f"{path}.defaultRequest")
    yield from unreadable(item.max_limit_request_ratio, f"{path}.maxLimitRequestRatio")


def _limit_range_item(item: admission_objects.LimitRangeItem, path: str) -> Iterator[Problem]:
    """Check an item, whose quantities can be read."""
    maximum, minimum = amounts_of(item.max), amounts_of(item.min)
    default, request = amounts_of(item.default), amounts_of(item.default_request)
    ratio = amounts_of(item.max_limit_request_ratio)
    if item.type == CONTAINER:
        default = {**maximum, **default}
        request = {**minimum, **default, **request}
    parts = {
        "max": maximum,
        "min": minimum,
        "default": default,
        "defaultRequest": request,
        "maxLimitRequestRatio": ratio,
    }
    check = container_resource if item.type in (CONTAINER, POD_TYPE) else resource_name
    for field, amounts in parts.items():
        if item.type == POD_TYPE and amounts and field in ("default", "defaultRequest"):
            yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in amounts:
            yield from check(name, key_path(f"{path}.{field}", name))
    if item.type == CLAIM and STORAGE not in minimum and STORAGE not in maximum:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)
    for name in dict.fromkeys(name for amounts in parts.values() for name in amounts):
        yield from _order(name, parts, path)
        yield from _ratio(name, parts, path)


def _order(name: str, parts: Mapping[str, Mapping[str, Amount]], path: str) -> Iterator[Problem]:
    """Check that minimum, default request, default limit and maximum do not decrease."""
    minimum, maximum = parts["min"].get(name), parts["max"].get(name)
    default, request = parts["default"].get(name), parts["defaultRequest"].get(name)
    of_request = key_path(f"{path}.defaultRequest", name)
    of_default = key_path(f"{path}.default", name)
    for low, high, place, value, words in (
        (minimum, maximum, key_path(f"{path}.min", name), minimum, ("min", "max")),
        (minimum, request, of_request, request, ("min", "default request")),
        (request, maximum, of_request, request, ("default request", "max")),
        (request, default, of_request, request, ("default request", "default limit")),
        (minimum, default, of_default, minimum, ("min", "default")),
        (default, maximum, of_default, maximum, ("default", "max")),
    ):
        if low is not None and high is not None and low.nanos > high.nanos:
            detail = f"{words[0]} value {low} is greater than {words[1]} value {high}"
            yield invalid(place, str(value), detail)
    is_fixed = default is not None and request is not None and not overcommits(name)
    if is_fixed and default is not None and request is not None and default.nanos != request.nanos:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(of_request, str(request), detail)


def _ratio(name: str, parts: Mapping[str, Mapping[str, Amount]], path: str) -> Iterator[Problem]:
    ratio = parts["maxLimitRequestRatio"].get(name)
    if ratio is None:
        return
    place = key_path(f"{path}.maxLimitRequestRatio", name)
    if ratio.nanos < NANOS:
        yield invalid(place, str(ratio), f"ratio {ratio} is less than 1")
    minimum, maximum = parts["min"].get(name), parts["max"].get(name)
    if minimum is not None and maximum is not None and minimum.nanos > 0:
        limit = maximum.nanos / minimum.nanos
        if ratio.nanos / NANOS > limit:
            yield invalid(place, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}")


# ---- ResourceQuota --------------------------------------------------------------------------


_COMPUTE = ("cpu", "memory")
_POD_RESOURCES = (
    "pods",
    *(f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in _COMPUTE),
)
_EXISTS_SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)
_CLASS = "VolumeAttributesClass"
_SCOPES = (*_EXISTS_SCOPES, "PriorityClass", _CLASS)
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_UNSUPPORTED = "unsupported scope"


def resource_quota(quota: admission_objects.ResourceQuota) -> Iterator[Problem]:
    spec = quota.spec
    for name in spec.hard or ():
        place = key_path("spec.hard", name)
        yield from resource_name(name, place)
        is_standard = name in STANDARD_RESOURCES and name != STORAGE
        if "/" not in name and not is_standard and not name.startswith(HUGEPAGES_PREFIXES):
            yield invalid(place, name, "must be a standard resource for quota", STANDARD_RESOURCES)
    yield from quantities(spec.hard, "spec.hard")
    yield from _scopes(spec)
    selector = spec.scope_selector
    for one in (selector.match_expressions or ()) if selector is not None else ():
        yield from _scope_requirement(one, spec)


def _scopes(spec: admission_objects.ResourceQuotaSpec) -> Iterator[Problem]:
    path, scopes = "spec.scopes", list(spec.scopes or ())
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid(path, scopes, _UNSUPPORTED)
        for _ in _resources_without(scope, spec):
            yield invalid(path, scopes, f"{_UNSUPPORTED} applied to resource")
    for pair in _CONFLICTS:
        if set(pair) <= set(scopes):
            yield invalid(path, scopes, "conflicting scopes")


def _resources_without(scope: str, spec: admission_objects.ResourceQuotaSpec) -> list[str]:
    """The resources of a quota that do not have a scope."""
    if scope == "BestEffort":
        valid: tuple[str, ...] = ("pods",)
    elif scope in _SCOPES and scope != _CLASS:
        valid = _POD_RESOURCES
    else:
        return []
    names = [name for name in spec.hard or () if name not in valid]
    return [
        name for name in names if name in STANDARD_RESOURCES or name.startswith(HUGEPAGES_PREFIXES)
    ]


def _scope_requirement(
    one: admission_objects.ScopeRequirement, spec: admission_objects.ResourceQuotaSpec
) -> Iterator[Problem]:
    path = "spec.scopeSelector.matchExpressions"
    if one.scope_name not in _SCOPES:
        yield invalid(f"{path}.scopeName", one.scope_name, _UNSUPPORTED, _SCOPES)
    if _resources_without(one.scope_name, spec):
        yield invalid(path, one.scope_name, f"{_UNSUPPORTED} applied to resource")
    if one.scope_name in _EXISTS_SCOPES and one.operator != "Exists":
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        yield invalid(f"{path}.operator", one.operator, detail)
    if one.operator in ("In", "NotIn"):
        if not one.values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            yield required(f"{path}.values", detail)
    elif one.operator in ("Exists", "DoesNotExist"):
        if one.values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist'"
            detail = f"{detail} for scope selector"
            yield invalid(f"{path}.values", list(one.values), detail)
    else:
        yield invalid(f"{path}.operator", one.operator, "not a valid selector operator")


# ---- RuntimeClass ---------------------------------------------------------------------------


def unreadable_overhead(runtime_class: admission_objects.RuntimeClass) -> Iterator[Problem]:
    """Quantities of a RuntimeClass that are none."""
    if runtime_class.overhead is not None:
        yield from unreadable(runtime_class.overhead.pod_fixed, "overhead.podFixed")


def runtime_class(runtime_class: admission_objects.RuntimeClass) -> Iterator[Problem]:
    if runtime_class.overhead is not None:
        yield from overhead(runtime_class.overhead.pod_fixed, "overhead", is_new=False)
    scheduling = runtime_class.scheduling
    if scheduling is not None:
        yield from labels(scheduling.node_selector, "scheduling.nodeSelector")
        for index, one in enumerate(scheduling.tolerations or ()):
            yield from toleration(one, f"scheduling.tolerations[{index}]")


# ---- PodDisruptionBudget --------------------------------------------------------------------


def disruption_budget(budget: PodDisruptionBudget) -> Iterator[Problem]:
    spec = budget.spec
    bounds = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    if None not in bounds.values():
        yield invalid("spec", bounds, "minAvailable and maxUnavailable cannot be both set")
    for name, bound in bounds.items():
        yield from amount(bound, f"spec.{name}")
        yield from share(bound, f"spec.{name}")
    yield from label_selector(spec.selector, "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    path = "spec.unhealthyPodEvictionPolicy"
    yield from choice(spec.unhealthy_pod_eviction_policy, path, policies)
