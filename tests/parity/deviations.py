"""Helpful retries that upstream misses: Bayplan's hints are Queue there on purpose.

There are three kinds, and no other answer may differ (docs/decisions/0004). In each, upstream's
hint ignores an input of the plugin's Filter. The case can be rewritten so that upstream's hint
reads the input:

    InterPodAffinity   a term's namespaceSelector becomes the namespaces that it selects
    NodeResourcesFit   ignored resources become resources that the pod does not request
    NodeAffinity       addedAffinity becomes a part of the pod's own affinity

Queue is accepted in place of QueueSkip only if the plugin's hint is Queue for the rewritten case,
for which Bayplan and upstream agree, and QueueSkip for the case without the ignored input. Then
that input, and nothing else, makes the difference.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import msgspec

from bayplan.api.objects import LabelSelector
from bayplan.api.selectors import label_selector

Json = dict[str, Any]

NAMESPACES = "InterPodAffinity, namespaceSelector"
IGNORED = "NodeResourcesFit, ignored resources"
ADDED = "NodeAffinity, addedAffinity"

#: (case, plugin) → the result of the plugin's hint.
HintOf = Callable[[Json, str], str | None]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_IGNORE_LISTS = ("ignoredResources", "ignoredResourceGroups")
#: A namespace that does not exist. A term without namespaces selects the pod's own namespace.
_NOWHERE = "-"


def deviation(plugin: str, case: Json, hint_of: HintOf) -> str:
    """The kind of deviation for which Queue may replace QueueSkip; "" if there is none."""
    if plugin not in _KINDS:
        return ""
    kind, applies, in_other_words, as_upstream_sees = _KINDS[plugin]
    if not applies(case):
        return ""
    helps = hint_of(in_other_words(case), plugin) == "Queue"
    return kind if helps and hint_of(as_upstream_sees(case), plugin) == "QueueSkip" else ""


# ---- InterPodAffinity ----------------------------------------------------------------------


def _selects_namespaces(case: Json) -> bool:
    """Whether a required term has a namespaceSelector that is not empty."""
    pods = [case["pod"], case["event"]["old"], case["event"]["new"]]
    is_pod = case["event"]["resource"] == "Pod"
    return is_pod and any(
        term.get("namespaceSelector") for pod in pods for term in _terms(pod or {})
    )


def _terms(pod: Json) -> list[Json]:
    affinity: Json = (pod.get("spec") or {}).get("affinity") or {}
    parts = [affinity.get(name) or {} for name in ("podAffinity", "podAntiAffinity")]
    return [term for part in parts for term in part.get(_REQUIRED) or ()]


def _with_namespaces(case: Json, labels_seen: bool) -> Json:
    """Replace namespace selectors by names; without ``labels_seen`` no namespace has labels."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(case))
    namespaces: list[Json] = (case.get("cluster") or {}).get("namespaces") or []
    labels = {
        each["metadata"]["name"]: (each["metadata"].get("labels") or {}) if labels_seen else {}
        for each in namespaces
    }
    event = changed["event"]
    for pod in (changed["pod"], event["old"], event["new"]):
        for term in _terms(pod or {}):
            written = term.pop("namespaceSelector", None)
            if written is not None:
                selector = label_selector(msgspec.convert(written, LabelSelector))
                selected = {name for name, values in labels.items() if selector.matches(values)}
                term["namespaces"] = sorted({_NOWHERE, *(term.get("namespaces") or ()), *selected})
    return changed


# ---- NodeResourcesFit ----------------------------------------------------------------------


def _ignores_resources(case: Json) -> bool:
    args = _args_of(case, "NodeResourcesFit")
    return case["event"]["resource"] == "Node" and any(args.get(name) for name in _IGNORE_LISTS)


def _without_ignored_requests(case: Json) -> Json:
    args = _args_of(case, "NodeResourcesFit")
    names, groups = (set(args.get(name) or ()) for name in _IGNORE_LISTS)
    changed: Json = msgspec.json.decode(msgspec.json.encode(case))
    spec: Json = changed["pod"].get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        requests: Json = (container.get("resources") or {}).get("requests") or {}
        for name in list(requests):
            if "/" in name and (name in names or name.partition("/")[0] in groups):
                del requests[name]
    return changed


# ---- NodeAffinity --------------------------------------------------------------------------


def _adds_affinity(case: Json) -> bool:
    event = case["event"]
    is_update = (event["resource"], event["action"]) == ("Node", "Update")
    return is_update and bool(_added_terms(case))


def _added_terms(case: Json) -> list[Json]:
    added: Json = _args_of(case, "NodeAffinity").get("addedAffinity") or {}
    return (added.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def _with_added_terms_as_own(case: Json) -> Json:
    """Combine each of the pod's terms with each added term."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(case))
    spec: Json = changed["pod"].setdefault("spec", {})
    rules: Json = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    own = rules[_REQUIRED].get("nodeSelectorTerms") or [] if _REQUIRED in rules else [{}]
    terms = [_both(one, other) for one, other in product(own, _added_terms(case))]
    rules[_REQUIRED] = {"nodeSelectorTerms": terms}
    return _with_args(changed, "NodeAffinity", {})


def _both(one: Json, other: Json) -> Json:
    names = ("matchExpressions", "matchFields")
    return {name: [*(one.get(name) or ()), *(other.get(name) or ())] for name in names}


# ---- args ----------------------------------------------------------------------------------


def _args_of(case: Json, plugin: str) -> Json:
    for profile in (case.get("config") or {}).get("profiles") or ():
        for entry in profile.get("pluginConfig") or ():
            if entry.get("name") == plugin:
                return entry.get("args") or {}
    return {}


def _with_args(case: Json, plugin: str, args: Json) -> Json:
    changed: Json = msgspec.json.decode(msgspec.json.encode(case))
    for profile in changed["config"]["profiles"]:
        for entry in profile.get("pluginConfig") or ():
            if entry.get("name") == plugin:
                entry["args"] = args
    return changed


def _without_args(plugin: str, *names: str) -> Callable[[Json], Json]:
    def changed(case: Json) -> Json:
        args = {k: v for k, v in _args_of(case, plugin).items() if k not in names}
        return _with_args(case, plugin, args)

    return changed


_Words = Callable[[Json], Json]
#: Plugin → (kind, whether a case may be of the kind, rewritten case, case as upstream reads it).
_KINDS: Mapping[str, tuple[str, Callable[[Json], bool], _Words, _Words]] = {
    "InterPodAffinity": (
        NAMESPACES,
        _selects_namespaces,
        lambda case: _with_namespaces(case, True),
        lambda case: _with_namespaces(case, False),
    ),
    "NodeResourcesFit": (
        IGNORED,
        _ignores_resources,
        _without_ignored_requests,
        _without_args("NodeResourcesFit", *_IGNORE_LISTS),
    ),
    "NodeAffinity": (
        ADDED,
        _adds_affinity,
        _with_added_terms_as_own,
        _without_args("NodeAffinity", "addedAffinity"),
    ),
}
